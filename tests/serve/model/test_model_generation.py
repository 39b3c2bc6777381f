"""`generation_config.json`: a field is applied, changes nothing, or is named."""

from __future__ import annotations

from typing import Any

import pytest
from transformers import GenerationConfig

from warfence.serve.model.generation import left_out


@pytest.mark.parametrize(
    "quiet",
    [
        {},
        {
            "eos_token_id": 2,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "transformers_version": "4.57.0",
            "_from_model_config": True,
        },
        {"repetition_penalty": 1.0, "num_beams": 1, "do_sample": False, "max_length": 20, "top_k": None},
        {"do_sample": False, "temperature": 0.6, "top_p": 0.9, "top_k": 20},  # a greedy run draws nothing
    ],
)
def test_what_changes_nothing_is_not_named(quiet: dict[str, Any]) -> None:
    assert left_out(quiet) == []


def test_what_is_not_applied_is_named_with_its_value() -> None:
    assert left_out({"repetition_penalty": 1.3, "num_beams": 1}) == [
        "generation_config.json asks for what is not applied: repetition_penalty 1.3."
    ]
    assert left_out({"do_sample": True, "temperature": 0.6, "top_p": 0.9}) == [
        "generation_config.json asks for what is not applied: do_sample True, temperature 0.6, top_p 0.9;"
        " --temperature and --top-p can be given."
    ]
    assert "suppress_tokens [5]" in left_out({"suppress_tokens": [5]})[0]
    assert "made_up 3" in left_out({"made_up": 3})[0]


def test_the_defaults_of_transformers_are_quiet() -> None:
    config = GenerationConfig()
    assert left_out(config.to_dict() | config._get_default_generation_params()) == []

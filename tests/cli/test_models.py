"""`warfence models`: what was understood of a directory, its weights unread."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.serve.jobs.conftest import write_model
from warfence.cli import main


def test_the_shipped_model(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["architecture"], found["context"], found["stop ids"]) == ("MinistralForCausalLM", 512, [0])
    assert (found["window"], found["rope"]["kind"], found["notes"]) == ({"keys": 32, "layers": 3}, "default", [])
    assert main(["models"]) == 0
    assert "keys 32, layers 3" in capsys.readouterr().out


def test_a_directory_with_something_to_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scaled = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32}
    model = write_model(tmp_path / "m", rope_scaling=scaled, sliding_window=4096)
    (model / "generation_config.json").write_text('{"eos_token_id": [3, 4], "num_beams": 4}')
    (model / "chat_template.jinja").write_text("{{ messages[0].content }}")
    (model / "model.safetensors").write_bytes(b"no weights: they are not read")
    assert main(["models", str(model), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rope"]["kind"], found["window"], found["stop ids"]) == ("yarn", None, [3, 4])
    assert found["chat template"] is True
    assert found["notes"] == ["generation_config.json asks for what is not applied: num_beams 4."]


def test_no_directory_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", str(tmp_path / "absent")]) == 2
    assert (
        "config.json' cannot be read (No such file or directory); give a Hugging Face model" in capsys.readouterr().err
    )

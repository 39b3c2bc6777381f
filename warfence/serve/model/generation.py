"""``generation_config.json``: the stop tokens are applied; every other field that would change the text is named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from warfence.serve.model.fields import token_ids

# What each field is where it changes nothing (``GenerationConfig`` of transformers 5.x); null and absent change nothing either.
_NEUTRAL: dict[str, Any] = {
    "do_sample": False, "num_beams": 1, "num_beam_groups": 1, "repetition_penalty": 1.0, "encoder_repetition_penalty": 1.0,
    "length_penalty": 1.0, "no_repeat_ngram_size": 0, "encoder_no_repeat_ngram_size": 0, "min_length": 0, "max_length": 20,
    "diversity_penalty": 0.0, "renormalize_logits": False, "remove_invalid_values": False, "token_healing": False,
    "guidance_scale": 1.0, "early_stopping": False, "num_return_sequences": 1, "temperature": 1.0, "top_k": 50, "top_p": 1.0,
    "typical_p": 1.0, "epsilon_cutoff": 0.0, "eta_cutoff": 0.0,
}  # fmt: skip
_DRAWS = frozenset({"temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff"})
# Which token is what, how the run is carried out there, and what it returns: none of it is about the text of one request.
_SILENT = frozenset({
    "eos_token_id", "bos_token_id", "pad_token_id", "decoder_start_token_id", "transformers_version", "use_cache",
    "cache_implementation", "cache_config", "return_dict_in_generate", "output_attentions", "output_hidden_states",
    "output_scores", "output_logits", "is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule",
    "assistant_confidence_threshold", "assistant_lookbehind", "target_lookbehind", "compile_config", "disable_compile",
    "low_memory", "max_matching_ngram_size", "prompt_lookup_num_tokens", "generation_kwargs", "max_cache_len",
})  # fmt: skip


def stop_ids(generation: Mapping[str, Any], name: str) -> tuple[int, ...]:
    """The stop tokens: those of this file alone, as transformers has it; ``config.json`` counts only where it is absent."""
    return tuple(dict.fromkeys(token_ids(generation.get("eos_token_id"), "eos_token_id", name)))


def left_out(generation: Mapping[str, Any]) -> list[str]:
    """One sentence with every field that is not applied and would change the text; none where there is no such field."""
    greedy = not generation.get("do_sample")
    fields = {
        key: value
        for key, value in generation.items()
        if value is not None
        and key not in _SILENT
        and not key.startswith("_")
        and not (key in _NEUTRAL and value == _NEUTRAL[key])
        and not (greedy and key in _DRAWS)
    }
    if not fields:
        return []
    asked = ", ".join(f"{key} {value!r}" for key, value in fields.items())
    options = [f"--{key.replace('_', '-')}" for key in ("temperature", "top_p") if key in fields]
    remedy = f"; {' and '.join(options)} can be given" if options else ""
    return [f"generation_config.json asks for what is not applied: {asked}{remedy}."]

"""A prompt as the first turn of a conversation, by the model's own chat template (jinja2, sandboxed, as transformers runs it)."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from warfence.core.errors import InputError
from warfence.host.documents import read_object

REMEDY = "copy the file again"


def chat_template(directory: Path) -> Callable[[str], str]:
    """From the user's words to the text that the model takes, the answer's head included; it has its special tokens.

    The template is `chat_template.jinja`, else that of `tokenizer_config.json` (of several, the one named "default").
    Raises InputError where there is none, where it is no template, and where it refuses a turn.
    """
    from jinja2 import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    config, file = directory / "tokenizer_config.json", directory / "chat_template.jinja"
    raw = read_object(config, REMEDY) if config.exists() else {}
    try:
        source = file.read_text(encoding="utf-8") if file.exists() else raw.get("chat_template")
    except (OSError, UnicodeDecodeError) as cause:
        raise InputError(f"'{file}' cannot be read ({cause}); {REMEDY}") from cause
    if isinstance(source, list):
        source = next(
            (one.get("template") for one in source if isinstance(one, dict) and one.get("name") == "default"), None
        )
    if not isinstance(source, str):
        raise InputError(
            f"--chat: '{directory}' has no chat template; give the directory of a chat model, or drop --chat"
        )
    special = {key: _spelled(value) for key, value in raw.items() if key.endswith("_token") and value is not None}
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals |= {
        "raise_exception": _refuse,
        "strftime_now": lambda form: datetime.datetime.now().strftime(form),
    }

    def chat(text: str) -> str:
        try:
            template = environment.from_string(source)
            return str(
                template.render(messages=[{"role": "user", "content": text}], add_generation_prompt=True, **special)
            )
        except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as cause:
            raise InputError(f"the chat template of '{directory}' cannot be applied: {cause}") from cause

    return chat


def _spelled(value: Any) -> Any:
    return value.get("content") if isinstance(value, dict) else value


def _refuse(message: str) -> None:
    from jinja2 import TemplateError

    raise TemplateError(message)

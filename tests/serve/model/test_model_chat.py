"""Chat templates give the text that `transformers` gives, from wherever a directory keeps them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from transformers import PreTrainedTokenizerFast

from warfence.core.errors import InputError
from warfence.serve.model import ASSETS
from warfence.serve.model.chat import chat_template

TEMPLATE = """
{{- bos_token }}
{%- for message in messages %}
    {%- if message['role'] not in ('user', 'assistant') %}
        {{- raise_exception('only users here') }}
    {%- endif %}
    {{- '<|' + message['role'] + '|>' }}
    {{ message['content'] | trim }}{{ eos_token }}
    {%- if loop.last %}{% break %}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ {'to': 'assistant'} | tojson }}{% endif %}
"""
SPECIAL = {"bos_token": {"content": "<s>"}, "eos_token": "</s>"}


@pytest.mark.parametrize("place", ["config", "list", "file"])
def test_the_text_is_that_of_transformers(tmp_path: Path, place: str) -> None:
    shutil.copyfile(ASSETS / "tokenizer.json", tmp_path / "tokenizer.json")
    stored: object = TEMPLATE
    if place == "list":
        stored = [{"name": "tools", "template": "no"}, {"name": "default", "template": TEMPLATE}]
    config = dict(SPECIAL) if place == "file" else SPECIAL | {"chat_template": stored}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    if place == "file":
        (tmp_path / "chat_template.jinja").write_text(TEMPLATE)
    theirs = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"), bos_token="<s>", eos_token="</s>")
    expected = theirs.apply_chat_template(
        [{"role": "user", "content": " Hello, <you> "}],
        chat_template=TEMPLATE,
        tokenize=False,
        add_generation_prompt=True,
    )
    assert chat_template(tmp_path)(" Hello, <you> ") == expected
    assert expected.startswith("<s><|user|>")


def test_a_directory_without_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no chat template; give the directory of a chat model, or drop --chat"):
        chat_template(tmp_path)
    (tmp_path / "chat_template.jinja").write_bytes(b"\xff")
    with pytest.raises(InputError, match=r"chat_template.jinja' cannot be read .*; copy the file again"):
        chat_template(tmp_path)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ raise_exception('only systems here') }}", "cannot be applied: only systems here"),
        ("{% for %}", "cannot be applied: "),
        ("{{ messages.__class__.__mro__ }}{{ ''.__class__.__base__.__subclasses__() }}", "cannot be applied: .*unsafe"),
        ("{{ messages.append(1) }}", "cannot be applied: .*unsafe|not safely callable"),
    ],
)
def test_a_template_that_refuses_or_reaches_out_is_one_sentence(tmp_path: Path, template: str, message: str) -> None:
    (tmp_path / "chat_template.jinja").write_text(template)
    with pytest.raises(InputError, match=message):
        chat_template(tmp_path)("Hello")

"""Documents that are read back: what does not fit is refused with file, field, what stands there and what is allowed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import pytest

from warfence.core.errors import InputError
from warfence.host.documents import decoded, plain, read_document


@dataclass(frozen=True, slots=True)
class Part:
    size: int
    times: Annotated[int, msgspec.Meta(ge=2)] = 2


@dataclass(frozen=True, slots=True)
class Whole:
    parts: Sequence[Part]
    by_name: Mapping[str, Part] = field(default_factory=dict)
    by_number: Mapping[int, str] = field(default_factory=dict)
    left_out: bool | None = None
    kind: Literal["one", "other"] = "one"


def read(raw: bytes) -> Whole:
    return decoded(raw, Whole, "document of ours", "write it again", "'it'")


def test_what_was_written_is_read_and_unknown_fields_are_passed_over() -> None:
    whole = Whole([Part(1), Part(2, 3)], {"a": Part(4)}, {7: "seven"}, True)
    assert read(msgspec.json.encode(plain(whole))) == whole
    assert read(b'{"parts": [], "newer": 1}') == Whole([])
    assert list(plain(whole)) == ["parts", "by_name", "by_number", "left_out", "kind"]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "'it' is no JSON (Input data was truncated)"),
        (b"{parts", "'it' is no JSON ("),
        (b'{"parts": 1, parts', "'it' is no JSON ("),
        (b'{"parts": ["\xff"]}', "'it' is no JSON ("),
        (b"[]", "it is []; allowed is an object"),
        (b"{}", "it has no 'parts'"),
        (b'{"parts": [{"size": 1}, {}]}', "parts[1] has no 'size'"),
        (b'{"parts": [{"size": "1"}]}', "parts[0].size is '1'; allowed is an integer"),
        (b'{"parts": [{"size": true}]}', "parts[0].size is True; allowed is an integer"),
        (b'{"parts": [{"size": 1, "times": 1}]}', "parts[0].times is 1; allowed is an integer from 2"),
        (b'{"parts": [], "by_name": {"a": {"size": null}}}', "by_name[...].size is null; allowed is an integer"),
        (b'{"parts": [], "by_number": {"a": "b"}}', "a key of by_number is a text; allowed is an integer"),
        (b'{"parts": [], "left_out": 3}', "left_out is 3; allowed is true or false or null"),
        (b'{"parts": [], "kind": "third"}', "kind is 'third', which there is not"),
        (b'{"parts": "%s"}' % (b"x" * 99), "parts is a text; allowed is a list"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_field(raw: bytes, said: str) -> None:
    with pytest.raises(InputError) as refused:
        read(raw)
    assert said in str(refused.value)
    assert str(refused.value).startswith("'it' is no ")
    assert str(refused.value).endswith("; write it again")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none' cannot be read \(No such file or directory\); write it again"):
        read_document(tmp_path / "none", Whole, "document", "write it again")

"""Skips and xfails files, and names that are nearly right."""

from __future__ import annotations

from pathlib import Path

import pytest

from warfence.core.errors import InputError
from warfence.parity.selection import NO_REASON, Selection, choose, read_selection

IDS = ("decode / live / marker / fine / batch 1", "decode / live / marker / fine / batch 3", "7-mailbox-emptied")


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_an_id_a_line_with_its_reason(tmp_path: Path) -> None:
    skips = write(
        tmp_path / "skips.txt", "# ours\n\ndecode / live / * / batch 3  # too slow # here\n7-mailbox-emptied\n"
    )
    selection = read_selection(skips, None)
    assert [selection.skip(id) for id in IDS] == [None, "too slow # here", NO_REASON]
    assert [selection.xfail(id) for id in IDS] == [None] * 3
    assert selection.unmatched(IDS) == []


def test_what_matches_nothing_is_told_with_its_line_and_the_nearest_id(tmp_path: Path) -> None:
    skips = write(tmp_path / "skips.txt", "# none\n7-mailbox-emptyed # a slip\n")
    xfails = write(tmp_path / "xfails.txt", "zzz\n")
    assert read_selection(skips, xfails).unmatched(IDS) == [
        "skips.txt, line 2: '7-mailbox-emptyed' matches nothing; nearest: '7-mailbox-emptied'",
        "xfails.txt, line 1: 'zzz' matches nothing",
    ]


def test_a_file_that_cannot_be_read_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent.txt' cannot be read .No such file"):
        read_selection(tmp_path / "absent.txt", None)
    (tmp_path / "bytes").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="it is not UTF-8 text"):
        read_selection(None, tmp_path / "bytes")


def test_without_files_nothing_is_selected() -> None:
    assert read_selection(None, None) == Selection()


MODES = ("decode", "extend+switch", "extend+switch, later chunk")


@pytest.mark.parametrize(
    "said", ["extend+switch, later chunk", "Extend+Switch later-chunk", "extend+switch,later_chunk"]
)
def test_case_and_separators_do_not_matter(said: str) -> None:
    assert choose("mode", [said, said, "decode"], MODES) == ("extend+switch, later chunk", "decode")


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("decod", "unknown mode 'decod'; nearest: decode"),
        ("zzz", "unknown mode 'zzz'; choose one of: decode, extend+switch, 'extend+switch, later chunk'"),
    ],
)
def test_an_unknown_name_gives_the_nearest_or_all(said: str, message: str) -> None:
    with pytest.raises(InputError) as raised:
        choose("mode", ["decode", said], MODES)
    assert str(raised.value) == message

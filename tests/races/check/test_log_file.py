"""Logs on disk: what comes back, and what is refused with file and line."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from warfence.core.errors import InputError
from warfence.races.check.events import HOST, Event
from warfence.races.check.log_file import CHUNK, FIELDS, LogWriter, read_log, write_log

EVENTS = [
    Event("read", "forward", 1, "snapshot", "table", 0, 8, where="model.py:3"),
    Event("record", "forward", 1, event="marker", generation=1),
    Event("wait", "schedule", 1, event="marker"),
    Event("wait_lane", "plan", other="schedule"),
    Event("host_sync", HOST, event="marker"),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    write_log(path, EVENTS, unseen=["custom kernels"])
    return path


def edit(path: Path, change: Callable[[list[str]], object]) -> None:
    lines = path.read_text().splitlines()
    change(lines)
    path.write_text("".join(f"{line}\n" for line in lines))


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_log(path)
    return str(caught.value)


def test_a_log_comes_back_as_it_was_written(path: Path) -> None:
    log = read_log(path)
    assert log.events == EVENTS
    assert log.unseen == ("custom kernels",)


def test_a_log_that_is_written_as_it_grows_is_the_same_log(tmp_path: Path) -> None:
    many = EVENTS * (CHUNK // 4)
    writer = LogWriter(tmp_path / "grown", ["custom kernels"])
    for event in many:
        writer.append(event)
    assert "cut off" in refusal(tmp_path / "grown")
    writer.close()
    assert writer.count == len(many)
    assert read_log(tmp_path / "grown").events == many


def test_a_log_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no file can be written there"):
        LogWriter(tmp_path / "none" / "log")


def test_an_empty_log_is_a_log(tmp_path: Path) -> None:
    write_log(tmp_path / "empty", [])
    assert read_log(tmp_path / "empty").events == []


def test_another_version_is_refused_with_what_to_do(path: Path) -> None:
    edit(path, lambda lines: lines.__setitem__(0, lines[0].replace('"version":1', '"version":2')))
    assert "line 1: version 2 of warfence-log, this warfence reads version 1; record the log again" in refusal(path)


@pytest.mark.parametrize("header", ["", "{}", "[1]", "not json", '{"format": "other"}'])
def test_a_file_without_the_header_is_refused(path: Path, header: str) -> None:
    edit(path, lambda lines: lines.__setitem__(0, header))
    assert "line 1: not the header of a warfence-log" in refusal(path)


def test_other_fields_are_refused(path: Path) -> None:
    header = json.dumps({"format": "warfence-log", "version": 1, "fields": FIELDS[:-1]})
    edit(path, lambda lines: lines.__setitem__(0, header))
    assert "version 1 has: kind, lane" in refusal(path)


def test_every_cut_of_a_log_is_noticed(path: Path) -> None:
    whole = path.read_text()
    for end in range(0, len(whole), 7):
        path.write_text(whole[:end])
        refusal(path)


def test_a_cut_within_the_last_line_is_named_with_its_line(path: Path) -> None:
    path.write_text(path.read_text()[:-3])
    assert f"{path}, line 7: cut off within the line; record the log again" in refusal(path)


def test_lines_missing_in_the_middle_are_noticed(path: Path) -> None:
    edit(path, lambda lines: lines.pop(3))
    assert "4 events but the last line counts 5" in refusal(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("[", "line 3: not JSON"),
        ("1, 2", "line 3: not JSON"),
        ("{}", "line 3: not an event; an event is a list of: kind"),
        ('["peek", "forward"]', "line 3: unknown kind 'peek'; kinds: alloc, free, read, write, record"),
        ('["read", "forward", 0, "s", "t", 4, 4]', "line 3: a read of 't' [4, 4); name a resource and cells with 0 <="),
        ('["read", "forward", 0, "s", "", 0, 4]', "line 3: a read of ''"),
        ('["read", "", 0, "s", "t", 0, 4]', "line 3: a read without a lane"),
        ('["read", "forward", "one"]', "line 3: a field has the wrong type; launch"),
        ('["record", "forward"]', "line 3: a record without an event"),
        (
            '["await", "forward", 0, "", "", 0, 0, "e"]',
            "line 3: an await on lane 'forward' for record 0; a lane of the",
        ),
        ('["await", "host", 0, "", "", 0, 0, "e", 1]', "line 3: an await on lane 'host'"),
        ('["alloc", "schedule", 0, "s", "", 0, 4]', "line 3: a alloc of ''"),
        ('["wait_lane", "forward"]', "line 3: a wait_lane without the other lane"),
        ('["stage", "forward", 1]', "line 3: a stage without its name; name it as 'stage'"),
        ('["host_sync", "forward", 0, "", "", 0, 0, "e"]', "line 3: a host_sync on lane 'forward'"),
        ('["wait", "forward", 0, "", "", 0, 0, "e", 0, "copy"]', "line 3: a wait for lane 'copy' and event 'e'"),
    ],
)
def test_a_wrong_line_is_refused_with_its_number(path: Path, line: str, said: str) -> None:
    edit(path, lambda lines: lines.__setitem__(2, line))
    assert f"{path}, {said}" in refusal(path)


def test_a_line_that_is_no_text_is_refused_with_its_number(path: Path) -> None:
    lines = path.read_bytes().split(b"\n")
    lines[2] = b'["read", "\xff"]'
    path.write_bytes(b"\n".join(lines))
    assert f"{path}, line 3: not JSON" in refusal(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "none cannot be read (No such file or directory); give a log" in refusal(tmp_path / "none")


def test_a_log_keeps_what_was_there_until_its_first_record(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("an older log")
    writer = LogWriter(log)
    assert log.read_text() == "an older log"
    writer.append(EVENTS[0])
    writer.close()
    assert read_log(log).events == EVENTS[:1]

"""What programs that people outside wrote have shown besides their verdicts, which the catalogue holds."""

from __future__ import annotations

import pytest

from warfence.core.errors import InputError
from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.library import find
from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.sentences import sentences

HEADER = "title a program\ngroup over-fencing\nsource nobody\n"


@pytest.mark.parametrize("before", ["", "forward records e\n"])
def test_records_are_numbered_from_one(before: str) -> None:
    body = f"param D = 2\nlanes forward, schedule\nevent e\n{before}schedule awaits e record 1 - D\n"
    with pytest.raises(InputError, match=r"line \d+: record -1 of event 'e'; records are numbered from 1"):
        explore(parse(f"scenario early\n{HEADER}expect ok\n\n{body}"))


def test_of_two_threads_none_was_called_last() -> None:
    said = sentences(explore(find("second-thread")), None)[0]
    assert "called last" not in said
    assert said.endswith("ran first here, though thread load called it after the call of thread host"), said


def test_a_named_read_says_whose_value_is_lost() -> None:
    body = "lanes a, b\ntable t[1]\nlaunch 1 on a {\nwrites t\n}\nb reads t of launch 1\n"
    said = sentences(explore(parse(f"scenario lost\n{HEADER}expect bad\n\n{body}")), None)[0]
    assert said.endswith("ran first here, so that the read does not see the value of launch 1"), said

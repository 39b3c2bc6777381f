"""A parity report read back from its JSON is the report that was written; what is none is refused with its reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from warfence.core.errors import InputError
from warfence.parity.report import Report
from warfence.show.report.parity_file import read_parity


def test_a_report_read_back_says_the_same(report: Report, tmp_path: Path) -> None:
    path = tmp_path / "parity.json"
    written = json.dumps(report.to_json())
    path.write_text(written)
    read = read_parity(path)
    assert json.dumps(read.to_json()) == written
    assert [entry.result.failed for entry in read.cells] == [entry.result.failed for entry in report.cells]
    assert [entry.result.as_expected for entry in read.cells] == [entry.result.as_expected for entry in report.cells]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda found: found.pop("laws"), "no report of `warfence parity`: it has no 'laws'; give a file that"),
        (
            lambda found: found["cells"][0].update(mode="warp"),
            "the mode 'warp', known here are: decode, .* measure again",
        ),
        (
            lambda found: found["cells"][0].pop("sound"),
            r"no report of `warfence parity`: cells\[0\] has no 'sound'; .*measure again",
        ),
    ],
)
def test_another_document_is_refused(report: Report, tmp_path: Path, change: Any, message: str) -> None:
    found = json.loads(json.dumps(report.to_json()))
    change(found)
    path = tmp_path / "parity.json"
    path.write_text(json.dumps(found))
    with pytest.raises(InputError, match=message):
        read_parity(path)


def test_what_is_no_json_or_not_there_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "parity.json"
    with pytest.raises(
        InputError, match=r"cannot be read \(No such file or directory\); give a file that `warfence parity"
    ):
        read_parity(path)
    path.write_text("<html>")
    with pytest.raises(InputError, match=r"is no JSON .*; give a file that"):
        read_parity(path)
    path.write_text("[]")
    with pytest.raises(InputError, match=r"it is \[\]; allowed is an object"):
        read_parity(path)

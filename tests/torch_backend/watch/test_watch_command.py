"""`python -m warfence_torch.watch`: any script under watch, and the name that the module and the function share."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from warfence.races.check.log_file import read_log
from warfence_torch.tools.watching.command import main

RACY = """
import sys, torch
from warfence.host.lanes import WorkerLane
forward, schedule = WorkerLane("forward"), WorkerLane("schedule")
table = torch.arange(8)
forward.submit(lambda: table.clone())
if "--fence" in sys.argv:
    schedule.wait_lane(forward)
schedule.submit(lambda: table.zero_())
print("script:", __name__, sys.argv[1:], "table" in globals())
forward.synchronize(), schedule.synchronize()
forward.close(), schedule.close()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(RACY)
    return path


def test_a_race_ends_with_the_report_and_1(script: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shared", "__main__:table", "--out", str(tmp_path / "log"), str(script), "--quiet"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("script: __main__ ['--quiet'] True")
    assert "1. race: " in said
    assert "script.py:6 in <lambda>" in said
    assert read_log(tmp_path / "log").events


def test_the_fenced_one_is_clean(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--shared", "__main__:table", str(script), "--fence"]) == 0
    assert ": clean" in capsys.readouterr().out


def test_a_tensor_of_another_module_is_watched_from_the_start(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (script.parent / "engine_tables.py").write_text("import torch\npages = torch.arange(4)\n")
    script.write_text("import engine_tables, sys\nengine_tables.pages.clone()\nsys.exit(3)\n")
    monkeypatch.syspath_prepend(script.parent)
    assert main(["--shared", "engine_tables:pages", str(script)]) == 3


@pytest.mark.parametrize(
    ("arguments", "text", "said"),
    [
        (["{}"], "", "nothing to watch; name tensors, --shared __main__:table"),
        (["--shared", "table", "{}"], "", "--shared table: a module and a name in it are needed"),
        (["--shared", "no_such_module:t", "{}"], "", "--shared no_such_module:t: No module named"),
        (["--shared", "__main__:t", "{}.none"], "", "is no script that can be run"),
        (["--shared", "__main__:t", "{}"], "1 +", "is no script that can be run"),
        (["--shared", "__main__:t", "{}"], "t = 5", "the script never had t as a tensor or array"),
    ],
)
def test_bad_input_is_one_sentence_and_2(
    script: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], text: str, said: str
) -> None:
    script.write_text(text)
    assert main([one.format(script) for one in arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_a_script_that_fails_is_told_as_python_does(script: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.write_text("import torch\nt = torch.ones(2)\nt.clone()\n1 / 0\n")
    assert main(["--shared", "__main__:t", str(script)]) == 1
    captured = capsys.readouterr()
    assert "ZeroDivisionError" in captured.err
    assert "1 events on" in captured.out


BOTH = """
import warfence_torch
from warfence_torch import watch as function
import torch, warfence_torch.watch
from warfence_torch import watch as module
t = torch.arange(3)
for one in (function, module, warfence_torch.watch):
    with one(shared={"t": t}) as log:
        t.clone()
    assert len(log.log.events) == 1
print("both")
"""


@pytest.mark.slow
def test_the_name_is_a_function_and_a_module(script: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", BOTH], capture_output=True, text=True, check=False)
    assert ended.stdout == "both\n", ended.stderr
    command = [sys.executable, "-m", "warfence_torch.watch", "--shared", "__main__:table", str(script)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.returncode == 1, ended.stderr
    assert "1. race: " in ended.stdout

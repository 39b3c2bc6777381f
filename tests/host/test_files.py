"""One writer and one reader: nothing lost on any failure, links and devices kept, only regular files read."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from warfence.core.errors import InputError
from warfence.host import files
from warfence.host.files import OutputError, check_output, read_input, write_output
from warfence.host.switches import switch


def test_a_file_is_written_whole_and_keeps_its_mode(tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    write_output(out, "first")
    out.chmod(0o640)
    write_output(out, b"second")
    assert (out.read_text(), stat.S_IMODE(out.stat().st_mode)) == ("second", 0o640)
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    link = tmp_path / "link.txt"
    link.symlink_to("real.txt")
    write_output(link, "new")
    assert link.is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_device_is_written_through() -> None:
    check_output("--out", Path("/dev/null"))
    write_output(Path("/dev/null"), "away")
    assert not Path("/dev/null").is_file()


def test_a_full_disk_leaves_the_old_file(tmp_path: Path) -> None:
    """The limit on the size of files is real: the write fails in the middle."""
    out = tmp_path / "out.txt"
    out.write_text("what was there")
    code = (
        "import resource, signal, sys; from pathlib import Path; from warfence.host.files import write_output\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN); resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))\n"
        "try: write_output(Path(sys.argv[1]), 'x' * 5000, '--out')\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(out)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"OutputError --out '{out}' cannot be written (File too large)")
    assert out.read_text() == "what was there"
    assert [path.name for path in tmp_path.iterdir()] == ["out.txt"]


def test_what_cannot_be_moved_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out.txt"
    out.write_text("what was there")

    def full(*_: object) -> None:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(
        OutputError, match=r"cannot be written \(No space left on device\); what was there is as it was"
    ):
        write_output(out, "new")
    assert [path.read_text() for path in tmp_path.iterdir()] == ["what was there"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "is a folder; give a file"),
        ("none/out.txt", "no file can be written there; give one in a folder that is writable"),
        ("a" * 300, r"no file can be written there \(File name too long\)"),
        ("circle", r"no file can be written there \(.*\); give another name"),
        ("null\0byte", r"no file can be written there \(.*\); give another name"),
    ],
)
def test_where_nothing_can_be_written_is_said_before_the_run(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "circle").symlink_to("circle")
    with pytest.raises(InputError, match=said):
        check_output("--out", tmp_path / name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", r"cannot be read \(Is a directory\); give a file"),
        ("none", r"cannot be read \(No such file or directory\); give a file"),
        ("a" * 300, r"cannot be read \(File name too long\); give a file"),
        ("pipe", r"cannot be read \(it is no regular file\); give a file"),
        ("null\0byte", r"cannot be read \(.*\); give a file"),
        ("large", "has 2000 bytes, and at most 1000 are read; give a file"),
    ],
)
def test_what_is_no_regular_file_is_not_read(tmp_path: Path, name: str, said: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(b"x" * 2000)
    with pytest.raises(InputError, match=said):
        read_input(tmp_path / name, "the file", "give a file", most=1000)


def test_an_endless_device_is_not_read() -> None:
    with pytest.raises(InputError, match="no regular file"):
        read_input(Path("/dev/zero"), "it", "give a file")


def test_bounds_are_in_order() -> None:
    assert files.MOST_JSON < files.MOST_TEXT < files.MOST_BYTES


@pytest.mark.parametrize(("value", "on"), [(None, False), ("", False), ("0", False), ("1", True)])
def test_a_switch_is_zero_or_one(monkeypatch: pytest.MonkeyPatch, value: str | None, on: bool) -> None:
    monkeypatch.delenv("WARFENCE_TRIED", raising=False)
    if value is not None:
        monkeypatch.setenv("WARFENCE_TRIED", value)
    assert switch("WARFENCE_TRIED") is on


@pytest.mark.parametrize("value", ["true", "yes", "2", " 1"])
def test_what_is_no_switch_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("WARFENCE_TRIED", value)
    with pytest.raises(InputError, match=r"WARFENCE_TRIED is '.*'; it is 0 or 1, or not set"):
        switch("WARFENCE_TRIED")

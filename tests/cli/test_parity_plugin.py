"""The suite under pytest from any directory, as a user with a backend of their own runs it, and as one without does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow


def run_pytest(folder: Path, *arguments: str, plugin: bool = True) -> tuple[int, str]:
    """Status and output. `-p` stands for the entry point, so that it does not matter whether warfence is installed."""
    environ = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    if plugin:
        environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    which = "parity_tests.plugin" if plugin else "no:warfence_parity"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-p", which, *arguments]
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("option", ["--skips-file", "--xfails-file"])
def test_from_any_directory_with_a_file_of_ids(tmp_path: Path, option: str) -> None:
    """Strict markers, so the plugin has declared its own; and an expected failure that passes fails."""
    (tmp_path / "ids.txt").write_text("decode / live / marker / fine / batch 1 # mine\n1-nothing # gone\n")
    status, said = run_pytest(
        tmp_path, "--strict-markers", "--pyargs", "parity_tests.test_matrix", "--backend", "strict",
        "-k", "lands and decode", "-rs", option, "ids.txt",
    )  # fmt: skip
    assert "warning: ids.txt, line 2: '1-nothing' matches nothing" in said
    if option == "--skips-file":
        assert status == 0, said
        assert "mine" in said
    else:
        assert status == 1, said
        assert "[XPASS(strict)] mine" in said


def test_the_header_says_what_is_tested(tmp_path: Path) -> None:
    status, said = run_pytest(tmp_path, "-v", "--pyargs", "parity_tests.test_matrix", "--backend", "strict", "--co")
    assert status == 0, said
    assert "strict-cpu" in said
    (variables,) = [line for line in said.splitlines() if line.startswith("variables that move races: ")]
    assert "OMP_NUM_THREADS=1" in variables
    assert "torch-cpu" not in said


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--backend", "torhc"], "unknown backend 'torhc'; nearest: torch; or give a dotted path"),
        (["--backend", "no_such:X"], "backend 'no_such:X' cannot be loaded from 'no_such:X': No module named"),
        (["--skips-file", "absent.txt"], "'absent.txt' cannot be read"),
    ],
)
def test_bad_input_ends_before_any_test(tmp_path: Path, arguments: list[str], message: str) -> None:
    status, said = run_pytest(tmp_path, "--pyargs", "parity_tests.test_matrix", *arguments)
    assert status == 4, said
    assert f"ERROR: {message}" in said


def test_another_project_may_have_a_backend_option_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(
        "def pytest_addoption(parser): parser.addoption('--backend', default='mine')\n"
    )
    (tmp_path / "test_it.py").write_text(
        "def test_it(pytestconfig): assert pytestconfig.getoption('--backend') == 'x'\n"
    )
    status, said = run_pytest(tmp_path, "test_it.py", "--backend", "x")
    assert status == 0, said
    assert "warfence" not in said


def test_a_bare_checkout_needs_no_entry_point() -> None:
    status, said = run_pytest(ROOT, "parity_tests/test_matrix.py", "--backend", "strict", "--co", plugin=False)
    assert status == 0, said
    assert "strict-cpu" in said

"""The `gpu` marker: skipped with its reason where no device is, run where one is, and free where nobody uses it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CONFTEST = Path(__file__).with_name("conftest.py")
MARKED = "import pytest\n\n@pytest.mark.gpu\ndef test_it():\n    pass\n\ndef test_other():\n    pass\n"
PRETEND_TORCH = """
import types
cuda = types.SimpleNamespace(device_count=lambda: {}, get_device_name=lambda index: "pretend")
get_num_threads = lambda: 1
"""

pytestmark = pytest.mark.slow


def run_pytest(folder: Path, torch: str, *arguments: str) -> str:
    """The report of a run over one `gpu` test and one other, with `torch` as the source of the module torch."""
    shutil.copy(CONFTEST, folder)
    (folder / "torch.py").write_text(torch)
    (folder / "test_marked.py").write_text(MARKED)
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = gpu: a device\n")
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", *arguments]
    environ = os.environ | {"PYTHONPATH": os.pathsep.join([str(folder), str(CONFTEST.parents[1])])}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)
    return done.stdout


def test_without_a_device_it_is_skipped_with_its_reason(tmp_path: Path) -> None:
    report = run_pytest(tmp_path, PRETEND_TORCH.format(0))
    assert "1 passed, 1 skipped" in report
    assert "needs a CUDA device: torch sees none" in report


def test_with_a_device_it_runs(tmp_path: Path) -> None:
    assert "2 passed" in run_pytest(tmp_path, PRETEND_TORCH.format(1))


def test_torch_is_not_imported_when_no_marked_test_will_run(tmp_path: Path) -> None:
    assert "1 passed, 1 deselected" in run_pytest(tmp_path, "raise SystemExit('imported')", "-m", "not gpu")

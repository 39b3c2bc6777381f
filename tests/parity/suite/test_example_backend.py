"""The worked third backend is short, and the parity suite passes on it (all of it with WARFENCE_THOROUGH=1)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TARGET = "examples.threads_backend:ThreadsBackend"


def test_it_is_short() -> None:
    assert len((ROOT / "examples" / "threads_backend.py").read_text().splitlines()) < 150


@pytest.mark.slow
def test_the_suite_passes_on_it() -> None:
    command = [sys.executable, "-m", "pytest", "parity_tests", "-q", "-p", "no:cacheprovider", "--backend", TARGET]
    if os.environ.get("WARFENCE_THOROUGH") != "1":
        command += ["-k", "law_holds or no_fence_corrupts or (test_matrix and decode and captured)"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout

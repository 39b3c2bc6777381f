from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_tables_on_another_device_than_the_forward() -> None:
    """In a process of its own: how many CPU devices there are is settled when JAX starts."""
    command = [sys.executable, "-W", "error", "-m", "tests.jax_backend.split_devices"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

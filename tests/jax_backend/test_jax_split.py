from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_tables_on_another_device_than_the_forward() -> None:
    """In a process of its own: how many CPU devices there are is settled when JAX starts."""
    program = Path(__file__).with_name("split_devices.py")
    done = subprocess.run([sys.executable, "-W", "error", program], capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr

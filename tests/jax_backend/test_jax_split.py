from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from warfence_jax.backend import JaxBackend

from . import late

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_tables_on_another_device_than_the_forward() -> None:
    """In a process of its own: how many CPU devices there are is settled when JAX starts."""
    command = [sys.executable, "-W", "error", "-m", "tests.jax_backend.split_devices"]
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, "JAX_PLATFORMS": "cpu"}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("tables", ["donated", "aliased"])
def test_the_same_forward_on_one_device(tables: str) -> None:
    """Rows that stand where only the device knows, and a table that is read in the tail (`split_devices` runs it too)."""
    backend = JaxBackend(tables=tables)
    forward = late.make(backend)
    assert [e.segment.label for e in forward.executables] == [
        "resolve..swa_page_table", "swa_window..store", "commit..keep"
    ]  # fmt: skip
    assert late.serve(backend, forward) == late.expected()
    assert backend.report()["donation"] == "in place"
    backend.close()

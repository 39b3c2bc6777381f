"""The example with a kernel in Triton: what it prints on a device, and what it says where there is none."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

EXAMPLE = Path(__file__).parents[3] / "examples" / "paged_attention.py"


def run() -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, check=False)


@pytest.mark.slow
@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_where_there_is_no_device_it_says_so() -> None:
    ended = run()
    assert ended.returncode == 2
    assert "this example needs" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.gpu
def test_the_write_lands_behind_the_last_read() -> None:
    ended = run()
    assert ended.returncode == 0, ended.stderr
    assert "the scheduler's write lands while the graph stands 'behind the last read'" in ended.stdout

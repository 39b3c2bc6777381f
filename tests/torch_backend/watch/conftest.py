"""Stands to run programs on: a torch.cuda without a device, where the order of calls is all that counts, and a real device."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from tests.torch_backend.watch import fake_cuda


@pytest.fixture(params=["calls of torch.cuda", pytest.param("cuda", marks=pytest.mark.gpu)])
def on_cuda(request: pytest.FixtureRequest) -> None:
    """Makes calls of torch.cuda possible."""
    if request.param == "calls of torch.cuda":
        fake_cuda.install(request.getfixturevalue("monkeypatch"))
    elif not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")

"""Stands to run programs on: host lanes, a torch.cuda without a device, and a real device."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("torch")

import torch

from tests.torch_backend.watch import fake_cuda
from tests.torch_backend.watch.stands import CudaStand, HostStand, Stand


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Callable[[], CudaStand]:
    return fake_cuda.install(monkeypatch)


@pytest.fixture(params=["host lanes", "calls of torch.cuda", pytest.param("cuda", marks=pytest.mark.gpu)])
def stand(request: pytest.FixtureRequest) -> Iterator[Stand]:
    if request.param == "cuda" and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device")
    made = {
        "host lanes": HostStand, "cuda": CudaStand, "calls of torch.cuda": lambda: request.getfixturevalue("fake")(),
    }[request.param]()  # fmt: skip
    yield made
    made.close()

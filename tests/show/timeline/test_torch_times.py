"""What is particular to torch: only a backend that was asked for times makes forwards that note them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.show.timeline.conftest import Trace, model
from warfence.parity.small import make_engine
from warfence_torch.backend import TorchBackend
from warfence_torch.forward_host import HostForward
from warfence_torch.tools.timing_host import TimedHostForward


@pytest.mark.parametrize(("timed", "kind"), [(False, HostForward), (True, TimedHostForward)])
def test_who_does_not_ask_does_not_pay(timed: bool, kind: type) -> None:
    backend = TorchBackend()
    if timed:
        backend.time_stages()
    with make_engine(model(), backend, rows=1, extend_rows=1) as engine:
        assert {type(planned.forward) for planned in engine.forwards.all()} == {kind}


@pytest.mark.gpu
@pytest.mark.slow
def test_on_a_gpu_the_stages_fill_the_launch(trace: Trace) -> None:
    """Stages follow one another on the device's clock, and no launch is lost though two of them take turns in the graphs."""
    timeline = trace("torch", "cuda")
    assert "between the clocks" in timeline.about
    assert list(timeline.launches) == list(range(timeline.launches[0], timeline.launches[-1] + 1))
    for launch in timeline.launches:
        begin, end = timeline.span(launch, launch)
        inside = sum(s.end - s.begin for s in timeline.slices if s.kind == "stage" and s.launch == launch)
        assert 0 < inside <= (end - begin) * 1.001

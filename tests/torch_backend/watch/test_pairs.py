"""Every pair gets its verdict, on host lanes and on the calls of torch.cuda."""

from __future__ import annotations

import pytest

from tests.torch_backend.watch.pairs import NOT_EXPRESSED, PAIRS
from tests.torch_backend.watch.stands import HostStand, Stand
from warfence_torch.tools.watching import watch


@pytest.mark.parametrize("racy", [True, False], ids=["racy", "fixed"])
@pytest.mark.parametrize("name", PAIRS)
def test_a_pair_gets_its_verdict(stand: Stand, name: str, racy: bool) -> None:
    pair = PAIRS[name]
    if pair.blocks and isinstance(stand, HostStand):
        pytest.skip("blocks that an allocator hands on are CUDA's")
    with watch(shared=stand.shared, host={"pin": stand.pin}, names=stand.names, blocks=pair.blocks) as log:
        pair.program(stand, racy)
    report = log.check()
    assert ("race" in report.kinds()) is racy, log.log.events
    assert {"forward", "schedule"} & set(report.lanes)


def test_every_scenario_is_expressed_or_says_why_not() -> None:
    expressed = [scenario for pair in PAIRS.values() for scenario in pair.expresses]
    assert len(expressed) == len(set(expressed)) == 34
    assert not set(expressed) & set(NOT_EXPRESSED)

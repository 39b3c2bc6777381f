"""The catalogue on CUDA: streams, captured graphs with event nodes, pinned memory, blocks of the caching allocator."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from warfence.races.replay.verdicts import replay, replay_fixed
from warfence.races.scenarios.library import catalogue, find
from warfence.races.scenarios.program import Scenario

pytestmark = [pytest.mark.gpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def machines():
    from warfence_torch.tools.replay.cuda import CudaMachines

    return CudaMachines()


@pytest.mark.parametrize("scenario", catalogue(), ids=lambda one: one.id)
def test_what_the_lanes_show_is_what_is_expected_and_explored(scenario: Scenario, machines) -> None:
    replayed = replay(scenario, machines)
    assert replayed.lacks or (replayed.verdict, replayed.explored) == (scenario.expect, scenario.expect), replayed.shown


@pytest.mark.parametrize("scenario", [one for one in catalogue() if one.fixed_by], ids=lambda one: one.id)
def test_the_same_order_is_harmless_in_the_fixed_twin(scenario: Scenario, machines) -> None:
    replayed = replay_fixed(scenario, machines)
    assert replayed.lacks or (replayed.verdict, replayed.explored) == ("ok", "ok"), replayed.shown


def test_blocks_of_the_allocator_can_be_expressed(machines) -> None:
    assert replay(find("block-lifetime"), machines).verdict == "bad"

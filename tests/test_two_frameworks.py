"""examples/one_table_two_frameworks.py, and the other way round."""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")
pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[1] / "examples" / "one_table_two_frameworks.py"


@pytest.mark.slow
def test_torch_writes_behind_the_word_of_jax() -> None:
    found = runpy.run_path(str(EXAMPLE))["run"]()
    assert [right for right, _ in found] == [True] * len(found)


def test_without_the_wait_the_read_is_not_what_stood_there() -> None:
    """The negative arm, forced: what the wait orders is the only thing between the write and the read."""
    import jax
    import torch

    from warfence_jax.aliased import aligned_zeros

    memory = aligned_zeros((4, 4))
    table = jax.device_put(memory)
    torch.from_numpy(memory).fill_(7)
    assert (np.asarray(jax.jit(lambda t: t + 0)(table)) == 7).all()  # the device array is this very memory


def test_jax_reads_behind_a_word_that_a_torch_lane_counts() -> None:
    """The other way round: a torch forward on a worker lane reads, and counts; who writes for JAX waits for that word."""
    import torch

    from warfence.core import AtLeast, Ticket
    from warfence.host.lanes import HostWord, WorkerLane
    from warfence_jax.aliased import aligned_zeros

    memory = aligned_zeros((4, 4))
    by_torch, word, read = torch.from_numpy(memory), HostWord("torch"), list[bool]()
    forward, schedule = WorkerLane("forward"), WorkerLane("schedule")
    try:
        for step in range(1, 4):
            schedule.wait(Ticket(step, AtLeast(word, step, step)))
            schedule.submit(lambda step=step: memory.fill(step))
            assert not schedule.settle(0)
            forward.submit(lambda step=step: read.append(bool((by_torch.clone() == step - 1).all())))
            forward.submit(lambda step=step: word.raise_to(step))
            schedule.synchronize()
    finally:
        forward.close()
        schedule.close()
    assert read == [True] * 3

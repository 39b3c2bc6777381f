"""One table, two frameworks: torch writes what a JAX forward reads, behind JAX's word. A word is memory and knows no framework.

On a CPU both see the same numpy memory. The JAX executable counts its word right behind its read of the table, while most of its
layers are still to come; torch's lane waits for the word and writes in place. `python examples/one_table_two_frameworks.py`
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import torch

from warfence.core import AtLeast, Ticket
from warfence.host.lanes import WorkerLane
from warfence_jax.aliased import aligned_zeros
from warfence_jax.compiled import refuse_late
from warfence_jax.fence_word import DonatedWord, HostMemory
from warfence_jax.marking import mark

ROWS, WIDTH, LAYERS, STEPS = 8, 512, 24, 4


def forward(table: jax.Array, h: jax.Array, word: jax.Array, zero: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Read the table, count the word, and go on for a while."""
    word, (read,) = mark(word, zero, [table[:ROWS]], [], loops=True)
    h = h + 1e-6 * read.sum()
    for _ in range(LAYERS):
        h = jnp.tanh(h @ h)
    return h, read, word


def run() -> list[tuple[bool, bool]]:
    """For each step: did the forward read what stood there at its launch, and was the write over before the forward was."""
    memory = aligned_zeros((64, 4))
    table, by_torch = jax.device_put(memory), torch.from_numpy(memory)  # one memory
    device = jax.devices("cpu")[0]
    word = DonatedWord("shared", device)
    seen_by_host = HostMemory(word.address, "shared")
    h = jnp.eye(WIDTH)
    handle = word.take()
    compiled = jax.jit(forward, donate_argnums=2).lower(table, h, handle, word.zero).compile()
    word.give(handle)
    word.free()
    refuse_late(compiled, ["table"], 2, "one table, two frameworks")
    schedule, found = WorkerLane("schedule"), []
    by_torch.fill_(0)
    for step in range(1, STEPS + 1):
        schedule.wait(Ticket(step, AtLeast(seen_by_host, step, step)))  # before its launch: nothing binds to a record
        schedule.submit(lambda step=step: by_torch.fill_(step))  # type: ignore[misc]
        h_out, read, counted = compiled(table, h, word.take(), word.zero)
        word.give(counted)
        word.free()
        schedule.synchronize()
        early = not h_out.is_ready()
        found.append((bool((np.asarray(read) == step - 1).all()), early))
    schedule.close()
    return found


if __name__ == "__main__":
    for step, (right, early) in enumerate(run(), 1):
        print(f"step {step}: read what stood there: {right}; torch had written before the forward was over: {early}")

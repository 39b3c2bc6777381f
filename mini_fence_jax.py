"""The same idea on JAX: no events here. Donation holds a write until the executables that took the table are over.

So the forward is cut behind its last read, and what opens the way is the end of the first part. And where nothing is
donated, nothing holds. `python mini_fence_jax.py` runs on a CPU and needs jax alone; `mini_fence.py` is the story without it.
"""

import threading
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

KV = np.array([ord(c) for c in "sleptbarks"], np.int32)  # five slots of each request
MINE, OTHER = np.arange(5, dtype=np.int32), np.arange(5, 10, dtype=np.int32)  # the row's slots, then somebody else's
Forward = Callable[[jax.Array], jax.Array]


def layers(h: jax.Array) -> jax.Array:
    """[5] int32 zeros, after a while. h [512, 512] float32, zeros."""
    return jax.lax.fori_loop(0, 60, lambda _, x: jnp.tanh(x @ x), h)[0, :5].astype(jnp.int32)


def donated(name: str, forward: Forward) -> None:
    """Overwrite a donated table under a running forward; say when the write was ready, and what the forward wrote."""
    write = jax.jit(lambda table, values: table.at[:].set(values), donate_argnums=0)  # same memory, a new handle
    for quiet in (True, False):  # the first time compiles
        table, issued, said = jnp.array(MINE), threading.Event(), list[str]()

        def lane(table: jax.Array, issued: threading.Event, said: list[str]) -> None:
            out = forward(table)
            issued.set()
            said.append("".join(map(chr, out.tolist())))

        thread = threading.Thread(target=lane, args=(table, issued, said))  # a live thread is a lane
        begin = time.perf_counter()
        thread.start()
        issued.wait()
        write(table, OTHER).block_until_ready()
        landed = time.perf_counter()
        thread.join()
        part = (landed - begin) / (time.perf_counter() - begin)
        if not quiet:
            print(f"{name:<34} the write is ready at {part:4.0%} of the step: the cat {said[0]}")


def main() -> None:
    """Donated and uncut, donated and cut, and a table that nobody donates."""
    kv, h = jnp.array(KV), jnp.zeros((512, 512))
    whole = jax.jit(lambda table: kv[table] + layers(h + 0.0 * table.sum()))
    head, rest = jax.jit(lambda table: kv[table]), jax.jit(lambda rows: rows + layers(h + 0.0 * rows.sum()))
    donated("donated, one executable", lambda table: whole(table))
    donated("donated, cut behind the last read", lambda table: rest(head(table)))

    late = jax.jit(lambda table, h: kv[table + layers(h)])  # reads at its end
    raw = np.zeros(5 * 4 + 64, np.uint8)
    at = -raw.ctypes.data % 64
    aliased = raw[at : at + 20].view(np.int32)  # aligned, so that the device array is this very memory
    for quiet in (True, False):
        aliased[:] = MINE
        out = late(jax.device_put(aliased), h)
        aliased[:] = OTHER  # nothing fences it: JAX does not know
        said = "".join(map(chr, out.tolist()))
        if not quiet:
            print(f"{'aliased numpy memory, no fence':<34} the write is there at once: the cat {said}")


if __name__ == "__main__":
    main()

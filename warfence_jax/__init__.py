"""The JAX backend: chains of ahead-of-time executables, cut at the read boundary; waits are operands.

`from warfence_jax import cut` cuts a function that is not ours; it is loaded when it is asked for.
"""

from typing import Any

FROM_BOUNDARY = ("Cut", "cut", "marked")


def __getattr__(name: str) -> Any:
    if name not in FROM_BOUNDARY:
        raise AttributeError(f"module 'warfence_jax' has no attribute '{name}'")
    from warfence_jax import boundary

    return getattr(boundary, name)

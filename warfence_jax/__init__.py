"""The JAX backend: chains of ahead-of-time executables, cut at the read boundary; waits are operands.

`cut(fn, args, shared_argnums=...)` cuts any jittable function behind its last read of a shared array; `marked` puts a
callback there instead. Both are loaded when first asked for.
"""

from importlib import import_module
from typing import Any

LAZY = {
    "Cut": "warfence_jax.tools.cutting",
    "cut": "warfence_jax.tools.cutting",
    "marked": "warfence_jax.tools.cutting",
}


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module 'warfence_jax' has no attribute '{name}'")
    return getattr(import_module(LAZY[name]), name)

"""warfence: a write-after-read fence for overlapped LLM servers, written once and implemented on two backends.

This package is the neutral half: it imports neither PyTorch nor JAX. `warfence.NAME` is any public name of the heart,
`warfence.core`, or `RULE_SETS` (ours and those of the public implementation's states, `warfence.parity.history`); it is imported
when it is first asked for, so that `import warfence` costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from warfence.core import *  # noqa: F403
    from warfence.parity.history import RULE_SETS as RULE_SETS

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "RULE_SETS":
        return import_module("warfence.parity.history").RULE_SETS
    if not name.startswith("_") and name != "core":
        core = import_module("warfence.core")
        if name in core.__all__:
            return getattr(core, name)
    raise AttributeError(
        f"module 'warfence' has no attribute '{name}'; its public names are RULE_SETS and those of warfence.core"
    )


def __dir__() -> list[str]:
    return ["__version__", "RULE_SETS", *import_module("warfence.core").__all__]

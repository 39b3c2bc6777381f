"""warfence on torch: host lanes on CPU, streams and captured graphs on CUDA.

`plant(fn, shared=[...])` finds where a function's shared reads end and plants the marker there; `stage(name)` names them.
`watch(shared=...)` records any torch program as an event log. All are loaded when first asked for.
"""

from importlib import import_module
from typing import Any

LAZY = {
    "measure_graph": "warfence_torch.tools.graphs",
    "plant_graph": "warfence_torch.tools.graphs",
    "read_graph": "warfence_torch.tools.graphs",
    "plant": "warfence_torch.tools.planting",
    "stage": "warfence_torch.tools.planting",
    "watch": "warfence_torch.tools.watching",
}


def __getattr__(name: str) -> Any:
    if name not in LAZY:
        raise AttributeError(f"module 'warfence_torch' has no attribute '{name}'")
    return getattr(import_module(LAZY[name]), name)

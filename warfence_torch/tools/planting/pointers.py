"""Hears who takes the address or the values of a tensor, without a torch function mode: under one, torch takes other ways.

(`nn.TransformerEncoder` leaves its fast path, and with it the zeros that it gives for padding.) The methods of
`torch.Tensor` are replaced while anybody listens; a call is heard by the thread that makes it alone.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor

from warfence_torch.tools.watching.patches import Patches

TAKES_POINTER = ("data_ptr", "untyped_storage", "storage", "_typed_storage", "__dlpack__")
TAKES_VALUES = ("tolist", "numpy", "__array__")
Heard = Callable[[str, Tensor], None]

_lock = threading.Lock()
_listening = 0
_patches = Patches()
_thread = threading.local()


@contextmanager
def hearing(heard: Heard) -> Iterator[None]:
    """What this thread takes meanwhile is told: heard(name of the method, tensor)."""
    global _listening
    before = getattr(_thread, "heard", None)
    with _lock:
        _listening += 1
        if _listening == 1:
            for name in (*TAKES_POINTER, *TAKES_VALUES):
                _patches.wrap(Tensor, name, functools.partial(_tell, name))
    _thread.heard = heard
    try:
        yield
    finally:
        _thread.heard = before
        with _lock:
            _listening -= 1
            if _listening == 0:
                _patches.restore()


def _tell(name: str, original: Callable[..., Any], t: Tensor, *args: Any, **kwargs: Any) -> Any:
    if (heard := getattr(_thread, "heard", None)) is not None:
        _thread.heard = None  # what hears looks at the tensor itself
        try:
            heard(name, t)
        finally:
            _thread.heard = heard
    return original(t, *args, **kwargs)

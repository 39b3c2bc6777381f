"""`python -m warfence_torch.watch SCRIPT ARGS`: any script under watch, as `python -m pdb` runs one.

`from warfence_torch import watch` gives the function, whether this module was imported before or not.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    """A submodule takes its name in the package; so this one does what the function of that name does."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from warfence_torch.tools.watching import watch

        return watch(*args, **kwargs)


sys.modules[__name__].__class__ = _Callable

if __name__ == "__main__":
    from warfence_torch.tools.watching.command import main

    sys.exit(main(sys.argv[1:]))

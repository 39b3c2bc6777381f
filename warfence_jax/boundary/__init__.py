"""Cut any jittable function behind its last read of a shared array, or mark that place inside one executable.

The package is not called `cut`, so that `from warfence_jax import cut` is always the function.
"""

from warfence_jax.boundary.cut import Cut, cut
from warfence_jax.boundary.marked import Marked, marked

__all__ = ["Cut", "Marked", "cut", "marked"]

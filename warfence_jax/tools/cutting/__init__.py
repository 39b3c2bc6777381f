"""Cut any jittable function behind its last read of a shared array, or mark that place inside one executable."""

from warfence_jax.tools.cutting.cut import Cut, cut
from warfence_jax.tools.cutting.marked import Marked, marked

__all__ = ["Cut", "Marked", "cut", "marked"]

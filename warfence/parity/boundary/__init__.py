"""Find the read boundary instead of trusting it: what a traced function reads, and where its marker belongs.

`warfence_torch.plant` and `warfence_jax.cut` trace a function into `Operation`s; where the reads end is decided here, once.
"""

from warfence.parity.boundary.find import Boundary, find
from warfence.parity.boundary.kept import Kept
from warfence.parity.boundary.trace import Access, Operation

__all__ = ["Access", "Boundary", "Kept", "Operation", "find"]

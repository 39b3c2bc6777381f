"""The ops of programs in plain numpy. One file a room: the model, speculative verify, and the drafts."""

from warfence.testing.kernels.drafts import DRAFTS
from warfence.testing.kernels.model import MODEL
from warfence.testing.kernels.shared import Array, Kernel
from warfence.testing.kernels.verify import VERIFY

KERNELS: dict[str, Kernel] = MODEL | VERIFY | DRAFTS

__all__ = ["KERNELS", "Array", "Kernel"]

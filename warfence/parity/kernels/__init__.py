"""The ops of programs in plain numpy. One file a room: the model, speculative verify, and the drafts."""

from warfence.parity.kernels.drafts import DRAFTS
from warfence.parity.kernels.model import MODEL
from warfence.parity.kernels.shared import Array, Kernel
from warfence.parity.kernels.verify import VERIFY

KERNELS: dict[str, Kernel] = MODEL | VERIFY | DRAFTS

__all__ = ["KERNELS", "Array", "Kernel"]

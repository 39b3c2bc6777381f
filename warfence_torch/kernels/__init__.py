"""The ops of programs as torch functions. One file a room: the model, and each way to speculate."""

from warfence_torch.kernels import dflash, eagle, model, ngram, verify
from warfence_torch.kernels.shared import Kernel

KERNELS: dict[str, Kernel] = {
    **model.KERNELS,
    **verify.KERNELS,
    **dflash.KERNELS,
    **eagle.KERNELS,
    **ngram.KERNELS,
}

__all__ = ["KERNELS", "Kernel"]

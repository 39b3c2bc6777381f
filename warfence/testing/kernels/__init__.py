"""The ops of programs in plain numpy. One file a room: the model, and each way to speculate."""

from warfence.testing.kernels.model import Array, KERNELS, Kernel

__all__ = ["Array", "KERNELS", "Kernel"]

"""The ops of programs as torch functions. One file a room: the model, and each way to speculate."""

from warfence_torch.kernels.model import KERNELS

__all__ = ["KERNELS"]

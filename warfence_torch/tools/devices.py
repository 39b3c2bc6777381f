"""What torch can run on here, for `warfence doctor`."""

from __future__ import annotations

import torch


def devices() -> list[tuple[str, str]]:
    """(platform, name) of each device, the CPU first."""
    gpus = [("cuda", torch.cuda.get_device_name(index)) for index in range(torch.cuda.device_count())]
    return [("cpu", f"{torch.get_num_threads()} threads"), *gpus]

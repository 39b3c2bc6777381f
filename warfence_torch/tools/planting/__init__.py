"""Find where a torch function's shared reads end, and plant the read-done marker there."""

from warfence_torch.tools.planting.plant import plant
from warfence_torch.tools.planting.planted import Planted
from warfence_torch.tools.planting.stages import stage

__all__ = ["Planted", "plant", "stage"]

"""Any captured CUDA graph: who reads a table last, by parameters and measured, and the read-done marker planted there."""

from warfence_torch.tools.graphs.measure import MeasuredGraph, measure_graph
from warfence_torch.tools.graphs.plant import plant_graph
from warfence_torch.tools.graphs.read import read_graph

__all__ = ["MeasuredGraph", "measure_graph", "plant_graph", "read_graph"]

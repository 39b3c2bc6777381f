"""What the threads backend says of itself, as an entry point of the group `warfence.backends` would name it.
warfence serve --backend examples.threads_package:PACKAGE
warfence replay no-fence --backend examples.threads_package:PACKAGE
"""

import numpy as np

from warfence.backend_package import BackendPackage
from warfence.races.replay.host_cells import CellMachines, Library
from warfence.races.replay.machine import Machines

PACKAGE = BackendPackage(
    name="threads",
    factory="examples.threads_backend:ThreadsBackend",
    title="numpy on worker threads",
    devices=("cpu",),
    replay={"cpu": "examples.threads_package:on_cpu"},
)


def on_cpu() -> list[Machines]:
    """Scenarios on worker lanes that are there already; numpy arrays are all that this backend adds."""
    return [CellMachines("threads/cpu", Library(lambda size: np.zeros(size, np.int32)))]

"""Runs the stages of one region over a workspace. Shared by the recorded forward (CPU) and the captured one (CUDA)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from torch import Tensor

from warfence.errors import InputError, WarfenceError
from warfence.program import Stage
from warfence_torch.kernels import KERNELS


class StageEnv(dict[str, Tensor]):
    """What one stage may see. Anything it did not declare is an error that names the stage."""

    def __init__(self, stage: str, known: Mapping[str, Tensor]) -> None:
        super().__init__(known)
        self.stage = stage

    def __missing__(self, name: str) -> Tensor:
        raise WarfenceError(
            f"stage '{self.stage}' uses '{name}', which it does not declare; it declares: {', '.join(sorted(self))}"
        )


StageCall = Callable[[dict[str, Tensor]], None]


def bind(stage: Stage, fixed: Mapping[str, Tensor]) -> StageCall:
    """A call of the stage's kernel over the workspace. `fixed`: tables, state and weights, which never move."""
    if stage.op not in KERNELS:
        raise InputError(f"stage '{stage.name}' has the op '{stage.op}'; this backend knows: {', '.join(KERNELS)}")
    missing = [n for n in (*stage.reads, *stage.state, *stage.params) if n not in fixed]
    if missing:
        raise InputError(f"stage '{stage.name}' needs {missing}, which were not made: call tables() and load() first")
    kernel, env, takes = KERNELS[stage.op], StageEnv(stage.name, {}), stage.takes
    env.update({n: fixed[n] for n in (*stage.reads, *stage.state, *stage.params)})

    def call(workspace: dict[str, Tensor]) -> None:
        for name in takes:
            env[name] = workspace[name]
        given = kernel(env, stage.attrs)
        if given.keys() != set(stage.gives):
            raise WarfenceError(f"stage '{stage.name}' gave {sorted(given)} but declares {sorted(stage.gives)}")
        workspace.update(given)

    return call

"""How a stage becomes a call of a kernel, for any kind of array. What a kernel may see and must give is checked here, once.

A backend brings a table op -> kernel; a kernel takes what its stage declares and returns what its stage gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from warfence.core.errors import InputError, WarfenceError
from warfence.core.program import Stage

A = TypeVar("A")
Kernel = Callable[[Mapping[str, A], Mapping[str, Any]], dict[str, A]]
StageCall = Callable[[dict[str, A]], dict[str, A]]


class StageEnv(dict[str, A]):
    """What one stage may see. Anything that it did not declare is an error that names the stage."""

    def __init__(self, stage: str, known: Mapping[str, A]) -> None:
        super().__init__(known)
        self.stage = stage

    def __missing__(self, name: str) -> A:
        raise WarfenceError(
            f"stage '{self.stage}' uses '{name}', which it does not declare; it declares: {', '.join(sorted(self))}"
        )


def kernel_of(stage: Stage, kernels: Mapping[str, Kernel[A]]) -> Kernel[A]:
    """The kernel of the stage's op; InputError with the known ops otherwise."""
    if stage.op not in kernels:
        raise InputError(f"stage '{stage.name}' has the op '{stage.op}'; this backend knows: {', '.join(kernels)}")
    return kernels[stage.op]


def check_given(stage: Stage, given: Mapping[str, A], declared: Iterable[str]) -> None:
    """WarfenceError unless the kernel gave exactly what is declared."""
    if given.keys() != set(declared):
        raise WarfenceError(f"stage '{stage.name}' gave {sorted(given)} but declares {sorted(declared)}")


def bind(stage: Stage, fixed: Mapping[str, A], kernels: Mapping[str, Kernel[A]]) -> StageCall[A]:
    """A call of the stage's kernel that takes from a workspace, leaves its values there, and returns them.

    fixed: tables, state (updated in place) and weights, which never move. The call is for one thread at a time. InputError
    for an unknown op, or for arrays that are not made.
    """
    kernel = kernel_of(stage, kernels)
    names = (*stage.reads, *stage.state, *stage.params)
    if missing := [n for n in names if n not in fixed]:
        raise InputError(f"stage '{stage.name}' needs {missing}, which were not made: call tables() and load() first")
    env, takes = StageEnv(stage.name, {n: fixed[n] for n in names}), stage.takes

    def call(workspace: dict[str, A]) -> dict[str, A]:
        for name in takes:
            env[name] = workspace[name]
        given = kernel(env, stage.attrs)
        check_given(stage, given, stage.gives)
        workspace.update(given)
        return given

    return call


def for_call(name: str, have: int, need: int) -> int:
    """How many of the `have` locations in a snapshot a call for `need` new tokens uses: a padded or piecewise call takes the
    first ones. WarfenceError where the snapshot is too short; ask before anything is written (law 10)."""
    if have < need:
        raise WarfenceError(
            f"snapshot '{name}' holds {have} write locations a row and the call writes {need}: the snapshot was made for "
            f"a shorter call; make it anew when the metadata is made, and never fall back to the live table"
        )
    return need

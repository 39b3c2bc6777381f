"""Which stage reads last, as the compiled modules of a forward say."""

from __future__ import annotations

from collections.abc import Iterable

from warfence.core.program import ForwardProgram
from warfence_jax.compiled import Module, Use, stage_of
from warfence_jax.executables import Executable


def last_reader(program: ForwardProgram, executables: Iterable[Executable]) -> str | None:
    """The last stage with an operation that takes a table, as the compiled modules say; None where none takes any."""
    found = [
        stage
        for executable in executables
        for use in table_uses(executable)
        for name in use.op_names
        if (stage := stage_of(name, [s.name for s in executable.segment.stages])) is not None
    ]
    return max(found, key=program.index, default=None)


def table_uses(executable: Executable) -> list[Use]:
    """Every use of a table in one executable."""
    module = Module(executable.compiled.as_text() or "")
    return [use for i in range(len(executable.segment.tables)) for use in module.uses(i)]

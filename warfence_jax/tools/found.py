"""Where the shared reads of a program end, found in the equations of its kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import jax
import numpy as np
from jax import Array, ShapeDtypeStruct

from warfence.core.program import ForwardProgram
from warfence.parity.boundary import Boundary, Kept, find
from warfence_jax.kernels import run_stage
from warfence_jax.tools.cutting.operations import operations
from warfence_jax.tools.cutting.trace import trace
from warfence_jax.words import unpack

_KEPT = Kept()

Shapes = Mapping[str, ShapeDtypeStruct]


def boundary_of(program: ForwardProgram, tables: Shapes, state: Shapes, params: Shapes) -> Boundary:
    """Trace all stages as one function over these tables, each stage in its scope."""
    shapes = {name: table.shape for name, table in tables.items()}
    return _KEPT.find(program, shapes, lambda: _trace(program, tables, state, params))


def _trace(program: ForwardProgram, tables: Shapes, state: Shapes, params: Shapes) -> Boundary:
    fields = program.layout.fields

    def run(tables: dict[str, Array], words: Array, state: dict[str, Array], params: dict[str, Array]) -> None:
        known = {**tables, **state, **params, **unpack(fields, words)}
        for stage in program.stages:
            with jax.named_scope(stage.name):
                known |= run_stage(stage, known)

    words = ShapeDtypeStruct((program.layout.words,), np.int32)
    traced = trace(run, (dict(tables), words, dict(state), dict(params)), (0,), ())
    names = dict(
        zip(traced.arguments, sorted(tables), strict=False)
    )  # the leaves of a dict lie in the order of its keys
    traced = replace(traced, names={**traced.names, **names})
    return find(operations(traced, traced.equations))

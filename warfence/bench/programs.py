"""The decoding forwards that are measured: those of the engine, and one that copies whole tables before it reads them."""

from __future__ import annotations

from dataclasses import replace

from warfence.bench.strategies import COPY
from warfence.core.attention import make_attention
from warfence.core.batch import BatchLayout
from warfence.core.forwards import FencePlan
from warfence.core.modes import ForwardMode, Region
from warfence.core.program import ForwardProgram, Stage
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.program import build, sliding_layers


def decode_program(
    config: ModelConfig, attention: str, marker: bool, layout: BatchLayout
) -> tuple[ForwardProgram, FencePlan]:
    """The program of one decode, and what is decided about its fence."""
    sliding = sliding_layers(config)
    if attention == COPY:
        program = build(config, make_attention("captured", sliding), ForwardMode.DECODE, layout, sampled=False)
        # All shared reads end while the batch is loaded, which is what this kind of attention declares.
        return with_copies(program), FencePlan(make_attention("snapshot", sliding), markers=marker)
    kind = make_attention(attention, sliding)
    return build(config, kind, ForwardMode.DECODE, layout, sampled=False), FencePlan(kind, markers=marker)


def with_copies(program: ForwardProgram) -> ForwardProgram:
    """The program with private copies of its tables, made last while the batch is loaded; whoever read takes those."""
    tables = tuple(dict.fromkeys(name for stage in program.stages for name in stage.reads))
    copy = Stage("copy_tables", Region.LOAD_BATCH, "copy_tables", reads=tables, gives=tables, attrs={"tables": tables})
    load = program.region(Region.LOAD_BATCH)
    rest = program.stages[len(load) :]
    takers = tuple(replace(stage, reads=(), takes=(*stage.takes, *stage.reads)) for stage in rest)
    name = program.name.replace("/captured/", f"/{COPY}/")
    return replace(program, name=name, stages=(*load, copy, *takers))

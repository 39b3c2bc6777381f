"""What XLA captures into its own graph for us: a gate, or an event that is recorded behind the last read.

A `buffer_callback` gets XLA's stream. XLA captures it into its command buffer, a CUDA graph, and after a few calls Python is
called no more: what was enqueued has become a node. As an identity on values of the executable it stands where they are made.
The event (`node`) is the twin of torch's, for study: it costs about 0.2 ms of host time a call, which the word does not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from jax import Array, ShapeDtypeStruct
from jax.experimental.buffer_callback import buffer_callback

from warfence.host.cuda import checked, use_device
from warfence.host.cuda_gates import StreamGates
from warfence_jax.gpu.lanes import StreamEvent

EXTERNAL = 1  # flag of a record that is captured: a node, and no edge inside the graph


def through(enqueue: Callable[[int], object], operands: Sequence[Array], passed: int) -> list[Array]:
    """The first `passed` operands, behind what `enqueue(stream)` puts on XLA's stream once all operands are there."""

    def call(context: object, out: object, *given: object) -> None:
        enqueue(int(context.stream))  # type: ignore[attr-defined]

    shapes = [ShapeDtypeStruct(v.shape, v.dtype) for v in operands[:passed]]
    aliases = {i: i for i in range(passed)}
    return list(
        buffer_callback(
            call, shapes, input_output_aliases=aliases, has_side_effect=True, command_buffer_compatible=True
        )(*operands)
    )


def gate(gates: StreamGates, position: str, operands: Sequence[Array], passed: int) -> list[Array]:
    """Pass values through a gate."""
    return through(lambda stream: gates.stand(position, stream), operands, passed)


def recorded(event: StreamEvent, operands: Sequence[Array], passed: int) -> list[Array]:
    """Record the event behind the operands: a node where XLA captures, an ordinary record where it does not."""

    def record(stream: int) -> None:
        try:
            cu = use_device()
            capturing = int(checked(cu.cuStreamIsCapturing(cu.CUstream(stream)))) != 0
            checked(cu.cuEventRecordWithFlags(event.handle, cu.CUstream(stream), EXTERNAL if capturing else 0))
        except Exception as error:  # the runtime tells of it only with the results, and by then a ticket would be out
            event.failure = error
            raise

    return through(record, operands, passed)

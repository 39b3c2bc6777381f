"""The words that everything else is written in: forward modes, read ends, policies, regions, fences."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, IntEnum

from warfence.core.errors import InputError

TICKETS = ("event", "value")  # the kinds of in-graph tickets


class ForwardMode(Enum):
    """What one launch computes. The last three are words for a scheduler of one's own: here nothing launches them."""

    DECODE = "decode"
    EXTEND = "extend"
    MIXED = "mixed"
    TARGET_VERIFY = "target_verify"
    DRAFT_EXTEND = "draft_extend"
    IDLE = "idle"
    PREBUILT = "prebuilt"  # requests whose prompts were read elsewhere: tables are filled, and no forward runs
    SPLIT_PREFILL = "split_prefill"  # a prefill whose layers are spread over several launches
    DLLM_EXTEND = "dllm_extend"  # a block of a diffusion model, which is denoised again and again


UNLAUNCHED = frozenset({ForwardMode.PREBUILT, ForwardMode.SPLIT_PREFILL, ForwardMode.DLLM_EXTEND})


class Region(IntEnum):
    """Where in a launch a stage runs. The order of the values is the order of execution."""

    LOAD_BATCH = 0
    REPLAY = 1
    TAIL = 2


class SharedReadEnds(IntEnum):
    """Where the shared reads of a forward end, as an attention backend declares it per mode.

    The values are ordered from early to late, so the answer of a composite is the `max` of its children. UNKNOWN is the
    latest of all: who does not know must be assumed to read until the forward is over.
    """

    PRE_REPLAY = 1
    IN_GRAPH = 2
    POST_REPLAY = 3
    UNKNOWN = 4

    @classmethod
    def latest(cls, children: Iterable[SharedReadEnds]) -> SharedReadEnds:
        """The latest of the children; UNKNOWN when there are none (nobody answered)."""
        return max(children, default=cls.UNKNOWN)


class WarReadDonePolicy(Enum):
    """Where the read-done ticket of a launch is recorded, or NONE: nothing is published and the barrier is coarse."""

    NONE = "none"
    PRE_REPLAY = "pre_replay"
    IN_GRAPH = "in_graph"
    POST_REPLAY = "post_replay"


class FenceMode(Enum):
    """What the scheduler does at the WAR barrier."""

    FINE = "fine"  # take the ticket if one was published, else wait for the whole forward lane
    SELF = "self"  # the older way: drop the ticket, block the HOST until the launch just issued has ended
    COARSE = "coarse"  # take and drop the ticket, always wait for the whole forward lane
    OFF = "off"  # take and drop the ticket and wait for nothing: a hazard, for showing what goes wrong


def check_ticket(backend: str, ticket: str) -> None:
    """InputError unless it is a kind of ticket that there is."""
    if ticket not in TICKETS:
        raise InputError(f"backend {backend}: unknown kind of ticket '{ticket}'; choose one of: {', '.join(TICKETS)}")

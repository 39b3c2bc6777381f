"""The heart: policy, fence, and the loop that overlaps. Imports nothing else of warfence; read it in an hour.

In this order: `modes` (the words), `program` (what a forward reads), `attention` and `promises` (who declares what), `policy`
(where the ticket is recorded), `fence` (ticket, mailbox, barrier), `backend` (what a framework implements) and `abilities`
(what it may do beside that), `forwards`, `runner`, `scheduler` (the loop).
"""

from warfence.core.abilities import ABILITIES, FindsBoundary, Profiles, TimesBarrier, TimesStages
from warfence.core.attention import (
    AttentionBackend,
    AttentionKind,
    Child,
    MetadataPlace,
    attention_names,
    make_attention,
    register_attention,
)
from warfence.core.backend import (
    FORWARD,
    PLAN,
    SCHEDULE,
    ArraySpec,
    Backend,
    Capabilities,
    Forward,
    Marker,
    Outputs,
    SharedTables,
)
from warfence.core.batch import Batch, BatchLayout, BatchRow, pack
from warfence.core.errors import CapacityError, DeadHandleError, FenceError, InputError, StageError, WarfenceError
from warfence.core.fence import AtLeast, BarrierCounts, Lane, Mailbox, Ticket, TicketSource, WarBarrier, Word
from warfence.core.forwards import FencePlan, ForwardSet, PlannedForward
from warfence.core.gates import Gates, HostGates
from warfence.core.modes import FenceMode, ForwardMode, Region, SharedReadEnds, WarReadDonePolicy
from warfence.core.policy import RULES, Decision, Query, Rule, decide, is_early
from warfence.core.program import FULL_TO_SWA, REQ_TO_TOKEN, START, ForwardProgram, Stage, Step
from warfence.core.promises import NO_PROMISES, Promises
from warfence.core.runner import Runner
from warfence.core.scheduler import NO_HOOKS, Hooks, Launch, Plan, Scheduler, Timing, Work

__all__ = [
    "ABILITIES",
    "FORWARD",
    "FULL_TO_SWA",
    "NO_HOOKS",
    "NO_PROMISES",
    "PLAN",
    "REQ_TO_TOKEN",
    "RULES",
    "SCHEDULE",
    "START",
    "ArraySpec",
    "AtLeast",
    "AttentionBackend",
    "AttentionKind",
    "Backend",
    "BarrierCounts",
    "Batch",
    "BatchLayout",
    "BatchRow",
    "Capabilities",
    "CapacityError",
    "Child",
    "DeadHandleError",
    "Decision",
    "FenceError",
    "FenceMode",
    "FencePlan",
    "FindsBoundary",
    "Forward",
    "ForwardMode",
    "ForwardProgram",
    "ForwardSet",
    "Gates",
    "Hooks",
    "HostGates",
    "InputError",
    "Lane",
    "Launch",
    "Mailbox",
    "Marker",
    "MetadataPlace",
    "Outputs",
    "Plan",
    "PlannedForward",
    "Profiles",
    "Promises",
    "Query",
    "Region",
    "Rule",
    "Runner",
    "Scheduler",
    "SharedReadEnds",
    "SharedTables",
    "Stage",
    "StageError",
    "Step",
    "Ticket",
    "TicketSource",
    "TimesBarrier",
    "TimesStages",
    "Timing",
    "WarBarrier",
    "WarReadDonePolicy",
    "WarfenceError",
    "Word",
    "Work",
    "attention_names",
    "decide",
    "is_early",
    "make_attention",
    "pack",
    "register_attention",
]

"""The policy, written once: where does the read-done ticket of a launch get recorded, and why there?

Ordered rules, first match wins. The rules are data: `decide` walks them, `warfence explain` prints them, tests
enumerate them. What the public implementation decided, state by state, stands elsewhere as data of the same form
(`warfence.parity.history`), so that it can be compared, and shown unsound where it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warfence.core.modes import ForwardMode, SharedReadEnds, WarReadDonePolicy

NONE, PRE, IN_GRAPH, POST = (
    WarReadDonePolicy.NONE,
    WarReadDonePolicy.PRE_REPLAY,
    WarReadDonePolicy.IN_GRAPH,
    WarReadDonePolicy.POST_REPLAY,
)


@dataclass(frozen=True, slots=True)
class Query:
    """All that a rule may look at. Nothing here names a backend, a device or an algorithm.

    mode: the mode of the launch as the scheduler planned it (MIXED stays MIXED even where a runner replays it as
    EXTEND).
    declared: where the attention backend says that its shared reads of this mode end.
    marker: this captured forward (not the runner, not a sibling shape) carries an in-graph marker.
    verify_read_done: the speculative algorithm's target verify is the last shared reader of its step.
    prefill_enabled: the prefill switch is on.
    speculative: a speculative algorithm is active.
    prefill_read_done: that algorithm has staged all prefill reads of this launch before the publication point.
    draft_read_done: that algorithm's draft extend is the last shared reader of its step.
    segmented: the forward is a chain of captured segments that re-reads (only a historical rule looks at this).
    """

    mode: ForwardMode
    declared: SharedReadEnds
    marker: bool = False
    verify_read_done: bool = False
    prefill_enabled: bool = False
    speculative: bool = False
    prefill_read_done: bool = False
    draft_read_done: bool = False
    segmented: bool = False

    @property
    def prefill_publishes(self) -> bool:
        """EXTEND exactly, switched on, and nobody else reads later in the step."""
        staged = self.prefill_read_done or not self.speculative
        return self.mode is ForwardMode.EXTEND and self.prefill_enabled and staged

    @property
    def draft_publishes(self) -> bool:
        """DRAFT_EXTEND of an algorithm that says that it is the last reader."""
        return self.mode is ForwardMode.DRAFT_EXTEND and self.draft_read_done


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a rule set: when it applies, what it answers, and why."""

    name: str
    when: Callable[[Query], bool]
    policy: WarReadDonePolicy
    reason: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer with the rule that gave it."""

    policy: WarReadDonePolicy
    rule: str
    reason: str


def _verify(q: Query) -> bool:
    return q.mode is ForwardMode.TARGET_VERIFY


def _covered(q: Query) -> bool:
    return q.mode in (ForwardMode.DECODE, ForwardMode.TARGET_VERIFY)


RULES: tuple[Rule, ...] = (
    Rule(
        "verify-not-last-reader",
        lambda q: _verify(q) and not q.verify_read_done,
        NONE,
        "the speculative algorithm does not say that target verify is the last shared reader of the step",
    ),
    Rule(
        "prebuilt",
        lambda q: q.mode is ForwardMode.PREBUILT,
        NONE,
        "no forward of its own runs, so there is no read of which a ticket could say that it is over: what fills its rows waits "
        "for the whole forward lane",
    ),
    Rule(
        "split-prefill",
        lambda q: q.mode is ForwardMode.SPLIT_PREFILL,
        NONE,
        "its layers are spread over several launches, and each may read; only the last could publish, and none knows that it "
        "is the last",
    ),
    Rule(
        "dllm-extend",
        lambda q: q.mode is ForwardMode.DLLM_EXTEND,
        NONE,
        "a block is denoised until it is done, and each pass reads the tables again; nobody declares where that ends",
    ),
    Rule(
        "mode-not-covered",
        lambda q: not (_covered(q) or q.prefill_publishes or q.draft_publishes),
        NONE,
        "only DECODE, TARGET_VERIFY, an enabled EXTEND and a last-reading DRAFT_EXTEND publish; every other mode waits for "
        "the whole forward",
    ),
    Rule(
        "prefill-reads-on",
        lambda q: q.mode is ForwardMode.EXTEND and q.declared is not SharedReadEnds.PRE_REPLAY,
        NONE,
        "prefill publishes only where its reads end when the metadata is made",
    ),
    Rule(
        "unknown",
        lambda q: q.declared is SharedReadEnds.UNKNOWN,
        NONE,
        "nobody knows where the reads end, so the whole forward is waited for",
    ),
    Rule(
        "declared-post",
        lambda q: q.declared is SharedReadEnds.POST_REPLAY,
        POST,
        "the reads go on until the replay ends; a marker never pulls that earlier",
    ),
    Rule(
        "declared-in-graph",
        lambda q: q.declared is SharedReadEnds.IN_GRAPH and q.marker,
        IN_GRAPH,
        "the last read is inside the captured forward and this forward carries the marker",
    ),
    Rule(
        "in-graph-without-marker",
        lambda q: q.declared is SharedReadEnds.IN_GRAPH,
        POST,
        "the last read is inside the captured forward but it has no marker: degrade later, never earlier",
    ),
    Rule(
        "declared-pre",
        lambda q: q.declared is SharedReadEnds.PRE_REPLAY,
        PRE,
        "every shared read was done when the batch was loaded",
    ),
)

# How late a ticket of each policy comes, on the scale of SharedReadEnds; NONE waits for the whole forward.
_COMES = {PRE: 1, IN_GRAPH: 2, POST: 3, NONE: 4}


def is_early(query: Query, policy: WarReadDonePolicy) -> bool:
    """Whether a ticket of that policy comes before the declared reads end: unsound."""
    return _COMES[policy] < query.declared.value


def decide(query: Query, rules: tuple[Rule, ...] = RULES) -> Decision:
    """The first rule that applies. A rule set that answers nothing publishes nothing."""
    for rule in rules:
        if rule.when(query):
            return Decision(rule.policy, rule.name, rule.reason)
    return Decision(NONE, "no-rule", "no rule applies, so nothing is published")

"""What the public implementation decided, state by state: one rule set for each, as data, beside ours.

Made from what its merged code publishes for every input of `Query` (tests/parity/history has that table, and compares every
cell). A state's name is the number of the pull request (sgl-project/sglang) that brought it. The tickets of an EAGLE draft
extend come from a runner of its own, which records before its replay whatever anybody declares, in all of these states.

PROPOSALS are open pull requests about that one ticket: ours but for where a draft extend publishes.
"""

from __future__ import annotations

from dataclasses import dataclass

from warfence.core.modes import ForwardMode, SharedReadEnds, WarReadDonePolicy
from warfence.core.policy import RULES, Query, Rule

NONE, PRE, IN_GRAPH, POST = (
    WarReadDonePolicy.NONE,
    WarReadDonePolicy.PRE_REPLAY,
    WarReadDonePolicy.IN_GRAPH,
    WarReadDonePolicy.POST_REPLAY,
)


@dataclass(frozen=True, slots=True)
class State:
    """One public state. name: of its rule set; commits: that were run; date: of the first of them, or what is known of it."""

    name: str
    date: str
    commits: tuple[str, ...]
    brought: str
    rules: tuple[Rule, ...]


def _is(*modes: ForwardMode) -> frozenset[ForwardMode]:
    return frozenset(modes)


DECODE, VERIFY = _is(ForwardMode.DECODE), _is(ForwardMode.TARGET_VERIFY)
COVERED = DECODE | VERIFY


def _prefill(q: Query) -> bool:
    ready = q.prefill_enabled and not q.speculative and q.declared is SharedReadEnds.PRE_REPLAY
    return q.mode is ForwardMode.EXTEND and ready


GATE = Rule(
    "verify-not-supported",
    lambda q: q.mode in VERIFY and not q.verify_read_done,
    NONE,
    "the algorithm does not support it",
)
SEGMENTED = Rule(
    "verify-segmented", lambda q: q.mode in VERIFY and q.segmented, POST, "captured metadata in a segmented verify"
)
DRAFT = Rule(
    "draft-before-replay",
    lambda q: q.draft_publishes,
    PRE,
    "the draft's runner records before its replay, unconditionally",
)
PREFILL = Rule("prefill", _prefill, PRE, "switched on, exactly EXTEND, no speculation, and its metadata is made first")
PLANTED = Rule("node-planted", lambda q: q.marker, IN_GRAPH, "a node was planted")
ASSUMED = Rule("otherwise", lambda _: True, PRE, "assumes that a backend without a node reads everything before launch")


def _only(*modes: ForwardMode) -> Rule:
    named = " or ".join(m.name for m in modes)
    return Rule("mode-not-covered", lambda q: q.mode not in modes, NONE, f"this runner publishes for {named} only")


DECLARED = (
    Rule("unknown", lambda q: q.declared is SharedReadEnds.UNKNOWN, NONE, "the backend does not know"),
    Rule("declared-post", lambda q: q.declared is SharedReadEnds.POST_REPLAY, POST, "as declared"),
    Rule("planted", lambda q: q.declared is SharedReadEnds.IN_GRAPH and q.marker, IN_GRAPH, "as declared, planted"),
    Rule("otherwise", lambda _: True, PRE, "as declared, or in-graph without a node: falls EARLIER than declared"),
)
COVERED_ONLY = _only(ForwardMode.DECODE, ForwardMode.TARGET_VERIFY)
BY_DECLARATION = (GATE, DRAFT, PREFILL, COVERED_ONLY, *DECLARED)  # three states that differ in names and wrappers only
# No gate of the algorithm: the declaration alone decides, and padding may publish where a backend declares for IDLE.
DECLARATION_ALONE = (
    DRAFT,
    PREFILL,
    _only(ForwardMode.DECODE, ForwardMode.TARGET_VERIFY, ForwardMode.IDLE),
    *DECLARED,
)

STATES: tuple[State, ...] = (
    State(
        "28363", "2026-06-22", ("106d2930a",), "an event before the replay of a decode, instead of the whole forward",
        (DRAFT, _only(ForwardMode.DECODE), ASSUMED),
    ),
    State(
        "29541", "2026-06-28", ("be17475a1",), "a verify that the algorithm supports publishes as a decode does",
        (GATE, DRAFT, COVERED_ONLY, ASSUMED),
    ),
    State(
        "before-33587", "right before 2026-08-05", ("717a559f0p1",), "a segmented verify records behind its replay (#30261)",
        (GATE, SEGMENTED, DRAFT, COVERED_ONLY, ASSUMED),
    ),
    State(
        "33587", "2026-08-05", ("717a559f0",), "the event as a node inside the graph; prefill by a switch",
        (GATE, SEGMENTED, DRAFT, PREFILL, COVERED_ONLY, PLANTED, ASSUMED),
    ),
    State("34052", "2026-08-08", ("a1ca76b24",), "the backend declares where its reads end", BY_DECLARATION),
    State("34916", "2026-08-15", ("0f7aaceda",), "other names, and a note that the early fallback is unsound", BY_DECLARATION),
    State("34982", "2026-08-16", ("bae353ba5",), "a composite answers with the latest of its children", BY_DECLARATION),
    State(
        "35059", "2026-08-17", ("711bdacb8", "6f69f927d"), "the declaration alone decides; no gate of the algorithm",
        DECLARATION_ALONE,
    ),
)  # fmt: skip

RULE_SETS: dict[str, tuple[Rule, ...]] = {state.name: state.rules for state in STATES} | {"warfence": RULES}


def _rereads(q: Query) -> bool:
    return q.draft_publishes and q.declared is not SharedReadEnds.PRE_REPLAY


PROPOSALS: dict[str, tuple[Rule, ...]] = {
    "draft-before": (DRAFT, *RULES),
    "36335": (
        Rule("draft-rereads", _rereads, POST, "a replay that reads shared state again publishes behind it"),
        *RULES,
    ),
    "37988": (
        Rule("draft-after", lambda q: q.draft_publishes, POST, "always behind the replay, whatever it reads"),
        *RULES,
    ),
}


__all__ = ["PROPOSALS", "RULE_SETS", "STATES", "State"]

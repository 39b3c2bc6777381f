"""The rule sets beside each other: what each answers for one launch, and where a historical one differs from ours.

A ticket is unsound where shared reads go on behind it: in the launch itself, or, after a verify that is not the last reader,
in what follows. Where another launch ends the step the barrier takes that one's ticket, so an earlier one does no harm.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass

from warfence.core.attention import attention_names, make_attention
from warfence.core.errors import InputError
from warfence.core.forwards import FencePlan
from warfence.core.modes import UNLAUNCHED, ForwardMode, WarReadDonePolicy
from warfence.core.policy import Decision, Query, Rule, decide, is_early
from warfence.parity.history import PROPOSALS, RULE_SETS, STATES, State
from warfence.serve.spec import SpecAlgorithm, get, names

OURS = "warfence"
NAMES = (
    f"{', '.join(RULE_SETS)}; or a proposal for draft extend: {', '.join(PROPOSALS)}"  # of rule sets, for a help text
)
COLUMNS = ("mode", "attention", "spec", "marker", OURS)  # of the table of differences; two more say what a set answers
_ATTENTION, _SPEC, _MARKER = 1, 2, 3
_SLIDING = (1,)  # any model with a sliding layer: declarations ask only whether there is one
# From early to late: where nothing is published the whole forward is waited for.
_LATER = (*(policy for policy in WarReadDonePolicy if policy is not WarReadDonePolicy.NONE), WarReadDonePolicy.NONE)


@dataclass(frozen=True, slots=True)
class LaunchCase:
    """A launch as the rules are asked about it."""

    mode: ForwardMode
    attention: str
    algorithm: SpecAlgorithm
    marker: bool
    prefill: bool = False

    @property
    def query(self) -> Query:
        """With the declarations of the attention backend and the promises of the algorithm."""
        attention = make_attention(self.attention, _SLIDING)
        return FencePlan(attention, self.algorithm, self.prefill).query(self.mode, self.marker)

    @property
    def last_phase(self) -> ForwardMode:
        """The last launch of a step that has one of this mode: its ticket is the one that the barrier takes."""
        return self.algorithm.phases(self.mode)[-1][1]

    @property
    def happens(self) -> bool:
        """Whether a step of this algorithm has such a launch."""
        if self.mode in UNLAUNCHED:
            return False
        if self.mode is ForwardMode.DRAFT_EXTEND:
            return bool(self.algorithm.draft_extend_after)
        if self.mode is ForwardMode.TARGET_VERIFY:
            return self.algorithm.speculative
        return True

    def unsound(self, policy: WarReadDonePolicy) -> bool:
        """Whether a ticket of that policy would be taken while shared reads go on."""
        query = self.query
        if policy is WarReadDonePolicy.NONE or self.last_phase is not self.mode:
            return False
        reads_on = self.mode is ForwardMode.TARGET_VERIFY and not query.verify_read_done
        return reads_on or is_early(query, policy)


@dataclass(frozen=True, slots=True)
class RuleDifference:
    """One launch for which a rule set answers otherwise than ours."""

    case: LaunchCase
    ours: Decision
    theirs: Decision

    @property
    def verdict(self) -> str:
        """`UNSOUND`, or in a word how it compares where both are sound."""
        if self.case.unsound(self.theirs.policy):
            return "UNSOUND"
        if self.case.last_phase is not self.case.mode:
            return "never taken"
        return "later" if _LATER.index(self.theirs.policy) > _LATER.index(self.ours.policy) else "earlier"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a public state answers for one launch. unsound: its ticket would be taken while shared reads go on."""

    state: State
    decision: Decision
    unsound: bool


def history(case: LaunchCase) -> list[Answer]:
    """What each public state answers, from the first to the last."""
    answers = [(state, decide(case.query, state.rules)) for state in STATES]
    return [Answer(state, decision, case.unsound(decision.policy)) for state, decision in answers]


def rule_set(name: str) -> tuple[Rule, ...]:
    """The rules of that name, of a public state, of a proposal, or ours; InputError with the known names otherwise."""
    known = {**RULE_SETS, **PROPOSALS}
    if name not in known:
        raise InputError(f"unknown rule set '{name}'; choose one of: {', '.join(known)}")
    return known[name]


def launch_cases(prefill: bool = False) -> list[LaunchCase]:
    """Every mode, attention kind and algorithm, with a marker and without, as far as such a launch happens."""
    every = itertools.product(ForwardMode, attention_names(), map(get, names()), (True, False))
    return [case for case in (LaunchCase(*one, prefill) for one in every) if case.happens]


def differences(name: str, prefill: bool = False) -> list[RuleDifference]:
    """Where the rule set of that name answers otherwise than ours."""
    rules = rule_set(name)
    found = (RuleDifference(case, decide(case.query), decide(case.query, rules)) for case in launch_cases(prefill))
    return [d for d in found if d.theirs.policy is not d.ours.policy]


def alike() -> list[list[str]]:
    """The names of the public states, those together that decide by the same rules."""
    groups: dict[tuple[Rule, ...], list[str]] = {}
    for state in STATES:
        groups.setdefault(state.rules, []).append(state.name)
    return list(groups.values())


def folded(found: Iterable[RuleDifference]) -> list[tuple[str, ...]]:
    """One row for all that differ in the same way: mode, attention, spec, marker, ours, theirs, verdict."""
    rows: list[tuple[str, ...]] = [
        (
            d.case.mode.value, d.case.attention, d.case.algorithm.name, "yes" if d.case.marker else "no",
            d.ours.policy.name, d.theirs.policy.name, d.verdict,
        )
        for d in found
    ]  # fmt: skip
    for column in (_SPEC, _MARKER, _ATTENTION):
        rows = _merged(rows, column)
    return rows


def _merged(rows: list[tuple[str, ...]], column: int) -> list[tuple[str, ...]]:
    """Rows that are equal but for this column become one that lists its values."""
    values: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        values.setdefault((*row[:column], *row[column + 1 :]), []).append(row[column])
    return [(*rest[:column], ", ".join(listed), *rest[column:]) for rest, listed in values.items()]

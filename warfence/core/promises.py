"""What a speculative algorithm promises about shared reads. The policy asks for these, never for a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warfence.core.batch import Batch
from warfence.core.modes import ForwardMode

Stager = Callable[[Batch], bool]
TARGET, DRAFT = "target", "draft"  # the runners of a step


@dataclass(frozen=True, slots=True, kw_only=True)
class Promises:
    """Every promise defaults to False: who says nothing reads until the step is over.

    supports_target_verify_read_done: target verify is the last shared reader of its step.
    supports_draft_extend_read_done: draft extend is, wherever a step has one.
    supports_prefill_read_done: its prefill reads nothing behind the publication point.
    prefill_stager: brings the reads of one prefill forward; True when it did. Only then may that prefill publish, for an
        algorithm without `supports_prefill_read_done`.
    draft_extend_after: modes whose step ends in DRAFT_EXTEND launches, each on a runner of its own.
    draft_launches: how many these are: one for each layer of a draft whose layers propose one after the other.
    speculative: whether it speculates at all.
    """

    supports_target_verify_read_done: bool = False
    supports_draft_extend_read_done: bool = False
    supports_prefill_read_done: bool = False
    prefill_stager: Stager | None = None
    draft_extend_after: frozenset[ForwardMode] = frozenset()
    draft_launches: int = 1
    speculative: bool = True

    def phases(self, mode: ForwardMode) -> tuple[tuple[str, ForwardMode], ...]:
        """The launches of a step of that mode: (runner, mode), in order. The last one's runner owns the mailbox."""
        if mode in self.draft_extend_after:
            return ((TARGET, mode), *((name, ForwardMode.DRAFT_EXTEND) for name in self.runners()[1:]))
        return ((TARGET, mode),)

    def runners(self) -> tuple[str, ...]:
        """The target's, then those of the draft's launches, in the order of a step."""
        drafts = (DRAFT, *(f"{DRAFT}.{i}" for i in range(1, self.draft_launches)))
        return (TARGET, *drafts)


NO_PROMISES = Promises(speculative=False)

"""What a speculative algorithm promises. The policy asks for capabilities, never for a name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warfence.core.batch import Batch
from warfence.core.errors import InputError
from warfence.core.modes import ForwardMode

if TYPE_CHECKING:
    from warfence.serve.model.config import ModelConfig
    from warfence.serve.spec.draft import Draft
    from warfence.serve.spec.drafting import Drafting

MakeDrafting = Callable[["ModelConfig", "Draft | None", "int | None"], "Drafting"]
Stager = Callable[[Batch], bool]
TARGET, DRAFT = "target", "draft"  # the runners of a step


@dataclass(frozen=True, slots=True)
class SpecAlgorithm:
    """What an algorithm promises about shared reads. Every promise defaults to False (policy case 12).

    supports_target_verify_read_done: target verify is the last shared reader of its step.
    supports_draft_extend_read_done: draft extend is, wherever a step has one.
    supports_prefill_read_done: its prefill reads nothing behind the publication point.
    prefill_stager: brings the reads of one prefill forward; True when it did. Only then may that prefill publish, for an
        algorithm without `supports_prefill_read_done` (policy case 22).
    draft_extend_after: modes whose step ends in a DRAFT_EXTEND launch, on a runner of its own.
    make: makes what the algorithm adds to programs, from (model, draft, block); None only for "none". `block` None: the
        algorithm's own.
    needs_draft: it cannot do without a trained draft.
    """

    name: str
    supports_target_verify_read_done: bool = False
    supports_draft_extend_read_done: bool = False
    supports_prefill_read_done: bool = False
    prefill_stager: Stager | None = None
    draft_extend_after: frozenset[ForwardMode] = frozenset()
    make: MakeDrafting | None = None
    needs_draft: bool = False
    speculative: bool = True

    def phases(self, mode: ForwardMode) -> tuple[tuple[str, ForwardMode], ...]:
        """The launches of a step of that mode: (runner, mode), in order. The last one's runner owns the mailbox."""
        if mode in self.draft_extend_after:
            return ((TARGET, mode), (DRAFT, ForwardMode.DRAFT_EXTEND))
        return ((TARGET, mode),)

    def drafting(self, config: ModelConfig, draft: Draft | None, block: int | None) -> Drafting | None:
        """What it adds to programs of this model; None without speculation. InputError where the draft does not fit."""
        if not self.speculative:
            return None
        if self.make is None:
            raise InputError(
                f"speculative algorithm '{self.name}' only declares capabilities; it brings nothing to run (make=None)"
            )
        if self.needs_draft and draft is None:
            raise InputError(
                f"speculative algorithm '{self.name}' needs a draft and there is none for model '{config.name}'; give "
                f"--draft DIR, or use --spec ngram, which needs none"
            )
        return self.make(config, draft, block)


NO_SPEC = SpecAlgorithm("none", speculative=False)

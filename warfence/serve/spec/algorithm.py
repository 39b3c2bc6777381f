"""A speculative algorithm: what it promises about shared reads, and what it adds to the programs of a model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warfence.core.errors import InputError
from warfence.core.promises import Promises
from warfence.serve.model.config import ModelConfig
from warfence.serve.model.drafting import Drafting
from warfence.serve.spec.draft import Draft

MakeDrafting = Callable[[ModelConfig, Draft | None, int | None], Drafting]


@dataclass(frozen=True, slots=True)
class SpecAlgorithm(Promises):
    """An algorithm by name, with its promises.

    make: makes what the algorithm adds to programs, from (model, draft, block); None only for "none". `block` None: the
    algorithm's own.
    needs_draft: it cannot do without a trained draft.
    """

    name: str
    make: MakeDrafting | None = None
    needs_draft: bool = False

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

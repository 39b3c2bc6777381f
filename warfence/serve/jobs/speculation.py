"""Which speculative algorithm a job serves with, and the draft that it needs: read and checked before anything starts."""

from __future__ import annotations

from dataclasses import dataclass

from warfence.serve.jobs.options import ServeOptions
from warfence.serve.model import ASSETS
from warfence.serve.model.config import ModelConfig
from warfence.serve.spec import NO_SPEC, Draft, Drafting, SpecAlgorithm, get
from warfence.serve.spec.draft import load_draft

SHIPPED = ASSETS  # the shipped model's drafts lie beside it, each in a directory of its algorithm's name


@dataclass(frozen=True, slots=True)
class Speculation:
    """The algorithm, its draft, and what they add to the programs of one model. Without speculation the last two are None."""

    algorithm: SpecAlgorithm = NO_SPEC
    draft: Draft | None = None
    drafting: Drafting | None = None

    @property
    def block(self) -> int:
        """Tokens of a verify; 1 where nothing speculates."""
        return self.drafting.block if self.drafting is not None else 1


def speculation(options: ServeOptions, config: ModelConfig) -> Speculation:
    """What --spec, --draft and --block ask for. InputError for a draft that is absent, damaged or of another model, and for a
    block that the algorithm cannot take."""
    algorithm = get(options.spec)
    draft = _draft(options, algorithm, config)
    return Speculation(algorithm, draft, algorithm.drafting(config, draft, options.block))


def _draft(options: ServeOptions, algorithm: SpecAlgorithm, config: ModelConfig) -> Draft | None:
    """The draft that was given; else the one that is shipped with the shipped model, where the algorithm needs one."""
    if options.draft is not None:
        return load_draft(options.draft, config, algorithm.name)
    shipped = SHIPPED / algorithm.name
    if options.model is None and algorithm.needs_draft and shipped.is_dir():
        return load_draft(shipped, config, algorithm.name)
    return None

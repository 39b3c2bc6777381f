"""Everything that serving needs and that can be read and checked before the first framework is imported."""

from __future__ import annotations

from dataclasses import dataclass

from warfence.model import Model, load_model
from warfence.planner import Limits
from warfence.serve.options import ServeOptions
from warfence.serve.prompts import DEFAULT_NEW_TOKENS, DEFAULT_PROMPTS, prompt_workload, read_prompts
from warfence.serve.start import check_backend
from warfence.serve.trace import read_trace, trace_workload
from warfence.serve.workload import Workload


@dataclass(frozen=True, slots=True)
class Job:
    """Options, and what was read for them."""

    options: ServeOptions
    model: Model
    workload: Workload
    limits: Limits


def prepare(options: ServeOptions) -> Job:
    """Check the options, read model, prompts and trace. InputError with a remedy for anything that cannot be served."""
    options.check()
    check_backend(options.backend)
    model = load_model(options.model)
    limits = options.engine().limits(model.config)
    room = min(limits.context, limits.slots - 1)
    prompts, params = options.prompts or DEFAULT_PROMPTS, options.sampling()
    if options.trace is None:
        new = options.max_new_tokens or DEFAULT_NEW_TOKENS
        return Job(options, model, prompt_workload(prompts, model.tokenizer, room, new, params, options.limit), limits)
    arrivals = read_trace(options.trace, options.limit)
    texts = [text for _, text in read_prompts(prompts)]
    speed = options.speed or 1.0
    workload = trace_workload(arrivals, texts, model.tokenizer, room, params, speed, options.max_new_tokens)
    return Job(options, model, workload, limits)

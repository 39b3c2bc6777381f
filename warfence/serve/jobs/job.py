"""Everything that serving needs and that can be read and checked before the first framework is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from warfence.core.errors import InputError
from warfence.serve.jobs.arrivals import trace_workload
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.jobs.prompts import DEFAULT_NEW_TOKENS, DEFAULT_PROMPTS, prompt_workload, read_prompts
from warfence.serve.jobs.speculation import Speculation, speculation
from warfence.serve.jobs.start import check_backend
from warfence.serve.jobs.traces import read_trace
from warfence.serve.jobs.workload import Workload
from warfence.serve.model import Model, load_model
from warfence.serve.model.chat import chat_template
from warfence.serve.planner import Limits


@dataclass(frozen=True, slots=True)
class Job:
    """Options, and what was read for them."""

    options: ServeOptions
    model: Model
    workload: Workload
    limits: Limits
    spec: Speculation


def prepare(options: ServeOptions) -> Job:
    """Check the options, read model, draft, prompts and trace. InputError with a remedy for anything that cannot be served."""
    options.check()
    check_backend(options.backend)
    model = load_model(options.model)
    spec = speculation(options, model.config)
    limits = options.engine().limits(model.config, spec.block)
    if spec.block > limits.context:
        raise InputError(
            f"--block is {spec.block}, and a sequence has at most {limits.context} tokens; give a smaller one"
        )
    workload = _workload(options, model, min(limits.context, limits.slots - 1))
    return Job(options, model, replace(workload, notes=(*model.notes, *workload.notes)), limits, spec)


def _workload(options: ServeOptions, model: Model, room: int) -> Workload:
    """What is to be served. `room`: tokens that context and KV pool hold."""
    prompts, params = options.prompts or DEFAULT_PROMPTS, options.sampling()
    if options.trace is None:
        new = options.max_new_tokens or DEFAULT_NEW_TOKENS
        return prompt_workload(prompts, _encoder(options, model), room, new, params, options.limit)
    trace = read_trace(options.trace, options.limit)
    texts = [text for _, text in read_prompts(prompts)]
    made = trace_workload(
        trace.arrivals, texts, model.tokenizer, room, params, options.speed or 1.0, options.max_new_tokens,
        options.share_prefixes,
    )  # fmt: skip
    return replace(made, notes=(*trace.notes, *made.notes))


def _encoder(options: ServeOptions, model: Model) -> Callable[[str], list[int]]:
    """From a prompt to its tokens: as it stands, or as a turn of a conversation."""
    if not options.chat:
        return model.tokenizer.encode
    chat = chat_template(model.path)
    return lambda text: model.tokenizer.encode(chat(text), special=False)

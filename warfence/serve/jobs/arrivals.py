"""A trace as requests. A trace tells lengths, not texts.

The prompts' tokens, one after the other and from the start again, give each request as many tokens as the trace says; an
end-of-text token does not stop it, so that it generates as many as the trace says. Where prefixes are shared, each block of a
trace that names its blocks has the tokens that belong to its hash, so that equal blocks are equal text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import cycle, islice

from warfence.core.errors import InputError
from warfence.serve.jobs.traces import Arrival
from warfence.serve.jobs.workload import Entry, Workload
from warfence.serve.model.tokenizer import Tokenizer
from warfence.serve.sampling import SamplingParams

_STRIDE = (
    7919  # tokens from the start of one hash's block to the next one's: a prime, so that they do not fall together
)


def trace_workload(
    arrivals: Sequence[Arrival], texts: Sequence[str], tokenizer: Tokenizer, room: int, params: SamplingParams,
    speed: float = 1.0, most_new_tokens: int | None = None, share_prefixes: bool = False,
) -> Workload:  # fmt: skip
    """Requests of the trace's lengths. `room`: tokens that context and KV pool hold; what is longer is clipped.

    speed: 2.0 lets them arrive twice as fast. most_new_tokens: a bound on the new tokens of each (None: the trace's).
    share_prefixes: prompts begin alike where the trace says so; InputError for one that does not say it.
    """
    flat = [token for text in texts for token in tokenizer.encode(text)]
    if not flat:
        raise InputError("the prompts give no token to make the trace's prompts of; write another prompt")
    tokens = cycle(flat)
    entries: list[Entry] = []
    long_prompts = long_outputs = 0
    for arrival in arrivals:
        prompt, new = _clip(arrival, room, most_new_tokens)
        long_prompts += prompt < arrival.context_tokens
        long_outputs += new < arrival.generated_tokens
        ids = tuple(islice(_shared(arrival, flat) if share_prefixes else tokens, prompt))
        entries.append(Entry(tokenizer.decode(ids), ids, new, arrival.at_s / speed))
    notes = (
        f"{long_prompts} of {len(entries)} prompts and {long_outputs} of {len(entries)} outputs of the trace were"
        f" longer than what is served (context and KV pool: {room} tokens"
        + (f", --max-new-tokens {most_new_tokens}" if most_new_tokens is not None else "")
        + ") and were clipped.",
    )
    return Workload(tuple(entries), params, False, notes if long_prompts or long_outputs else ())


def _clip(arrival: Arrival, room: int, most_new: int | None) -> tuple[int, int]:
    """(prompt tokens, new tokens) that fit. The prompt gives way first, but keeps half of the room."""
    new = min(arrival.generated_tokens, most_new or arrival.generated_tokens)
    new = min(new, max(room - room // 2, room - arrival.context_tokens))
    return min(arrival.context_tokens, room - new), new


def _shared(arrival: Arrival, flat: Sequence[int]) -> Iterator[int]:
    """The prompt block by block, each with the tokens of its hash."""
    if len(arrival.hashes) * arrival.block < arrival.context_tokens:
        raise InputError(
            f"--share-prefixes: a request has {arrival.context_tokens} prompt tokens and {len(arrival.hashes)} hashes of"
            f" {arrival.block}; it is for Mooncake and Bailian traces, whose hash_ids cover the prompt"
        )
    for one in arrival.hashes:
        for k in range(arrival.block):
            yield flat[(one * _STRIDE + k) % len(flat)]

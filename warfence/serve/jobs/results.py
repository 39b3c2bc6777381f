"""The finished requests of a run as JSON lines: a file is whole or not there at all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from warfence.host.files import write_output
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.session import is_finished
from warfence.serve.requests import Request


def finished(job: Job, requests: Iterable[Request]) -> list[Request]:
    """Those requests whose last token the host knows, by id."""
    eos, context = frozenset(job.model.config.eos_ids), job.limits.context
    return sorted((r for r in requests if is_finished(r, eos, context)), key=lambda r: r.id)


def result_line(job: Job, request: Request) -> dict[str, Any]:
    """One request: id, prompt, generated text and tokens, and the least margin of its choices (null: none)."""
    margin = min(request.margins, default=math.inf)
    return {
        "id": request.id,
        "prompt": job.workload.entries[request.id].text,
        "text": job.model.tokenizer.decode(request.output),
        "tokens": list(request.output),
        "min_margin": margin if math.isfinite(margin) else None,
    }


def write_results(path: Path, job: Job, requests: Sequence[Request]) -> int:
    """Write the finished ones and return how many. Nobody sees half of the file: it is renamed when complete."""
    done = finished(job, requests)
    lines = [json.dumps(result_line(job, request), ensure_ascii=False) + "\n" for request in done]
    write_output(path, "".join(lines), "--out")
    return len(done)

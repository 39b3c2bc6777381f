"""What `warfence serve --watch` costs in wall time: the shipped prompts served plain and watched, in turn, in one process.

    python benchmarks/watch_cost.py torch jax

Per round the ratio watched / plain of the seconds that serving took, the writing of the log included; shown are the median
and the range. The check of the log comes after the run and is timed apart.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from warfence.cli.serve_observed import session
from warfence.races.check.findings import check
from warfence.races.check.log_file import read_log
from warfence.serve.jobs.job import prepare
from warfence.serve.jobs.options import ServeOptions
from warfence.serve.jobs.session import Watcher

ROUNDS = 7


def main(backends: list[str]) -> None:
    print(
        f"{'backend':8} {'plain s':>8} {'watched s':>9} {'ratio':>6} {'range':>12} {'events':>8} {'check s':>8} races"
    )
    for backend in backends:
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "log.jsonl"
            rounds = []
            job = prepare(ServeOptions(backend=backend))
            with ExitStack() as stack:
                plain, watched = (stack.enter_context(session(job, Watcher(), to)) for to in (None, log))
                for _ in range(ROUNDS):
                    pair = [warm.serve(job.workload.requests()).summary for warm in (plain, watched)]
                    rounds.append([summary.seconds for summary in pair if summary is not None])
            begun = time.perf_counter()
            report = check(read_log(log))
            checked = time.perf_counter() - begun
        ratios = sorted(with_log / without for without, with_log in rounds)
        without, with_log = (median(one) for one in zip(*rounds, strict=True))
        races = sum(finding.count for finding in report.findings if finding.kind == "race")
        span = f"{ratios[0]:.2f}-{ratios[-1]:.2f}"
        print(
            f"{backend:8} {without:8.3f} {with_log:9.3f} {median(ratios):6.2f} {span:>12} {report.events:8} {checked:8.2f} "
            f"{races}"
        )


if __name__ == "__main__":
    main(sys.argv[1:] or ["torch", "jax"])

"""The catalogue on one backend, judged from recorded executions, as a Markdown table.

    python docs/results/scenario_pairs.py --backend strict|torch|jax [--device cpu|cuda]

With jax, what the interface cannot say about memory of the host is played under `watch_host`. Exit status: 1 when a verdict is
wrong.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import sys
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))  # so that it runs from a bare checkout

from warfence import backends
from warfence.core.backend import Backend
from warfence.races.replay.judged import judge_all, recall_and_precision
from warfence.races.scenarios.library import catalogue
from warfence.show.observe.player import RecordedPlayer


def open_backend(name: str, device: str) -> Backend:
    if name == "strict":
        from warfence.parity.strict.backend import StrictBackend

        return StrictBackend(device)
    return backends.load(name)(device=device)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=("strict", "torch", "jax"), default="strict")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    given = parser.parse_args()
    name = given.backend
    player = RecordedPlayer(lambda: open_backend(name, given.device))
    try:
        results = judge_all(catalogue(), player)
    finally:
        player.close()
    if name == "jax":
        from warfence_jax.tools.replay.watched import HostWatchPlayer

        watched = judge_all(catalogue(), HostWatchPlayer())
        results = [own if own.verdict else other for own, other in zip(results, watched, strict=True)]
    framework = f", {name} {version(name)}" if name != "strict" else ""
    print(f"The programs of the catalogue on {name} ({given.device}), judged from recorded executions.\n")
    command = f"python docs/results/scenario_pairs.py --backend {name} --device {given.device}"
    print(f"{datetime.date.today()}; Python {platform.python_version()}{framework}; command: `{command}`\n")
    print(f"| scenario | right | {name} | findings | |\n| --- | --- | --- | --- | --- |")
    for one in results:
        verdict = one.verdict if one.right else f"**{one.verdict}**"
        print(f"| {one.id} | {one.expect} | {verdict or '-'} | {', '.join(one.kinds)} | {one.refused or one.lacks} |")
    recall, precision = recall_and_precision(results)
    played = sum(1 for one in results if one.verdict)
    print(f"\n{played} of {len(results)} programs expressed; recall {recall:.2f}, precision {precision:.2f}.")
    return 0 if all(one.right for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())

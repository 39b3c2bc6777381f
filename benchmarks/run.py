"""Runs a workload of `workloads.toml`. Further arguments go to `warfence bench`: python benchmarks/run.py NAME --out FILE"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from warfence.cli import main as warfence

WORKLOADS = Path(__file__).parent / "workloads.toml"


def main(given: list[str]) -> int:
    workloads = tomllib.loads(WORKLOADS.read_text())
    if not given or given[0] not in workloads:
        for name, workload in workloads.items():
            print(f"{name}: {workload['about']}\n    warfence bench {' '.join(workload['arguments'])}")
        return 0 if not given else 2
    command = ["bench", *workloads[given[0]]["arguments"], *given[1:]]
    sys.argv[1:] = command  # the document notes the command
    return warfence(command)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs the parity matrix of one backend many times and says whether every table of release points is the same.

python docs/results/repeat_matrix.py torch:cuda 20 [MODE] > docs/results/NAME.txt
"""

from __future__ import annotations

import datetime
import hashlib
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from warfence.backends import load
from warfence.core.backend import Backend
from warfence.parity.cells import matrix
from warfence.parity.matrix import run_matrix
from warfence.parity.rig import Rig
from warfence.parity.small import small_model


def main(target: str, times: int, mode: str | None) -> int:
    name, _, device = target.partition(":")

    def make() -> Backend:
        return load(name)(device=device)

    rigs = {name: Rig(make(), small_model(), make)}
    cells = list(matrix((mode,) if mode else ()))
    tables: Counter[str] = Counter()
    started = time.perf_counter()
    bad = 0
    for _ in range(times):
        lines = []
        for result in run_matrix(rigs, cells):
            bad += not result.ok
            lines.append(f"{result.cell.name}: {result.release[name]}")
        tables[hashlib.sha256("\n".join(lines).encode()).hexdigest()] += 1
    rigs[name].backend.close()
    print(
        f"{datetime.date.today()} {target} mode={mode or 'all'}: {times} runs of {len(cells)} cells, {bad} cells not ok"
    )
    for digest, count in tables.items():
        print(f"  {count} runs with table {digest[:16]}")
    print(f"  {time.perf_counter() - started:.0f} s")
    return bad > 0 or len(tables) != 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else None))

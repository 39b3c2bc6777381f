"""How long `warfence explore` takes for 100 to 50,000 operations and 10 to 200 conflicts, on four lanes.

Four lanes work on private cells; every so often one lane writes what another one reads, behind a record and a wait. Printed
beside it is how many interleavings of the lanes alone there would be to try one by one. Processor seconds of one thread.
"""

from __future__ import annotations

import math
import time

from warfence.races.scenarios.explore import explore
from warfence.races.scenarios.order import conflicts
from warfence.races.scenarios.parse import parse

LANES = ("a", "b", "c", "d")
CASES = ((100, 10), (300, 50), (1_000, 10), (1_000, 50), (1_000, 200), (3_000, 50), (10_000, 50), (50_000, 50))


def program(operations: int, conflicts: int, racy: bool) -> str:
    """A scenario with about so many of both. racy: the last wait is missing."""
    lines = [
        "scenario growth", "title Growth", "group bypass", "source none", "expect ok", "",
        f"lanes {', '.join(LANES)}", f"table own[4], shared[{conflicts}]", f"event e[{conflicts}]",
    ]  # fmt: skip
    between = max(1, operations // conflicts - 2)
    for number in range(conflicts):
        reader, writer = LANES[number % 4], LANES[(number + 1) % 4]
        for one in range(between):
            lane = (number + one) % 4
            lines.append(f"{LANES[lane]} writes own[{lane}]")
        lines += [f"{reader} reads shared[{number}]", f"{reader} records e[{number}]"]
        if not racy or number + 1 < conflicts:
            lines.append(f"{writer} waits e[{number}]")
        lines.append(f"{writer} writes shared[{number}]")
    return "\n".join(lines)


def main() -> None:
    print(f"{'operations':>10} {'conflicts':>9} {'interleavings':>13} {'ok, s':>8} {'bad, s':>8}")
    for operations, wanted in CASES:
        seconds = []
        for racy in (False, True):
            scenario = parse(program(operations, wanted, racy))
            started = time.process_time()
            outcome = explore(scenario)
            seconds.append(time.process_time() - started)
            assert outcome.verdict == ("bad" if racy else "ok"), outcome.verdict
        accesses = [sum(bool(outcome.order.steps[one].reaches) for one in on) for on in outcome.order.on]
        digits = (math.lgamma(sum(accesses) + 1) - sum(math.lgamma(one + 1) for one in accesses)) / math.log(10)
        print(
            f"{sum(accesses):>10} {len(conflicts(outcome.order)):>9} {f'10^{digits:.0f}':>13} "
            f"{seconds[0]:>8.3f} {seconds[1]:>8.3f}"
        )


if __name__ == "__main__":
    main()

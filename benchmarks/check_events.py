"""How long `warfence check` takes for 1e4, 1e5 and 1e6 events: reading and checking apart.

The log is an overlapped server's: schedule writes the first halves of rows, the forward reads whole rows, a marker, a
fence that every thousandth step leaves out (the next one covers it: rows come back after many steps).

Seconds are of the processor, so that what else the machine does counts less; one thread does all of it.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from warfence.races.check.events import Event
from warfence.races.check.findings import check
from warfence.races.check.log_file import read_log, write_log

ROWS, WIDTH, BATCH = 512, 64, 8


def served() -> Iterator[Event]:
    """Steps without end."""
    launch = 0
    while True:
        launch += 1
        rows = [(launch * BATCH + i * 37) % ROWS * WIDTH for i in range(BATCH)]
        for row in rows:
            yield Event("write", "schedule", launch, "admit", "table", row, row + WIDTH // 2)
        yield Event("wait_lane", "forward", other="schedule")
        for row in rows:
            yield Event("read", "forward", launch, "snapshot", "table", row, row + WIDTH)
        yield Event("record", "forward", launch, event="marker", generation=launch)
        for layer in range(4):
            yield Event("write", "forward", launch, f"layer {layer}", "cache", launch % 4096, launch % 4096 + BATCH)
        yield Event("read", "copy", launch, "result", "ring", launch % 4, launch % 4 + 1)
        if launch % 1000:
            yield Event("wait", "schedule", launch, event="marker")


def main() -> None:
    print(f"{'events':>9} {'read s':>8} {'check s':>8} {'findings':>9}")
    with tempfile.TemporaryDirectory() as folder:
        for count in (10_000, 100_000, 1_000_000):
            path = Path(folder) / "log.jsonl"
            write_log(path, islice(served(), count))
            begun = time.process_time()
            log = read_log(path)
            read = time.process_time()
            report = check(log)
            done = time.process_time()
            print(f"{count:9} {read - begun:8.2f} {done - read:8.2f} {len(report.findings):9}")


if __name__ == "__main__":
    main()

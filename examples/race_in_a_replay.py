"""A race inside a graph replay: a captured step with two look-ups, and a marker that stands behind the first of them.

    python examples/race_in_a_replay.py [--device cuda] [--fixed]

The scheduler waits for the marker, and then writes the map that the second look-up still reads. `warfence_torch.watch`
names both accesses and the edge that is missing; on CUDA, torch's own sanitizer watches the same calls. At last, `plant`
finds the right place without being told. On the CPU a graph is a list of calls on a worker lane.
Exits 1 when the watch does not find what it should.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))  # so that it runs from a bare checkout

import torch
from torch import Tensor

from warfence.host.lanes import HostEvent, WorkerLane
from warfence.host.quiet import no_collection
from warfence_torch import plant, stage, watch

Tables = dict[str, Tensor]
Call = Callable[[], object]


def decode(tables: Tables, rows: Tensor, marker_behind: str, marker: Call) -> Tensor:
    """One step: which slots, where those lie in the sliding pool, and the work on them. float32 [rows, columns]."""
    with stage("page_table"):
        slots = tables["req_to_token"][rows]
    if marker_behind == "page_table":
        marker()
    with stage("swa_translate"):
        slots = tables["full_to_swa"][slots]
    if marker_behind == "swa_translate":
        marker()
    with stage("layer"):
        return slots.float().cumsum(-1)


def overwrite(tables: Tables) -> None:
    """What the scheduler does next: slot 3 goes to somebody else."""
    with stage("evict"):
        tables["full_to_swa"][3] = 0


def on_host_lanes(tables: Tables, rows: Tensor, marker_behind: str) -> None:
    """Worker lanes: launch, wait for the marker, overwrite."""
    forward, schedule, read_done = WorkerLane("forward"), WorkerLane("schedule"), HostEvent()
    generation = read_done.arm(1)

    def replay() -> None:
        decode(tables, rows, marker_behind, lambda: read_done.complete(generation))

    forward.submit(replay)
    schedule.wait_source(read_done)
    schedule.submit(lambda: overwrite(tables))
    for lane in (forward, schedule):
        lane.synchronize()
        lane.close()


def on_streams(tables: Tables, rows: Tensor, marker_behind: str) -> None:
    """The same with a CUDA graph and an external event inside it."""
    forward, schedule = torch.cuda.Stream(), torch.cuda.Stream()
    read_done, graph = torch.cuda.Event(external=True), torch.cuda.CUDAGraph()
    with no_collection(), torch.cuda.graph(graph, stream=forward):
        decode(tables, rows, marker_behind, lambda: read_done.record(forward))
    torch.cuda.synchronize()
    with torch.cuda.stream(forward):
        graph.replay()
    with torch.cuda.stream(schedule):
        schedule.wait_event(read_done)
        overwrite(tables)
    torch.cuda.synchronize()


def sanitizer_says(run: Call) -> str:
    """What torch's own race detector says about the same calls."""
    from torch.cuda._sanitizer import CUDASanitizerDispatchMode, CUDASanitizerErrors

    with contextlib.redirect_stderr(io.StringIO()):
        try:
            with CUDASanitizerDispatchMode():
                run()
        except CUDASanitizerErrors:
            return "race"
    return "no race"


def main() -> int:
    """Run it as the command line says; 1 when the watch is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--fixed", action="store_true", help="put the marker behind the last look-up")
    given = parser.parse_args()
    tables = {
        "req_to_token": torch.arange(32, device=given.device).view(4, 8),
        "full_to_swa": torch.arange(32, device=given.device),
    }
    rows = torch.tensor([1, 2], device=given.device)
    on = on_host_lanes if given.device == "cpu" else on_streams
    place = "swa_translate" if given.fixed else "page_table"
    decode(tables, rows, place, lambda: None)  # no kernel is to be loaded within a capture

    print(f"The marker stands behind '{place}'.\n")
    with watch(shared=tables) as log:
        on(tables, rows, place)
    races = [finding for finding in log.check().findings if finding.kind == "race"]
    print(f"warfence_torch.watch: {'race' if races else 'no race'}")
    for race in races:
        print(f"  {race.what}\n  edge: {race.missing}\n  earliest: {race.earliest}")
        print("".join(f"  at {where}\n" for where in race.where), end="")
    if given.device == "cuda":
        print(f"torch's sanitizer:    {sanitizer_says(lambda: on(tables, rows, place))}")

    found = plant(lambda: decode(tables, rows, "", lambda: None), tables).boundary
    print(f"\nplant(): {found.lines()[-1]}\n  {found.after}")
    return 0 if bool(races) != given.fixed else 1


if __name__ == "__main__":
    raise SystemExit(main())

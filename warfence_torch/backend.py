"""The torch backend: CPU (worker lanes, recorded forwards) and CUDA (streams, captured graphs)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor

from warfence.core.abilities import Found, Timer
from warfence.core.backend import FORWARD, SCHEDULE, ArraySpec, Capabilities, Forward
from warfence.core.batch import Batch
from warfence.core.errors import InputError
from warfence.core.modes import check_ticket
from warfence.core.program import ForwardProgram, Gated
from warfence.host import cuda
from warfence.host.lanes import HostWord, WorkerLane
from warfence_torch.forward_cuda import CudaForward
from warfence_torch.forward_host import HostForward
from warfence_torch.lanes_cuda import CudaEventSource, CudaLane, CudaWord, distinct_stream
from warfence_torch.package import PACKAGE
from warfence_torch.staging import PinnedRing
from warfence_torch.tables import CudaTables, HostTables, make_arrays
from warfence_torch.tools.found import boundary_of, graph_boundary_of
from warfence_torch.tools.fresh import FreshStaging
from warfence_torch.tools.latency import barrier_latency_us
from warfence_torch.tools.profiling import profiled
from warfence_torch.tools.timing_cuda import CudaTimer
from warfence_torch.tools.timing_host import HostTimer

STAGING: dict[str, type[PinnedRing | FreshStaging]] = {"ring": PinnedRing, "fresh": FreshStaging}
NO_STAGING = "staging is pinned memory on the way to a GPU; on the CPU nothing is staged"
UNGUARDED = "tables are written in place; only the fence protects them"
NO_NODE = "worker lanes have no graph: the lane itself completes the marker's event between two stages"
NO_EXTERNAL_EVENTS = "this torch has no torch.cuda.Event(external=True); torch >= 2.8 has it"


class TorchBackend:
    """Implements `warfence.core.backend.Backend`. device: "cpu" or "cuda". external_markers=False plays a device without
    external events, so that the policy degrades. staging: "ring" (pinned memory that is used again) or, to measure what that
    saves, "fresh" (new pinned memory for each upload). ticket: in-graph tickets by "event" or by "value";
    where there are no words to wait for, by event, and the capabilities say why."""

    name = "torch"

    def __init__(
        self, device: str = "cpu", *, external_markers: bool = True, staging: str = "ring", ticket: str = "event"
    ) -> None:
        if device not in PACKAGE.devices:
            raise InputError(f"backend torch: unknown device '{device}'; choose one of: {', '.join(PACKAGE.devices)}")
        if staging not in STAGING:
            raise InputError(f"backend torch: unknown staging '{staging}'; choose one of: {', '.join(STAGING)}")
        if device == "cpu" and staging != "ring":
            raise InputError(f"backend torch: {NO_STAGING}")
        if device == "cuda" and not torch.cuda.is_available():
            raise InputError(
                "backend torch: no CUDA device here (torch.cuda.is_available() is False); use --device cpu"
            )
        check_ticket("torch", ticket)
        self.device = device
        self.compilations = 0
        no_words = cuda.missing() if device == "cuda" else ""
        self._by_value = ticket == "value" and not no_words
        self._allow_markers = external_markers
        self._make_staging = STAGING[staging]
        self._lanes: dict[str, WorkerLane | CudaLane] = {}
        self._tables: HostTables | CudaTables | None = None
        self._params: dict[str, Tensor] = {}
        self._state: dict[str, Tensor] = {}
        self._timer: HostTimer | CudaTimer | None = None
        self._pool = torch.cuda.graph_pool_handle() if device == "cuda" else None
        markers = self.make_read_done_marker() is not None
        reasons = {} if markers else {"external_markers": NO_EXTERNAL_EVENTS if external_markers else "switched off"}
        self.capabilities = Capabilities(
            external_markers=markers,
            guards_writes=False,
            gates=True,
            precise_release=True,
            value_tickets=self._by_value and markers,
            ways={
                "hold": UNGUARDED,
                "cut": "a captured forward is not cut here: the marker stands in it",
                "word": no_words,
            }
            | {"node": "" if markers and device == "cuda" else NO_NODE if device == "cpu" else NO_EXTERNAL_EVENTS},
            reasons=reasons | {"guards_writes": UNGUARDED} | ({"value_tickets": no_words} if no_words else {}),
        )

    def make_read_done_marker(self, owner: str = "forward") -> CudaEventSource | CudaWord | bool | None:
        """An external event, or a word, for one captured forward (host lanes need none: True); None where the device has none."""
        if not self._allow_markers:
            return None
        if self.device == "cpu":
            return True
        if self._by_value:
            return CudaWord(owner)
        try:
            return CudaEventSource(torch.cuda.Event(external=True))
        except TypeError:
            return None

    def lane(self, name: str) -> WorkerLane | CudaLane:
        if name not in self._lanes:
            if self.device == "cuda":
                taken = [lane for lane in self._lanes.values() if isinstance(lane, CudaLane)]
                self._lanes[name] = CudaLane(name, distinct_stream(taken))
            else:
                self._lanes[name] = WorkerLane(name)
        return self._lanes[name]

    def tables(self, specs: Mapping[str, ArraySpec]) -> HostTables | CudaTables:
        self._tables = CudaTables(specs, self._make_staging) if self.device == "cuda" else HostTables(specs)
        self._settle_device()
        return self._tables

    def load(self, params: Mapping[str, Float32[np.ndarray, "..."]], state: Mapping[str, ArraySpec]) -> None:
        # A copy: numpy weights may be read-only or shared, and a tensor over them would alias host memory (law 12).
        self._params = {n: torch.tensor(a).to(self.device) for n, a in params.items()}
        self._state = make_arrays(state, self.device)
        self._settle_device()

    def find_boundary(self, program: ForwardProgram) -> Found:
        """Implements `warfence.core.abilities.FindsBoundary`."""
        if self._tables is None:
            raise InputError("backend torch: make the tables first, then find_boundary() can see who reads them")
        found = boundary_of(program, self._fixed(), self._tables.arrays)
        self._settle_device()
        return found

    def graph_boundary(self, program: ForwardProgram) -> Found | None:
        """Implements `warfence.core.abilities.ReadsGraph`: on CUDA alone."""
        if self.device != "cuda" or self._tables is None:
            return None
        found = graph_boundary_of(program, self._fixed(), self._tables.arrays)
        self._settle_device()
        return found

    def compile(self, program: ForwardProgram, *, marker_after: str | None = None, gated: Gated = False) -> Forward:
        if marker_after is not None:
            program.index(marker_after)
        marker = self.make_read_done_marker(program.name) if marker_after is not None else None
        fixed, lane = self._fixed(), self.lane(FORWARD)
        self.compilations += 1
        if isinstance(lane, CudaLane):
            if isinstance(self._timer, CudaTimer):
                make_marker = self.make_read_done_marker if marker_after is not None else lambda: None
                return self._timer.forward(program, lane, fixed, make_marker, marker_after, gated, self._pool)
            source = marker if isinstance(marker, CudaEventSource | CudaWord) else None
            return CudaForward(program, lane, fixed, source, marker_after, gated, self._pool, self._make_staging)
        word = HostWord(program.name) if self._by_value and marker else None
        if isinstance(self._timer, HostTimer):
            return self._timer.forward(program, lane, fixed, marker_after if marker else None, gated, word)
        return HostForward(program, lane, fixed, marker_after if marker else None, gated, word)

    def time_stages(self) -> Timer:
        """Implements `warfence.core.abilities.TimesStages`."""
        self._timer = CudaTimer() if self.device == "cuda" else HostTimer()
        return self._timer

    def profiled(self, path: Path) -> AbstractContextManager[None]:
        """Implements `warfence.core.abilities.Profiles`."""
        return profiled(path)

    def barrier_latency_us(
        self, program: ForwardProgram, marker_after: str, batch: Batch, launches: Iterator[int], rounds: int
    ) -> list[float]:
        """Implements `warfence.core.abilities.TimesBarrier`."""
        lane, schedule = self.lane(FORWARD), self.lane(SCHEDULE)
        if not isinstance(lane, CudaLane) or not isinstance(schedule, CudaLane):
            raise InputError("backend torch times the barrier by CUDA events; worker lanes have no clock between them")
        if not self.capabilities.external_markers:
            raise InputError(f"backend torch: {self.capabilities.reasons['external_markers']}")

        def make(marker: CudaEventSource) -> CudaForward:
            self.compilations += 1
            return CudaForward(program, lane, self._fixed(), marker, marker_after, False, self._pool)

        return barrier_latency_us(make, schedule, batch, launches, rounds)

    def state_to_host(self, name: str) -> np.ndarray:
        self.lane(FORWARD).synchronize()
        return self._state[name].cpu().numpy().copy()

    def report(self) -> Mapping[str, object]:
        arrays = {"params": self._params, "state": self._state, "tables": self._tables.arrays if self._tables else {}}
        sizes = {f"{kind}_bytes": sum(t.nbytes for t in made.values()) for kind, made in arrays.items()}
        return {"torch": torch.__version__, "donation": "none: written in place", "refused": 0, **sizes}

    def close(self) -> None:
        for lane in self._lanes.values():
            if isinstance(lane, WorkerLane):
                lane.close()
            else:
                lane.synchronize()

    def _fixed(self) -> dict[str, Tensor]:
        """What never moves: weights, state and tables."""
        return {**self._params, **self._state, **(self._tables.arrays if self._tables is not None else {})}

    def _settle_device(self) -> None:
        """Zero-filling and copies ran on the default stream; the lanes must not overtake them."""
        if self.device == "cuda":
            torch.cuda.synchronize()

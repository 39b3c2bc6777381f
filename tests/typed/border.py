"""For mypy to read, not to run: whatever stands in for an interface has the type of that interface.

A wrong one is an error. Where it is meant to be wrong, mypy says so if it is not (`warn_unused_ignores`).
"""

from __future__ import annotations

from examples.threads_backend import ThreadsBackend
from examples.threads_package import on_cpu as on_threads
from warfence.backend_package import BackendPackage
from warfence.core.abilities import FindsBoundary, Profiles, TimesBarrier, TimesStages
from warfence.core.backend import Backend
from warfence.core.fence import Lane, TicketSource
from warfence.core.gates import Gates, HostGates
from warfence.host.lanes import HostEvent, WorkerLane
from warfence.parity.strict.backend import StrictBackend
from warfence.races.replay.host_machine import HostMachine
from warfence.races.replay.machine import Machine, Machines
from warfence_jax.backend import JaxBackend
from warfence_jax.package import PACKAGE as JAX
from warfence_jax.tools.replay import on_cpu as on_jax
from warfence_torch.backend import TorchBackend
from warfence_torch.package import PACKAGE as TORCH
from warfence_torch.tools.replay import on_cpu, on_cuda


def backends() -> None:
    b: Backend = TorchBackend()
    b = JaxBackend()
    b = StrictBackend()
    b = ThreadsBackend()
    b = WorkerLane("forward")  # type: ignore[assignment]
    b.close()


def abilities(torch: TorchBackend, jax: JaxBackend, strict: StrictBackend, threads: ThreadsBackend) -> None:
    finds: FindsBoundary = torch
    finds = jax
    times: TimesStages = torch
    times = jax
    times = strict
    times = threads  # type: ignore[assignment]
    profiles: Profiles = torch
    latency: TimesBarrier = torch
    print(finds, times, profiles, latency)


def parts(worker: WorkerLane, event: HostEvent, gates: HostGates, machine: HostMachine) -> tuple[Lane, Gates, Machine]:
    source: TicketSource = event
    source = worker  # type: ignore[assignment]
    source.synchronize()
    return worker, gates, machine


def replayed() -> list[Machines]:
    return [*on_cpu(), *on_cuda(), *on_jax(), *on_threads()]


def packages() -> tuple[BackendPackage, ...]:
    return TORCH, JAX

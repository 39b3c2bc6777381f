"""The results of a run as one JSON document, with all that a reader needs to believe them or to repeat them."""

from __future__ import annotations

import datetime
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warfence.bench.engine_runs import ServedResult
from warfence.bench.group import Effort
from warfence.bench.results import CaseResult
from warfence.bench.rounds import RoundsResult
from warfence.bench.run import Found
from warfence.bench.strategies import STRATEGIES
from warfence.core.errors import InputError
from warfence.host import documents
from warfence.serve.jobs.run_report import versions

FORMAT = 1
KERNELS = "float32; decoders of random weights, 32 columns a table row, a window of 16, every other layer sliding"


@dataclass(frozen=True, slots=True)
class Environment:
    """Where and when. devices: what frameworks say of them. variables: those set that move races."""

    date: str
    command: str
    machine: str
    system: str
    cpus: int | None
    devices: Sequence[Mapping[str, Any]]
    versions: Mapping[str, str]
    variables: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Settings:
    """How much was measured, as `group.Effort` says it, and of which kernels."""

    rounds: int
    steps: int
    block_s: float
    kernels: str


@dataclass(frozen=True, slots=True)
class Document:
    """The whole. Times are in the unit that their name ends in; every figure has its raw values. legend: of strategies."""

    format: int
    environment: Environment
    settings: Settings
    legend: Mapping[str, str]
    cases: Sequence[CaseResult]
    served: Sequence[ServedResult]
    rounds: Sequence[RoundsResult] = ()


@dataclass(frozen=True, slots=True)
class _Format:
    format: Any = None


def environment(devices: Sequence[Mapping[str, Any]], variables: Mapping[str, str]) -> Environment:
    """Machine, versions, date and command of this process."""
    return Environment(
        date=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=" ".join(["warfence", *sys.argv[1:]]),
        machine=platform.machine(),
        system=platform.platform(),
        cpus=os.cpu_count(),
        devices=[dict(device) for device in devices],
        versions=versions(),
        variables=dict(variables),
    )


def document(about: Environment, effort: Effort, found: Found) -> Document:
    """What was measured, with its settings."""
    settings = Settings(effort.rounds, effort.steps, effort.block_s, KERNELS)
    return Document(
        FORMAT,
        about,
        settings,
        {strategy.name: strategy.what for strategy in STRATEGIES},
        found.cases,
        found.served,
        found.rounds,
    )


def read_document(path: Path) -> Document:
    """A document written before. InputError for a file that is none, or is of another format."""
    what, remedy = "document of `warfence bench`", "give a file that --out has written"
    seen = documents.read_document(path, _Format, what, remedy).format
    if seen != FORMAT:
        raise InputError(f"'{path}' is no {what} of format {FORMAT}; measure again with --out")
    return documents.read_document(path, Document, "whole " + what, "measure again with --out")

"""The results of a run as one JSON document, with all that a reader needs to believe them or to repeat them."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from warfence.bench.group import Effort
from warfence.bench.results import CaseResult
from warfence.bench.served import ServedResult
from warfence.bench.strategies import STRATEGIES
from warfence.core.errors import InputError
from warfence.serve.jobs.report import versions

FORMAT = 1
KERNELS = "float32; decoders of random weights, 32 columns a table row, a window of 16, every other layer sliding"


def environment(devices: Sequence[Mapping[str, Any]], variables: Mapping[str, str]) -> dict[str, Any]:
    """Machine, versions, date and command. devices: what frameworks say of them. variables: those set that move races."""
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["warfence", *sys.argv[1:]]),
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
        "devices": [dict(device) for device in devices],
        "versions": versions(),
        "variables": dict(variables),
    }


def document(
    about: Mapping[str, Any], effort: Effort, cases: Sequence[CaseResult], served: Sequence[ServedResult]
) -> dict[str, Any]:
    """The whole document. Times are in the unit that their name ends in; every figure has its raw values."""
    return {
        "format": FORMAT,
        "environment": dict(about),
        "settings": {"rounds": effort.rounds, "steps": effort.steps, "block_s": effort.block_s, "kernels": KERNELS},
        "legend": {strategy.name: strategy.what for strategy in STRATEGIES},
        "cases": [case.to_json() for case in cases],
        "served": [one.to_json() for one in served],
    }


def results_of(found: Mapping[str, Any]) -> tuple[list[CaseResult], list[ServedResult]]:
    """What a document holds, as it was measured."""
    return (
        [CaseResult.from_json(one) for one in found["cases"]],
        [ServedResult.from_json(one) for one in found["served"]],
    )


def read_document(path: Path) -> dict[str, Any]:
    """A document written before. InputError for a file that is none, or is of another format."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except OSError as cause:
        raise InputError(f"'{path}' cannot be read ({cause.strerror}); give a file that --out has written") from cause
    except ValueError as cause:
        raise InputError(f"'{path}' is no JSON ({cause}); give a file that --out has written") from cause
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise InputError(f"'{path}' is no document of `warfence bench` of format {FORMAT}; measure again with --out")
    return found

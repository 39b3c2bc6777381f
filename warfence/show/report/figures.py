"""The figures of benchmark documents, each as an image that stands inside the page."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from warfence.bench.document import Environment, read_document
from warfence.bench.plots import draw
from warfence.bench.results import CaseResult
from warfence.core.errors import InputError

WHAT = {
    "over-ideal": "a step over the ideal one, for each strategy; 1 means that nothing is lost",
    "host-costs": "what publishing and the barrier cost the host, and how late the barrier is on the device",
    "table-rows": "step time by the rows of the table",
    "batch": "step time by batch",
    "writes": "step time by table writes a step",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One image. source: a data URI of an SVG file, which so keeps its ids to itself. caption: what it shows."""

    caption: str
    source: str


@dataclass(frozen=True, slots=True)
class Bench:
    """One benchmark document: its figures, and the same as numbers."""

    name: str
    environment: Environment
    figures: Sequence[Figure]
    strategies: Sequence[str]
    cases: Sequence[CaseResult]

    @property
    def machine(self) -> str:
        """The devices that the document names, or the machine."""
        names = dict.fromkeys(str(device["name"]) for device in self.environment.devices)
        return ", ".join(names) or self.environment.machine


def read_bench(path: Path) -> Bench:
    """Read what `warfence bench --out` wrote, and draw it. InputError: no such document, or matplotlib is missing."""
    if find_spec("matplotlib") is None:
        raise InputError("--bench draws figures with matplotlib, which is missing; pip install 'matplotlib>=3.9'")
    found = read_document(path)
    with TemporaryDirectory() as folder:
        figures = [_figure(svg) for svg in draw(found.cases, found.environment, Path(folder))]
    strategies = list(dict.fromkeys(name for case in found.cases for name in case.strategies))
    return Bench(path.name, found.environment, figures, strategies, found.cases)


def _figure(svg: Path) -> Figure:
    what = next((text for ending, text in WHAT.items() if svg.stem.endswith(ending)), "")
    about = svg.stem.removesuffix(next((f"-{ending}" for ending in WHAT if svg.stem.endswith(ending)), ""))
    encoded = base64.b64encode(svg.read_bytes()).decode("ascii")
    return Figure(f"{about.replace('-', ' ')}: {what}", f"data:image/svg+xml;base64,{encoded}")

"""Figures of a run as SVG. What is told apart by colour is told apart by marker or hatch too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from warfence.bench.cases import Case
from warfence.bench.document import Environment
from warfence.bench.results import CaseResult
from warfence.bench.spread import Spread
from warfence.bench.strategies import NAMES, REFERENCE
from warfence.core.errors import InputError

# Okabe and Ito's colours, which most people with a colour vision deficiency can tell apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000", "#999999", "#8C6D00", "#5B3A8C",
           "#00A0A0")  # fmt: skip
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p")
HATCHES = ("", "//", "..", "xx", "\\\\", "--", "++", "oo", "||", "OO", "**")
CURVES = ("serial", "coarse", "self", REFERENCE, "copy", "copied_tables")


def check_plots(directory: Path) -> None:
    """InputError now, and not after minutes, when no figure could be drawn."""
    if find_spec("matplotlib") is None:
        raise InputError("--plots needs the package matplotlib: pip install 'matplotlib>=3.9'")
    if directory.exists() and not directory.is_dir():
        raise InputError(f"--plots '{directory}' is a file; give a directory")


def draw(cases: Sequence[CaseResult], environment: Environment, directory: Path) -> Iterator[Path]:
    """Draw what the cases hold, one file a figure; yields each path when it is written."""
    directory.mkdir(parents=True, exist_ok=True)
    for backend, device in dict.fromkeys((case.backend, case.device) for case in cases):
        mine = [case for case in cases if (case.backend, case.device) == (backend, device)]
        about, label = f"{backend} on {device}", _file_name(f"{backend}-{device}")
        points = [case for case in mine if case.case == Case(case.case.forward)]
        if points:
            yield _bars(points, about, environment, directory / f"{label}-over-ideal.svg")
            yield _costs(points, about, environment, directory / f"{label}-host-costs.svg")
        for axis, title in (("table_rows", "rows of the table"), ("batch", "batch"), ("writes", "table writes a step")):
            for forward in dict.fromkeys(case.case.forward for case in mine):
                moved = [case for case in mine if case.case.forward == forward and _only(case.case, axis)]
                if len(moved) > 1:
                    where = directory / f"{label}-{_file_name(forward)}-{axis.replace('_', '-')}.svg"
                    yield _curves(moved, axis, title, f"{about}, {forward}", environment, where)


def _file_name(text: str) -> str:
    """The text as a part of a file's name: nothing in it leads out of the directory."""
    return re.sub(r"[^A-Za-z0-9._-]", "_", text).lstrip(".") or "_"


def _only(case: Case, axis: str) -> bool:
    """Whether nothing but this axis is moved."""
    plain = Case(case.forward)
    return all(getattr(case, n) == getattr(plain, n) for n in ("writes", "sync", "batch", "table_rows") if n != axis)


def _bars(cases: Sequence[CaseResult], about: str, environment: Environment, path: Path) -> Path:
    """Step over ideal: a group a forward, a bar a strategy."""
    figure, axes = _figure(environment, about)
    names = [name for name in NAMES if any(name in case.strategies for case in cases)]
    width = 0.8 / max(len(names), 1)
    for i, name in enumerate(names):
        having = [(at, case.strategies[name].over_ideal) for at, case in enumerate(cases) if name in case.strategies]
        middles = [s.median for _, s in having]
        spans = [[s.median - s.low for _, s in having], [s.high - s.median for _, s in having]]
        k = NAMES.index(name)
        axes.bar(
            [at + (i - (len(names) - 1) / 2) * width for at, _ in having], middles, width, yerr=spans, label=name,
            color=COLOURS[k], hatch=HATCHES[k], edgecolor="white", error_kw={"elinewidth": 0.8},
        )  # fmt: skip
    axes.axhline(1.0, color="black", linewidth=0.8)
    axes.set_xticks(range(len(cases)), [f"{c.case.forward}\n{c.forward_ms.median:.2f} ms alone" for c in cases])
    axes.set_ylabel("step / ideal (1: nothing is lost)")
    _legend(figure)
    return _save(figure, path)


def _costs(cases: Sequence[CaseResult], about: str, environment: Environment, path: Path) -> Path:
    """Microseconds of publish and barrier on the host, and the latency of the barrier, a group a forward."""
    figure, axes = _figure(environment, about)
    kinds: dict[str, list[Spread | None]] = {
        kind: [case.host_costs_us.get(kind) for case in cases] for kind in ("in_graph", "recorded", "coarse", "off")
    }
    kinds["barrier latency (device)"] = [case.barrier_latency_us for case in cases]
    for i, (kind, spreads) in enumerate(kinds.items()):
        having = [(at, s) for at, s in enumerate(spreads) if s is not None]
        spans = [[s.median - s.low for _, s in having], [s.high - s.median for _, s in having]]
        if having:
            axes.bar(
                [at + (i - 2) * 0.16 for at, _ in having], [s.median for _, s in having], 0.16, yerr=spans, label=kind,
                color=COLOURS[i], hatch=HATCHES[i], edgecolor="white", error_kw={"elinewidth": 0.8},
            )  # fmt: skip
    axes.set_xticks(range(len(cases)), [case.case.forward for case in cases])
    axes.set_ylabel("publish + barrier, us")
    _legend(figure)
    return _save(figure, path)


def _curves(
    cases: Sequence[CaseResult], axis: str, title: str, about: str, environment: Environment, path: Path
) -> Path:
    """Step time along an axis: a curve a strategy, with quartiles, and the ideal."""
    figure, axes = _figure(environment, about)
    at = [getattr(case.case, axis) for case in cases]
    for name in (n for n in CURVES if all(n in case.strategies for case in cases)):
        k = NAMES.index(name)
        _curve(axes, at, [case.strategies[name].step_ms for case in cases], name, COLOURS[k], MARKERS[k])
    axes.plot(at, [case.ideal_ms.median for case in cases], "k--", linewidth=1, label="ideal")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for formatted in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        formatted("{x:g}")  # plain numbers: a step that is flat spans less than a decade
    axes.set_xlabel(title)
    axes.set_ylabel("step, ms")
    _legend(figure)
    return _save(figure, path)


def _curve(axes: Any, at: Sequence[int], spreads: Sequence[Spread], name: str, colour: str, marker: str) -> None:
    middles = [s.median for s in spreads]
    spans = [[s.median - s.low for s in spreads], [s.high - s.median for s in spreads]]
    axes.errorbar(at, middles, yerr=spans, label=name, color=colour, marker=marker, linewidth=1.2, capsize=2)


def _figure(environment: Environment, about: str) -> tuple[Any, Any]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained", facecolor="white")
    axes = figure.add_subplot(facecolor="white")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    devices = ", ".join(dict.fromkeys(str(device["name"]) for device in environment.devices))
    axes.set_title(f"{about}{f' ({devices})' if devices else ''}, {environment.date[:10]}", loc="left", fontsize=10)
    return figure, axes


def _legend(figure: Any) -> None:
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)


def _save(figure: Any, path: Path) -> Path:
    figure.savefig(path, format="svg", metadata={"Date": None})
    return path

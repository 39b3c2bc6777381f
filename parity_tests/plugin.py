"""The suite's pytest plugin: its options, its targets, and what skips what. Entry point `pytest11`, so it is always there.

Therefore it imports next to nothing, and does nothing in a run that is not about these tests: with warfence installed,
other projects may have a `--backend` of their own. A bare checkout has no entry points; there conftest.py brings it in.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

Target = tuple[str, str]
HERE = Path(__file__).resolve().parent
MARKERS = {
    "gpu": "needs a CUDA device; skipped with its reason where there is none",
    "slow": "over 0.25 s",
    "xdist_group(name)": "tests that share compiled forwards, which pytest-xdist's --dist loadgroup keeps on one worker",
}


def add_options(parser: pytest.Parser) -> None:
    """Once, whoever comes first: this plugin, or the conftest.py that brings it in."""
    group = parser.getgroup("warfence", "warfence parity suite")
    if any("--backend" in option.names() for option in group.options):
        return
    group.addoption(
        "--backend", action="append", default=[], dest="warfence_backends", metavar="NAME",
        help="backend to test: a registered name, strict (the reference), or pkg.mod:attr; may be repeated (default: all)",
    )  # fmt: skip
    group.addoption(
        "--device", default="cpu", dest="warfence_device", help="device of the backends named with --backend"
    )
    for kind, what in (("skips", "skip"), ("xfails", "expect to fail")):
        group.addoption(
            f"--{kind}-file", default=None, type=Path, dest=f"warfence_{kind}", metavar="FILE",
            help=f"cells and laws to {what}: an id a line, and # why",
        )  # fmt: skip


def concerned(config: pytest.Config) -> bool:
    """Whether this run has the suite's options."""
    return hasattr(config.option, "warfence_backends")


def targets(config: pytest.Config) -> list[Target]:
    named = config.getoption("warfence_backends")
    device = config.getoption("warfence_device")
    return [(name, device) for name in dict.fromkeys(named)] if named else every_target()


def every_target() -> list[Target]:
    """The reference and each registered backend on the CPU, then each on its other devices."""
    from warfence.backends import REFERENCE, available

    pairs = [(name, one.devices or ("cpu",)) for name, one in (REFERENCE | available()).items()]
    first = [(name, devices[0]) for name, devices in pairs]
    return first + [(name, device) for name, devices in pairs for device in devices[1:]]


def unguarded_options(target: Target) -> dict[str, str]:
    """Options of a backend that leave its tables to the fence alone."""
    from warfence.backends import package

    return dict(package(target[0]).unguarded)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(parser: pytest.Parser, args: list[str]) -> None:
    if any(_names_us(arg) for arg in args):
        add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    if not concerned(config):
        return
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # before a framework is imported: the lanes bring their own threads
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")
    from warfence.core.errors import InputError

    try:
        _check(config.getoption("warfence_backends"))
        config.stash[SELECTION] = _selection(config)
    except InputError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_report_header(config: pytest.Config) -> list[str]:
    if not concerned(config):
        return []
    from warfence import __version__
    from warfence.cli import environment, packages

    versions = [
        f"{p.name} {p.version}"
        for p in packages.survey()
        if p.version and p.extra not in {**packages.CORE, **packages.TOOLS}
    ]
    seen = [f"{v['name']}={v['value']}" for v in environment.survey() if v["value"] is not None]
    lines = [f"warfence {__version__}: {', '.join('-'.join(t) for t in targets(config))}; {', '.join(versions)}"]
    return lines + ([f"variables that move races: {', '.join(seen)}"] if seen else [])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames and _ours(metafunc.definition):
        kind = "engines" if "engines" in metafunc.fixturenames else "rigs"
        params = [pytest.param(t, id="-".join(t), marks=_marks(t, kind)) for t in targets(metafunc.config)]
        metafunc.parametrize("target", params, scope="session")


@pytest.hookimpl(trylast=True)  # after -m and -k have removed what will not run
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ours = [item for item in items if _ours(item)]
    skip_without_gpu(ours)
    _thin(ours, config)
    if ours and SELECTION in config.stash:
        _select(config.stash[SELECTION], ours)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for sentence in _unmatched(config.stash[SELECTION]) if SELECTION in config.stash else ():
        terminalreporter.write_line(f"warning: {sentence}", yellow=True)


def skip_without_gpu(items: Iterable[pytest.Item]) -> None:
    """Skip the `gpu` tests among these, with the reason, where there is no device."""
    needing = [item for item in items if item.get_closest_marker("gpu")]
    if needing and (reason := why_no_gpu()):
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=reason))


def why_no_gpu() -> str | None:
    """Why `gpu` tests cannot run here, or None when they can. Imports a framework, so it is asked only when it matters."""
    from warfence.backends import available, is_installed, resolve

    asked = [one for one in available().values() if one.framework and one.framework.on_device and is_installed(one)]
    if not asked:
        return "needs a CUDA device: no framework is installed that could look for one"
    found = {one.name: resolve(one, one.framework.devices)() for one in asked if one.framework}
    if any(platform != "cpu" for devices in found.values() for platform, _ in devices):
        return None
    return f"needs a CUDA device: {' and '.join(found)} sees none"


# -- inside

SELECTION: pytest.StashKey[Any] = pytest.StashKey()


def _names_us(argument: str) -> bool:
    """Whether an argument is this package, one of its modules, or a file of it. This module is named by `-p` only."""
    name = argument.partition("::")[0]
    return (name.split(".")[0] == HERE.name and name != __name__) or HERE in (
        path := Path(name).resolve(),
        *path.parents,
    )


def _ours(node: pytest.Item | Any) -> bool:
    return HERE in Path(node.path).resolve().parents


def _marks(target: Target, kind: str) -> list[pytest.MarkDecorator]:
    """One worker for all engines of a target, and one for its rigs, so that each is compiled once.

    A framework that is not installed skips, with the remedy.
    """
    from warfence.backends import is_installed, missing, package

    name, device = target
    marks = [pytest.mark.xdist_group("-".join((*target, kind)))]
    if device != "cpu":
        marks.append(pytest.mark.gpu)
    if not is_installed(package(name)):
        marks.append(pytest.mark.skip(reason=f"{name} is not installed: {missing()[name]}"))
    return marks


def _thin(items: list[pytest.Item], config: pytest.Config) -> None:
    """Skip what `parity_tests.thin` leaves out, with its reason."""
    from parity_tests.thin import left_out

    named = bool(config.getoption("warfence_backends", default=[]))
    for item in items:
        target = getattr(getattr(item, "callspec", None), "params", {}).get("target")
        if target is not None and (why := left_out(item.name, target, named)):
            item.add_marker(pytest.mark.skip(reason=why))


def _check(names: list[str]) -> None:
    """InputError for a name that is no backend, before any test has run."""
    from warfence.backends import REFERENCE, available, load
    from warfence.parity.selection import choose

    for name in names:
        if ":" not in name:
            choose("backend", [name], [*available(), *REFERENCE], "; or give a dotted path 'pkg.mod:attr'")
            continue
        load(name)


def _selection(config: pytest.Config) -> Any:
    from warfence.parity.selection import read_selection

    return read_selection(config.getoption("warfence_skips"), config.getoption("warfence_xfails"))


def _select(selection: Any, items: list[pytest.Item]) -> None:
    """Apply the skips and xfails files to the tests of cells and laws."""
    for item in items:
        id = _id(item)
        if id is not None and (why := selection.skip(id)) is not None:
            item.add_marker(pytest.mark.skip(reason=why))
        elif id is not None and (why := selection.xfail(id)) is not None:
            item.add_marker(pytest.mark.xfail(reason=why, strict=True))


def _unmatched(selection: Any) -> list[str]:
    """A sentence for each line of the files that is about no cell and no law."""
    from warfence.parity.cells import matrix
    from warfence.parity.laws import LAWS

    found: list[str] = selection.unmatched([*(cell.name for cell in matrix()), *(law.id for law in LAWS)])
    return found


def _id(item: pytest.Item) -> str | None:
    """The cell's name or the law's id, of a test that is about one."""
    params = getattr(getattr(item, "callspec", None), "params", {})
    cell, law = params.get("cell"), params.get("law")
    return str(cell.name) if cell is not None else str(law.id) if law is not None else None

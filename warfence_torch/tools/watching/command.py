"""A script under watch: what `python -m warfence_torch.watch` does."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from torch import Tensor

from warfence.core.errors import InputError, WarfenceError
from warfence.races.check.told import told
from warfence_torch.tools.watching.session import Watch

MAIN = "__main__"
FAILED, BAD_INPUT = 1, 2


def main(arguments: Sequence[str]) -> int:
    """Run it, print the report, and give the exit status: 1 findings or a script that failed, 2 bad input, else the script's."""
    given = _parser().parse_args(arguments)
    try:
        names = [_named(one) for one in given.shared]
        if not names and not given.blocks:
            raise InputError(
                "nothing to watch; name tensors, --shared __main__:table, or take all of a device: --blocks"
            )
        code = _compiled(given.script)
        watching = Watch(path=given.out, blocks=given.blocks, later=True)
        for module, name in names:
            if module != MAIN:
                _add(watching, module, name)
        status = _run(watching, code, given.script, given.args, {name for module, name in names if module == MAIN})
        report = watching.check()
    except WarfenceError as error:
        print(f"Error: {error}", file=sys.stderr)
        return BAD_INPUT
    for line in told(report, str(given.out or given.script)):
        print("".join(c if c.isprintable() else "?" for c in line))
    return FAILED if report.findings else status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m warfence_torch.watch",
        description="Run a script under watch, and report what races. Exit status: 1 findings, 2 bad input, else the script's.",
    )
    parser.add_argument(
        "--shared", metavar="MODULE:NAME", action="append", default=[],
        help="a tensor or array to watch, by module and name; __main__ is the script, which is watched once it has that name",
    )  # fmt: skip
    parser.add_argument("--blocks", action="store_true", help="watch all memory of CUDA devices")
    parser.add_argument("--out", type=Path, metavar="LOG", help="write the log there, for warfence check")
    parser.add_argument("script", type=Path, metavar="SCRIPT")
    parser.add_argument("args", nargs=argparse.REMAINDER, metavar="ARGS")
    return parser


def _named(given: str) -> tuple[str, str]:
    module, colon, name = given.partition(":")
    if not (module and colon and name):
        raise InputError(f"--shared {given}: a module and a name in it are needed, such as engine.tables:page_table")
    return module, name


def _compiled(script: Path) -> Any:
    try:
        return compile(script.read_bytes(), str(script), "exec", dont_inherit=True)
    except (OSError, SyntaxError, ValueError) as error:
        raise InputError(f"{script} is no script that can be run: {error}") from error


def _add(watching: Watch, module: str, name: str) -> None:
    try:
        one = getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise InputError(f"--shared {module}:{name}: {error}") from error
    watching.add(name, one)


def _run(watching: Watch, code: Any, script: Path, args: Sequence[str], wanted: set[str]) -> int:
    """The script as the main module, under watch; its exit status."""
    module = ModuleType(MAIN)
    module.__file__ = str(script)
    names = Names(vars(module), wanted, watching.add)
    before, argv, path = sys.modules[MAIN], sys.argv, sys.path[:]
    sys.modules[MAIN], sys.argv = module, [str(script), *args]
    sys.path.insert(0, str(script.parent.resolve()))
    status = 0
    try:
        with watching:
            try:
                exec(code, vars(module), names)
            except SystemExit as end:
                status = end.code if isinstance(end.code, int) else int(end.code is not None)
            except InputError:
                raise
            except Exception:
                traceback.print_exc()
                status = FAILED
    finally:
        sys.modules[MAIN], sys.argv, sys.path[:] = before, argv, path
    if names.wanted:
        raise InputError(
            f"the script never had {', '.join(sorted(names.wanted))} as a tensor or array, so nothing was watched there"
        )
    return status


class Names(MutableMapping[str, Any]):
    """The names of a module that runs, which tells when one that is wanted becomes a tensor or an array."""

    def __init__(self, names: dict[str, Any], wanted: set[str], found: Callable[[str, Any], None]) -> None:
        self._names, self.wanted, self._found = names, wanted, found

    def __setitem__(self, name: str, value: Any) -> None:
        self._names[name] = value
        if name in self.wanted and isinstance(value, (Tensor, np.ndarray)):
            self.wanted.discard(name)
            self._found(name, value)

    def __getitem__(self, name: str) -> Any:
        return self._names[name]

    def __delitem__(self, name: str) -> None:
        del self._names[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

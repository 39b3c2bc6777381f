"""Ask a framework or a backend about itself, in a child process.

A child, because the answer may be a crash, a hang or memory taken on a GPU, and because the command line itself
imports no framework. `ask` runs in the parent; the child prints one JSON document as its last line. The current directory,
where a plug-in may lie, comes last on its path: a `json.py` there is not run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from warfence import backends
from warfence.cli import packages
from warfence.core.errors import WarfenceError

TIMEOUT_SECONDS = 180  # the first import of a framework from a cold disk takes most of a minute

CHILD = "import sys; sys.path += sys.argv[2:]; from warfence.cli.survey import tell; tell()"
NOT_FLAGS = ("reasons", "ways")  # of `Capabilities`

Answer = dict[str, Any]


def ask(subject: str, timeout: float = TIMEOUT_SECONDS) -> Answer:
    """The child's answer, or {"error": why there is none}.

    `subject` is `framework:NAME` `backend:NAME[@DEVICE]`, with a name that `warfence.backends.load` takes: the devices that the
    framework of that backend sees, or what the backend says of itself.
    """
    environ = dict(os.environ)
    places = [str(Path(__file__).resolve().parents[2]), os.getcwd()]
    for one in packages.frameworks().values():
        environ.update(one.environment)  # looking must not take the GPU's memory
    command = [sys.executable, "-P", "-c", CHILD, subject, *places]  # -P: nothing unsafe before the standard library
    try:
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
    except subprocess.TimeoutExpired:
        return {"error": f"no answer within {timeout:g} s"}
    lines = done.stdout.splitlines()
    if done.returncode == 0 and lines:
        answer: Answer = json.loads(lines[-1])
        return answer
    said = done.stderr.strip().splitlines()
    return {"error": f"exit status {done.returncode}: {said[-1] if said else 'it said nothing'}"}


def other_devices() -> list[dict[str, Any]]:
    """All devices other than the CPU that the installed frameworks see."""
    asked = [ask(f"framework:{name}") for name in packages.frameworks() if name not in backends.missing()]
    return [device for one in asked for device in one.get("devices", ()) if device["platform"] != "cpu"]


def answer(subject: str) -> Answer:
    """What the child says about `subject`. Every exception becomes an answer: a diagnosis has no traceback."""
    kind, _, name = subject.partition(":")
    try:
        return _framework(name) if kind == "framework" else _backend(*name.split("@"))
    except WarfenceError as problem:
        return {"error": str(problem)}
    except Exception as problem:
        return {"error": f"{type(problem).__name__}: {problem}"}


def _framework(name: str) -> Answer:
    one = backends.package(name)
    if one.framework is None:
        return {"error": None, "devices": []}
    backends.check_installed(one)
    found = backends.resolve(one, one.framework.devices)()
    return {"error": None, "devices": [{"framework": name, "platform": where, "name": what} for where, what in found]}


def _backend(name: str, device: str = "") -> Answer:
    backend = backends.load(name)(**({"device": device} if device else {}))
    try:
        said = backend.capabilities
        capabilities = {field.name: getattr(said, field.name) for field in fields(said) if field.name not in NOT_FLAGS}
        return {
            "error": None,
            "device": backend.device,
            "capabilities": capabilities,
            "reasons": dict(said.reasons),
            "ways": dict(said.ways),
        }
    finally:
        backend.close()


def tell() -> None:
    """What the child does: print the answer about its first argument."""
    print(json.dumps(answer(sys.argv[1])))

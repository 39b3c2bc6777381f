"""Ask a framework or a backend about itself, in a child process.

A child, because the answer may be a crash, a hang or memory taken on a GPU, and because the command line itself
imports no framework. `ask` runs in the parent; `python -m warfence.cli.survey SUBJECT` is the child, which prints
one JSON document as its last line.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from warfence.backends import load
from warfence.core.errors import WarfenceError

TIMEOUT_SECONDS = 180  # the first import of a framework from a cold disk takes most of a minute

Answer = dict[str, Any]


def ask(subject: str, timeout: float = TIMEOUT_SECONDS) -> Answer:
    """The child's answer, or {"error": why there is none}.

    `subject` is `framework:torch`, `framework:jax`, or `backend:NAME` with a name that `warfence.backends.load` takes.
    """
    environ = dict(os.environ)
    root = str(Path(__file__).resolve().parents[2])
    environ["PYTHONPATH"] = os.pathsep.join(filter(None, (root, os.getcwd(), environ.get("PYTHONPATH"))))
    environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"  # looking must not take the GPU's memory
    command = [sys.executable, "-m", "warfence.cli.survey", subject]
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


def answer(subject: str) -> Answer:
    """What the child says about `subject`. Every exception becomes an answer: a diagnosis has no traceback."""
    kind, _, name = subject.partition(":")
    try:
        return _framework(name) if kind == "framework" else _backend(name)
    except WarfenceError as problem:
        return {"error": str(problem)}
    except Exception as problem:
        return {"error": f"{type(problem).__name__}: {problem}"}


def _framework(name: str) -> Answer:
    framework: Any = importlib.import_module(name)
    found = _torch_devices(framework) if name == "torch" else _jax_devices(framework)
    return {"error": None, "devices": [{"framework": name, "platform": where, "name": what} for where, what in found]}


def _torch_devices(torch: Any) -> list[tuple[str, str]]:
    gpus = [("cuda", torch.cuda.get_device_name(index)) for index in range(torch.cuda.device_count())]
    return [("cpu", f"{torch.get_num_threads()} threads"), *gpus]


def _jax_devices(jax: Any) -> list[tuple[str, str]]:
    """The CPU client's devices, then the default client's: the CPU client is always there and may hold the tables."""
    found = [("cpu", device.device_kind) for device in jax.devices("cpu")]
    return found + [(device.platform, device.device_kind) for device in jax.devices() if device.platform != "cpu"]


def _backend(name: str) -> Answer:
    backend = load(name)()
    try:
        said = backend.capabilities
        capabilities = {field.name: getattr(said, field.name) for field in fields(said) if field.name != "reasons"}
        return {
            "error": None,
            "device": backend.device,
            "capabilities": capabilities,
            "reasons": dict(said.reasons),
        }
    finally:
        backend.close()


if __name__ == "__main__":
    print(json.dumps(answer(sys.argv[1])))

"""`warfence backends`: the registered backends, whether each starts here, on what, and what it says it can do."""

from __future__ import annotations

from typing import Any

from warfence.cli import survey
from warfence.cli.output import JsonFlag, print_json, print_table


def backends(as_json: JsonFlag = False) -> None:
    """List the registered backends with their devices and capabilities."""
    found = report()
    if as_json:
        print_json({"backends": found})
        return
    rows = [[entry["name"], entry["target"], entry["device"] or "-", entry["error"] or "starts"] for entry in found]
    print_table("Backends", ("backend", "target", "device", "status"), rows)
    started = [entry for entry in found if not entry["error"]]
    names = dict.fromkeys(name for entry in started for name in entry["capabilities"])
    print_table(
        "Capabilities",
        ("capability", *(entry["name"] for entry in started)),
        [[name, *(_capability(entry, name) for entry in started)] for name in names],
    )


def report() -> list[dict[str, Any]]:
    """One entry a backend: name, target, error (None: it starts), device, capabilities, reasons for each lack."""
    from warfence.backends import available

    blank: dict[str, Any] = {"error": None, "device": None, "capabilities": {}, "reasons": {}}
    return [
        {"name": name, "target": target} | blank | survey.ask(f"backend:{name}") for name, target in available().items()
    ]


def _capability(entry: dict[str, Any], name: str) -> str:
    if entry["capabilities"].get(name):
        return "yes"
    return f"no: {entry['reasons'][name]}" if name in entry["reasons"] else "no"

"""A check of Trace Event JSON, written from the public specification ("Trace Event Format", JSON Object Format)."""

from __future__ import annotations

from numbers import Real
from typing import Any

METADATA = {
    "process_name": "name",
    "thread_name": "name",
    "process_sort_index": "sort_index",
    "thread_sort_index": "sort_index",
}
COLOURS = {"good", "bad", "terrible", "black", "grey", "white", "yellow", "olive"}


def problems(document: Any) -> list[str]:
    """What is wrong with a document; empty when nothing is."""
    if not isinstance(document, dict) or not isinstance(document.get("traceEvents"), list):
        return ["no object with a list 'traceEvents'"]
    found = [] if document.get("displayTimeUnit", "ms") in ("ms", "ns") else ["displayTimeUnit is neither ms nor ns"]
    for i, event in enumerate(document["traceEvents"]):
        found += [f"event {i}: {what}" for what in _event(event)]
    return found or _flows(document["traceEvents"])


def _event(event: Any) -> list[str]:
    if not isinstance(event, dict):
        return ["no object"]
    kind = event.get("ph")
    wrong = [f"'{key}' is no whole number" for key in ("pid", "tid") if not isinstance(event.get(key), int)]
    if not isinstance(event.get("name"), str):
        wrong.append("no name")
    if not isinstance(event.get("args", {}), dict):
        wrong.append("args are no object")
    if kind == "M":
        argument = METADATA.get(event.get("name", ""))
        return wrong if argument in event.get("args", {}) else [*wrong, "metadata without its argument"]
    if not isinstance(event.get("ts"), Real):
        wrong.append("no ts")
    if event.get("cname", "good") not in COLOURS:
        wrong.append(f"cname {event['cname']} is not of the palette")
    if kind == "X":
        return wrong if isinstance(event.get("dur"), Real) and event["dur"] >= 0 else [*wrong, "X without its dur"]
    if kind == "i":
        return wrong if event.get("s", "t") in ("g", "p", "t") else [*wrong, "instant of an unknown scope"]
    if kind in ("s", "f"):
        wrong += [] if "id" in event and "cat" in event else ["flow without id or cat"]
        return wrong if kind == "s" or event.get("bp") == "e" else [*wrong, "flow end that binds to the next slice"]
    return [*wrong, f"unknown phase {kind!r}"]


def _flows(events: list[Any]) -> list[str]:
    """Each flow has one begin and one end, and both lie in a slice of their thread."""
    found = []
    ends: dict[Any, list[str]] = {}
    slices: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for e in events:
        if e.get("ph") == "X":
            slices.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    for e in events:
        if e.get("ph") in ("s", "f"):
            ends.setdefault((e.get("cat"), e.get("id")), []).append(e["ph"])
            if not any(a <= e["ts"] <= b for a, b in slices.get((e["pid"], e["tid"]), [])):
                found.append(f"flow {e.get('id')}: its {e['ph']} lies in no slice")
    return found + [f"flow {key}: {kinds}" for key, kinds in ends.items() if sorted(kinds) != ["f", "s"]]

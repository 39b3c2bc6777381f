"""The scenarios of public reports that calls of the neutral interface can express, each bad one with a fixed twin.

The names are those of the reports' list. Every other scenario of that list is in `NOT_EXPRESSED`, with its reason.
"""

from __future__ import annotations

from warfence.races.check.pairs.fences import FENCES
from warfence.races.check.pairs.tickets import TICKETS

SCENARIOS = (*FENCES, *TICKETS)
PRIVATE = "state of forwards (KV, relay) is private to the forward lane; no call lets another lane touch it"
HOST_MEMORY = "memory of one framework: `warfence_jax.tools.watch` judges it"
NOT_EXPRESSED = {
    "re-record": PRIVATE, "kv-reuse": PRIVATE, "kv-backup": PRIVATE, "state-snapshot": PRIVATE,
    "block-lifetime": "the interface has no allocation", "block-kept": "the interface has no allocation",
    "wait-cycle": "a wait binds at its call, so that no cycle can be written",
    "stale-static": "a wrong value in the right order",
    "alias": HOST_MEMORY, "alias-copied": HOST_MEMORY, "double-donation": HOST_MEMORY, "donation-hold": HOST_MEMORY,
    "donation-refused": HOST_MEMORY,
    "zeroing": "the arrays of a table write are the caller's promise; nothing tells when they change",
    "view": "a stage declares tables, not parts of them",
}  # fmt: skip

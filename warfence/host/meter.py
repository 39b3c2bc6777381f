"""How far something long has come: told part by part, so that somebody can show it."""

from __future__ import annotations


class Meter:
    """Told how it goes on. This one shows nothing."""

    def phase(self, what: str, total: int) -> None:
        """A part begins, of so many steps."""

    def step(self, bad: bool = False) -> None:
        """One step is done; bad: it counts as a failure."""

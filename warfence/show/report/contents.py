"""What a report holds, before it is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from warfence.bench.document import Environment
from warfence.parity.report import Report
from warfence.races.scenarios.groups import Group
from warfence.show.report.figures import Bench
from warfence.show.report.timelines import Picture


@dataclass(slots=True)
class Contents:
    """A part that is None or empty is left out of the page; `left_out` says why, by the name of the part.

    parity: cells, laws and mutants. parity_from: the file that they were read from; empty where this run measured them.
    about: date, command, versions, devices and variables of this run; None: not said.
    """

    parity: Report
    parity_from: str = ""
    about: Environment | None = None
    timeline: Picture | None = None
    catalogue: Sequence[Group] = ()
    benches: Sequence[Bench] = ()
    left_out: dict[str, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Nothing failed, and every verdict of the catalogue is the one that is expected."""
        return self.parity.ok and all(group.unexpected == 0 for group in self.catalogue)

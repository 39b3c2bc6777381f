"""What a missing fence did: a run without one, compared with its serial twin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from warfence.serve.jobs.divergence import Divergence, differences, split
from warfence.serve.jobs.job import Job
from warfence.serve.jobs.session import Outcome


@dataclass(frozen=True, slots=True)
class Hazard:
    """The comparison. `wrong`: where each wrong request first differs, by id; the texts are those of the first."""

    twin: Outcome
    run: Outcome
    wrong: tuple[Divergence, ...]
    near_ties: tuple[Divergence, ...]
    serial_text: str = ""
    text: str = ""

    @property
    def landed(self) -> int:
        """Launches whose next table writes landed before the launch had read."""
        return self.run.summary.forced_order.get("landed_before_read", 0) if self.run.summary else 0

    @property
    def waited(self) -> int:
        """Launches whose next table writes waited for the read although no fence told them to."""
        return self.run.summary.forced_order.get("waited", 0) if self.run.summary else 0

    @property
    def refused(self) -> int:
        """Launches that the runtime refused because a write had taken their table's memory (dead handles)."""
        counted = self.run.runtime.get("refused", 0)
        return max(counted if isinstance(counted, int) else 0, int(self.run.refusal is not None))

    def to_json(self) -> dict[str, Any]:
        """`differs`, how many requests, the first of them with both texts, and what the runtime did."""
        first = self.wrong[0] if self.wrong else None
        texts = {"serial_text": self.serial_text, "text": self.text}
        return {
            "differs": bool(self.wrong),
            "requests_differing": len(self.wrong),
            "near_ties": len(self.near_ties),
            "first": None if first is None else {"request": first.request, "position": first.position} | texts,
            "forced_order": {"landed_before_read": self.landed, "waited": self.waited},
            "runtime": {
                "guards_writes": self.run.guards_writes,
                "held": self.waited,
                "refused": self.refused,
                "said": self.run.refusal,
            },
        }


def compare(job: Job, twin: Outcome, run: Outcome) -> Hazard:
    """What differs. Where the runtime stopped the run, only the tokens that it had made by then are compared."""
    found = differences(run.requests, twin.requests)
    if run.summary is None:
        found = [difference for difference in found if difference.seen is not None]
    wrong, ties = split(found)
    if not wrong:
        return Hazard(twin, run, (), tuple(ties))
    decode, at = job.model.tokenizer.decode, wrong[0].request
    texts = [decode(next(r.output for r in outcome.requests if r.id == at)) for outcome in (twin, run)]
    return Hazard(twin, run, tuple(wrong), tuple(ties), *texts)

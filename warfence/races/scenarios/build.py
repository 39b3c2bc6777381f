"""A scenario written in Python: each call adds the line that the file would have, so that both read the same.

b = Builder("late-read", "A look-up behind the marker", "fence too early", "SGLang #32460", "bad")
F, S = b.lanes("forward", "schedule")
b.declare("table", "t[8]", "map[16]")
b.declare("event", "E")
with b.launch(1, F) as step:
    step.reads("t[3]").records("E").reads("map[5]")
S.waits("E").writes("map[5]")
print(text(b.scenario()))
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from warfence.races.scenarios.parse import parse
from warfence.races.scenarios.program import HOST, Scenario


class Subject:
    """A lane, the host, or the steps of a launch. Every method adds one line and returns the subject."""

    def __init__(self, lines: list[str], name: str) -> None:
        self._lines, self.name = lines, name

    def says(self, sentence: str) -> Subject:
        """Any sentence of this subject, such as `takes target else lane forward`."""
        self._lines.append(f"{self.name} {sentence}".strip())
        return self

    def reads(self, cells: str, writes: str = "", stage: str = "") -> Subject:
        """One operation that reads, and with `writes` also writes."""
        return self.says(f"reads {cells}" + (f", writes {writes}" if writes else "") + _named(stage))

    def writes(self, cells: str, stage: str = "") -> Subject:
        return self.says(f"writes {cells}" + _named(stage))

    def donates(self, cells: str, stage: str = "") -> Subject:
        return self.says(f"donates {cells}" + _named(stage))

    def records(self, event: str) -> Subject:
        return self.says(f"records {event}")

    def waits(self, event: str) -> Subject:
        return self.says(f"waits {event}")

    def waits_lane(self, other: Subject) -> Subject:
        return self.says(f"waits lane {other.name}")

    def syncs(self, event: str) -> Subject:
        return self.says(f"syncs {event}")

    def takes(self, mailbox: str, otherwise: Subject | None = None) -> Subject:
        return self.says(f"takes {mailbox}" + (f" else lane {otherwise.name}" if otherwise else ""))

    def publishes(self, event: str, mailbox: str) -> Subject:
        return self.says(f"publishes {event} to {mailbox}")


class Builder:
    """The lines of one scenario, in order. Errors are those of `parse`, when `scenario` is called."""

    def __init__(self, id: str, title: str, group: str, source: str, expect: str, fixed_by: str = "") -> None:
        self._lines = [f"scenario {id}", f"title {title}", f"group {group}", f"source {source}", f"expect {expect}"]
        self._lines += [f"fixed-by {fixed_by}"] if fixed_by else []
        self._lines.append("")
        self.host = Subject(self._lines, HOST)

    def declare(self, kind: str, *items: str) -> None:
        """`declare("table", "t[8]")`; for kinds see `warfence.races.scenarios.forms.DECLARATIONS`."""
        self._lines.append(f"{kind} {', '.join(items)}")

    def lanes(self, *names: str) -> list[Subject]:
        self.declare("lanes", *names)
        return [Subject(self._lines, name) for name in names]

    @contextmanager
    def launch(self, number: int | str, lane: Subject) -> Iterator[Subject]:
        with self._block(f"launch {number} on {lane.name} {{"):
            yield Subject(self._lines, "")

    @contextmanager
    def repeat(self, name: str, first: int | str, last: int | str) -> Iterator[str]:
        with self._block(f"repeat {name} in {first}..{last} {{"):
            yield name

    @contextmanager
    def thread(self, name: str) -> Iterator[None]:
        with self._block(f"thread {name} {{"):
            yield

    @contextmanager
    def choose(self) -> Iterator[None]:
        """The first branch; `otherwise` begins each further one."""
        with self._block("choose {"):
            yield

    def otherwise(self) -> None:
        self._lines.append("} or {")

    def scenario(self) -> Scenario:
        """What was written so far, parsed."""
        return parse("\n".join(self._lines), "builder")

    @contextmanager
    def _block(self, opening: str) -> Iterator[None]:
        self._lines.append(opening)
        yield
        self._lines.append("}")


def _named(stage: str) -> str:
    return f" as {stage}" if stage else ""

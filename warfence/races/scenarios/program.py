"""What a scenario file says, as frozen data. Expressions are trees; None where none stands there.

Lines and columns do not count when two scenarios are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warfence.races.scenarios.expression import Expression

GROUPS = (
    "fence too early",
    "scope too small",
    "bypass",
    "wrong order of waits",
    "event reuse and lifetime",
    "owner",
    "memory lifetime",
    "host staging",
    "alias and donation",
    "over-fencing",
)
VERDICTS = ("ok", "bad", "cycle", "over", "error")
HOST = "host"  # the calling host thread, as the subject of a sentence


@dataclass(frozen=True, slots=True)
class Ref:
    """A name, or one of a family: `slot[i % D]`."""

    name: str
    index: Expression | None = None


@dataclass(frozen=True, slots=True)
class Cells:
    """Cells [begin, end) of a table. No end: one cell. No begin: all of it."""

    table: str
    begin: Expression | None = None
    end: Expression | None = None


@dataclass(frozen=True, slots=True)
class Remark:
    """A comment on a line of its own; without a text an empty line."""

    text: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """One declared name. size: of a table, or of a family of events; value of a parameter. of: what an alias names."""

    name: str
    size: Expression | None = None
    of: Cells | None = None


@dataclass(frozen=True, slots=True)
class Declare:
    """`table t[8], map[16]` and its like. kind: a key of `warfence.races.scenarios.forms.DECLARATIONS`."""

    kind: str
    items: tuple[Declared, ...]
    note: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Touch:
    """One access. verb: reads, writes or donates. launch: whose write a read has to see (None: the last one called)."""

    verb: str
    cells: Cells
    launch: Expression | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """One operation with all its accesses. subject: a lane or the host; inside a launch empty. stage: its name."""

    subject: str
    touches: tuple[Touch, ...]
    stage: str = ""
    note: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """Any other sentence: one of `warfence.races.scenarios.forms.FORMS`, with what stands in its places."""

    subject: str
    verb: str
    event: Ref | None = None
    other: str = ""
    mailbox: str = ""
    number: Expression | None = None
    memory: str = ""
    new: Declared | None = None
    note: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class LaunchBlock:
    """One launch: its steps run in order on the lane."""

    number: Expression
    lane: str
    body: tuple[Statement, ...]
    note: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Repeat:
    """The body once for each value of `name` from first to last, both included."""

    name: str
    first: Expression
    last: Expression
    body: tuple[Statement, ...]
    note: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Choose:
    """One of the branches; exploration tries each."""

    branches: tuple[tuple[Statement, ...], ...]
    note: str = ""
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Thread:
    """Calls of another host thread, which runs beside all others from the start."""

    name: str
    body: tuple[Statement, ...]
    note: str = ""
    line: int = field(default=0, compare=False)


Statement = Remark | Declare | Access | Call | LaunchBlock | Repeat | Choose | Thread


@dataclass(frozen=True, slots=True)
class Scenario:
    """One scenario file. about: the comment lines above the header. fixed_by: the id of its fixed twin, or empty."""

    id: str
    title: str
    group: str
    source: str
    expect: str
    body: tuple[Statement, ...]
    fixed_by: str = ""
    about: tuple[str, ...] = ()

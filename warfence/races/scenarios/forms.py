"""The sentences of the language, as data: parser, formatter, builder and error messages all read this table.

Words in capitals are places, small words stand for themselves, square brackets hold what may be left out:
EVENT an event, OTHER a lane, MAILBOX, NUMBER an expression, MEMORY a table or block, NEW a name that is made here.
"""

from __future__ import annotations

from typing import NamedTuple

from warfence.races.scenarios.program import HOST

# What a declaration is followed by: a size may, must or cannot stand behind the name.
DECLARATIONS = {
    "param": "N = 3",
    "lanes": "forward, schedule",
    "table": "t[8]",
    "pinned": "staging[16]",
    "array": "t[8]",
    "alias": "view = t[4:8]",
    "event": "E, slot[D]",
    "mailbox": "target",
}
MEMORIES = ("table", "pinned", "array", "alias", "block")
ACCESSES = ("reads", "writes", "donates")
BLOCKS = ("launch", "repeat", "choose", "thread")

_TEXTS = (
    "LANE records EVENT",
    "LANE waits lane OTHER",
    "LANE waits EVENT [for launch NUMBER]",
    "LANE awaits EVENT record NUMBER",
    "LANE takes MAILBOX [else lane OTHER]",
    "LANE allocates NEW [at MEMORY]",
    "LANE cuts",
    "host allocates NEW [at MEMORY]",
    "host syncs lane OTHER",
    "host syncs EVENT",
    "host polls EVENT",
    "host publishes EVENT to MAILBOX",
    "host clears MAILBOX",
    "host receives MAILBOX",
    "host frees MEMORY",
    "host views MEMORY",
    "host drops MEMORY",
    "host keeps MEMORY as NEW",
)
IN_LAUNCH = ("records", "cuts")


class Form(NamedTuple):
    """One sentence. parts: what follows the verb; optional: what may follow that, all of it or nothing."""

    by_host: bool
    verb: str
    parts: tuple[str, ...]
    optional: tuple[str, ...]

    @property
    def text(self) -> str:
        tail = f" [{' '.join(self.optional)}]" if self.optional else ""
        return " ".join((HOST if self.by_host else "LANE", self.verb, *self.parts)) + tail


def _form(text: str) -> Form:
    always, _, optional = text.partition(" [")
    subject, verb, *parts = always.split()
    return Form(subject == HOST, verb, tuple(parts), tuple(optional.rstrip("]").split()))


FORMS = tuple(map(_form, _TEXTS))


def forms_of(by_host: bool) -> tuple[Form, ...]:
    """The sentences that the host, or a lane, can be the subject of."""
    return tuple(form for form in FORMS if form.by_host == by_host)


def places(parts: tuple[str, ...]) -> tuple[str, ...]:
    """The places among parts, as names of fields of `Call`."""
    return tuple(part.lower() for part in parts if part.isupper())

"""check_backend() tells what it saw, also of a backend that does not start."""

from __future__ import annotations

from warfence.core.backend import Backend
from warfence.core.errors import WarfenceError
from warfence.parity.laws import LAWS
from warfence.parity.scorecard import check_backend
from warfence.parity.strict.backend import StrictBackend


def test_a_right_backend_holds_every_law() -> None:
    laws = tuple(law for law in LAWS if law.id != "15-tokens")  # serves a whole workload, as other tests do
    card = check_backend(StrictBackend, laws)
    assert card.ok, card.broken()
    assert [r.outcome for r in card.results] == ["held"] * len(laws)


def test_what_a_backend_cannot_do_is_said_and_not_failed() -> None:
    card = check_backend(lambda: StrictBackend(external_markers=False), LAWS[:6])
    assert card.ok, card.broken()
    absent = {r.id: r.message for r in card.results if r.outcome == "not applicable"}
    assert list(absent) == ["5-after-its-launch"]
    assert absent["5-after-its-launch"].startswith("external_markers: ")


def test_a_backend_that_does_not_start_breaks_the_laws_with_its_own_words() -> None:
    def broken() -> Backend:
        raise WarfenceError("no such device")

    card = check_backend(broken, LAWS[:2])
    assert [(r.outcome, r.message) for r in card.results] == [("broken", "no such device")] * 2
    assert card.broken() == (LAWS[0].id, LAWS[1].id)

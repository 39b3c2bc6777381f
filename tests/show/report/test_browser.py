"""The page in a real browser: press a square, read its detail, by mouse and by keyboard, on a wide and on a narrow window."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.show.report.chromium import Chromium, installed

PROGRAM = installed()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("chromium"),
    pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed here"),
]
SQUARE = 'button[aria-controls="cell-0-0"]'
FOCUS = "document.activeElement.getAttribute('aria-controls')"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    with Chromium(str(PROGRAM), tmp_path_factory.mktemp("profile")) as made:
        yield made


@pytest.fixture
def opened(browser: Chromium, html_file: Path) -> Iterator[Chromium]:
    """The page, freshly loaded; at the end nothing may have been complained about, and nothing asked of a network."""
    browser.look()
    browser.resize(1280)
    browser.open(html_file.as_uri())
    yield browser
    assert browser.complaints == []


def seen(browser: Chromium, selector: str) -> bool:
    return bool(browser.evaluate(f"document.querySelector({selector!r}).checkVisibility()"))


def test_a_click_shows_the_detail_and_says_so(opened: Chromium) -> None:
    assert not seen(opened, "#cell-0-0")
    opened.click(SQUARE)
    assert seen(opened, "#cell-0-0")
    assert opened.evaluate(f"document.querySelector('{SQUARE}').ariaExpanded") == "true"
    text = opened.evaluate("document.querySelector('#cell-0-0').innerText")
    for expected in (
        "UNSOUND, no parity",
        "in_graph, by rule declared-in-graph",
        "◆ read boundary",
        "▶ jax: the barrier opens",
    ):
        assert expected in text
    said = "Opened below: decode / captured / fine with marker: UNSOUND, no parity"
    assert opened.evaluate("document.querySelector('[aria-live]').textContent") == said
    opened.click('button[aria-controls="cell-0-1"]')
    assert [seen(opened, f"#cell-0-{at}") for at in (0, 1)] == [False, True], "one panel of a table at a time"
    opened.click("#cell-0-1 .close")
    assert not seen(opened, "#cell-0-1")
    assert opened.evaluate(FOCUS) == "cell-0-1"


def test_all_of_that_by_keyboard(opened: Chromium) -> None:
    opened.evaluate(f"document.querySelector('{SQUARE}').focus()")
    opened.press("Enter")
    assert seen(opened, "#cell-0-0")
    opened.press("Tab")
    assert opened.evaluate(FOCUS) == "cell-0-1"
    opened.press("Escape")
    assert not seen(opened, "#cell-0-0")
    assert opened.evaluate(FOCUS) == "cell-0-0", "the focus goes back to what opened it"
    for key, square in (("ArrowRight", "cell-0-1"), ("ArrowDown", "cell-1-1"), ("ArrowLeft", "cell-1-0"), ("ArrowUp", "cell-0-0"),
                        ("ArrowUp", "cell-0-0")):  # fmt: skip
        opened.press(key)
        assert opened.evaluate(FOCUS) == square
    outline = f"getComputedStyle(document.querySelector('{SQUARE}')).outlineStyle"
    assert opened.evaluate(outline) == "solid", "the focus can be seen"


def test_a_program_of_the_catalogue_opens_with_its_witness(opened: Chromium) -> None:
    opened.click('button[aria-controls="program-owner-moves"]')
    text = opened.evaluate("document.querySelector('#program-owner-moves').innerText")
    assert "launch 1 on forward {" in text
    assert "An order that goes wrong" in text


def test_a_narrow_page_does_not_scroll_sideways_but_its_tables_do(opened: Chromium) -> None:
    opened.resize(400, 800)
    opened.click(SQUARE)
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.evaluate("(w => w.scrollWidth > w.clientWidth)(document.querySelector('.matrix').parentElement)")
    assert opened.evaluate("document.querySelector('#cell-0-0 .inside').offsetWidth <= innerWidth")


def test_dark_and_print_look_different(opened: Chromium) -> None:
    paper = "getComputedStyle(document.body).backgroundColor"
    light = opened.evaluate(paper)
    opened.look("dark")
    assert opened.evaluate(paper) != light
    opened.look("dark", "print")
    assert opened.evaluate(paper) == light
    assert seen(opened, "#cell-0-0")
    assert not seen(opened, "#cell-0-1"), "only the first column, and what is wrong"
    assert seen(opened, "#program-owner-moves")

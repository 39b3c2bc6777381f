"""The page without a browser: well formed, whole in itself, usable without a mouse or eyes as far as its text tells."""

from __future__ import annotations

import re
from collections import Counter
from html.parser import HTMLParser

import pytest

from tests.show.report.madeup import made_up
from warfence.parity.cells import matrix
from warfence.parity.report import Report
from warfence.races.scenarios.groups import groups
from warfence.serve.model.config import ModelConfig
from warfence.show.report.contents import Contents
from warfence.show.report.page import page

VOID = {"meta", "br", "img"}
SELF_CLOSED = {"path", "rect", "circle"}  # of SVG
REFERENCES = ("aria-controls", "aria-labelledby", "aria-describedby", "data-closes")


class Parsed(HTMLParser):
    """The elements of a page. Fails on one that is closed by another's end."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in SELF_CLOSED
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag, f"</{tag}> at {self.getpos()} closes something else"

    def all(self, *tags: str) -> list[dict[str, str | None]]:
        return [attrs for tag, attrs in self.elements if tag in tags]


@pytest.fixture(scope="module")
def parsed(html: str) -> Parsed:
    return Parsed(html)


def test_ids_are_unique_and_every_reference_leads_somewhere(parsed: Parsed) -> None:
    ids = Counter(attrs["id"] for _, attrs in parsed.elements if "id" in attrs)
    assert [id for id, count in ids.items() if count > 1] == []
    wanted = [id for _, attrs in parsed.elements for name in REFERENCES for id in (attrs.get(name) or "").split()]
    wanted += [str(attrs["href"]).removeprefix("#") for attrs in parsed.all("a")]
    assert len(wanted) > 50
    assert set(wanted) <= set(ids)


def test_nothing_is_loaded(parsed: Parsed, html: str) -> None:
    assert parsed.all("link", "iframe", "object", "embed", "base", "form") == []
    assert all(str(attrs["src"]).startswith("data:") for _, attrs in parsed.elements if "src" in attrs)
    assert all(str(attrs["href"]).startswith("#") for _, attrs in parsed.elements if "href" in attrs)
    assert "@import" not in html
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", html))
    assert set(re.findall(r"https?://[^\"' ]*", html)) <= {
        "http://www.w3.org/2000/svg"
    }  # a name, not an address to load
    policy = next(attrs for attrs in parsed.all("meta") if attrs.get("http-equiv"))
    assert "default-src 'none'" in str(policy["content"])


def test_headers_landmarks_and_names(parsed: Parsed) -> None:
    assert {tag for tag, _ in parsed.elements} >= {"header", "nav", "main", "footer", "h1", "h2"}
    assert all(attrs.get("scope") in ("col", "row", "rowgroup") for attrs in parsed.all("th"))
    assert all(attrs.get("aria-labelledby") for attrs in parsed.all("section"))
    assert all(attrs.get("alt") for attrs in parsed.all("img"))
    openers = [attrs for attrs in parsed.all("button") if "aria-controls" in attrs]
    assert {attrs["aria-expanded"] for attrs in openers} == {"false"}
    assert all(attrs["data-said"] for attrs in openers)
    assert any(attrs.get("aria-live") == "polite" for _, attrs in parsed.elements)
    regions = [attrs for _, attrs in parsed.elements if attrs.get("role") == "region"]
    assert all(attrs.get("tabindex") == "0" and attrs.get("aria-label") for attrs in regions)


def test_it_says_all_and_escapes_it(html: str) -> None:
    for expected in (
        "✗</span> not in order", "decode / captured / marker / fine / batch 1: UNSOUND", "launch 3: a &lt;message&gt;",
        "tables are written in place; &lt;only&gt; the fence", "skipped: slow here", "– broken", "a known bug", "not caught",
        "no cell is called &lt;so&gt;", "strict is not in the picture: it has no clock", "owner-moves-fixed",
        "warfence report &lt;OUT&gt;", "XLA_FLAGS=-x", "a GPU", "the last read is inside the captured forward",
    ):  # fmt: skip
        assert expected in html
    for absent in ("<message>", "<only>", "<so>", "<OUT>", "<early>"):
        assert absent not in html


def test_what_is_left_out_is_said() -> None:
    text = page(Contents(Report({}), left_out={"bench": "no file was given"}))
    assert "Left out: no file was given." in text
    assert 'href="#bench"' in text
    assert 'href="#catalogue"' not in text
    assert "✓</span> in order" in text
    Parsed(text)


@pytest.mark.slow
def test_the_whole_matrix_and_catalogue_are_small_enough(config: ModelConfig) -> None:
    everything = Contents(made_up(matrix(), config), catalogue=groups())
    assert everything.ok
    text = page(everything)
    assert len(text.encode()) < 3_000_000
    Parsed(text)

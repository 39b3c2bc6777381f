"""The picture: it says in words and signs what it says in colours, and boundaries lie one above the other."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree.ElementTree import Element, fromstring

import pytest

from tests.show.timeline.conftest import Trace
from warfence.core.errors import InputError
from warfence.show.timeline.labels import width
from warfence.show.timeline.model import Timeline
from warfence.show.timeline.run import decoding, first_step
from warfence.show.timeline.svg import WIDTH, stacked_svg, svg

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def step(trace: Trace) -> Timeline:
    return first_step(trace("strict"))


def boundaries(picture: Element) -> list[float]:
    lines = [e.get("d", "") for e in picture.iter(f"{SVG}path") if e.get("class") == "edge"]
    return [float(found[1]) for d in lines if (found := re.match(r"M([\d.]+) [\d.]+V", d))]


def test_it_stands_alone_and_can_be_read_aloud(step: Timeline) -> None:
    text = svg(step)
    picture = fromstring(text)
    assert picture.get("role") == "img"
    title, description = picture.find(f"{SVG}title"), picture.find(f"{SVG}desc")
    assert title is not None
    assert description is not None
    assert picture.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
    assert "reads shared tables for the last time 12 steps before its end" in (description.text or "")
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"href|url\((?!#)|@import|<script", text)


def test_a_pattern_says_what_a_colour_says(step: Timeline) -> None:
    picture = fromstring(svg(step))
    boxes = [e for e in picture.iter(f"{SVG}rect") if e.get("class", "").startswith("s ")]
    fills = [e.get("fill") for e in picture.iter(f"{SVG}rect") if e.get("fill")]
    for kind in ("reads", "write", "wait"):
        drawn = sum(box.get("class") == f"s {kind}" for box in boxes)
        assert drawn > 1  # in the picture and in its key
        assert fills.count(f"url(#wft-{kind})") == drawn
    reader = next(e for e in picture.iter(f"{SVG}title") if (e.text or "").startswith("page_table"))
    assert (reader.text or "").endswith("1.0 steps; reads req_to_token")


@pytest.mark.slow
def test_texts_keep_apart_and_inside(trace: Trace) -> None:
    """By the estimate of a text's width; pictures of real runs were looked at in a browser."""
    for timeline in (trace("strict"), decoding(trace("strict"), 2, 3), decoding(trace("strict", spec="eagle"), 2, 1)):
        picture = fromstring(svg(timeline))
        texts = []
        for e in picture.iter(f"{SVG}text"):
            x, y, text = float(e.get("x", 0)), float(e.get("y", 0)), e.text or ""
            shift = {"middle": 0.5, "end": 1.0}.get(e.get("text-anchor", ""), 0.0) * width(text)
            texts.append((x - shift, x - shift + width(text), y, text))
        assert all(begin >= -1 and end <= WIDTH for begin, end, _, _ in texts)
        for i, (begin, end, y, text) in enumerate(texts):
            for b, e, other, what in texts[:i]:
                assert y != other or end <= b or e <= begin, f"'{text}' lies over '{what}'"


def test_boundaries_lie_one_above_the_other(step: Timeline) -> None:
    faster = replace(step, title="twice", unit="us", shown=None)
    for other in (step, faster):  # one scale for both, or each its own
        picture = fromstring(stacked_svg([step, other], [step.marks[0].launch] * 2))
        lines = boundaries(picture)
        assert lines.count(lines[0]) >= 4  # each line has a part over the host's track and one below it
        assert len([e for e in picture.iter(f"{SVG}text") if e.get("class") == "h"]) == 2


def test_what_cannot_be_drawn(step: Timeline) -> None:
    with pytest.raises(InputError, match="launch 99 has no read boundary to align"):
        stacked_svg([step], [99])
    with pytest.raises(InputError, match="has no read boundary to align; trace a mode that reads"):
        stacked_svg([replace(step, marks=())])
    with pytest.raises(InputError, match="'strict fine' is empty: nothing was traced"):
        svg(replace(step, slices=(), shown=None))
    with pytest.raises(InputError, match="at least one timeline"):
        stacked_svg([])

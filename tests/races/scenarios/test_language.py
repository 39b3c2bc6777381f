"""The language: what is printed reads back the same, and what cannot be read says where, what was expected, and what was seen."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.races.scenarios.random_scenarios import AWAIT, BOUND, BOXES, HOST, programs
from warfence.core.errors import InputError
from warfence.races.scenarios.build import Builder
from warfence.races.scenarios.expression import Expression
from warfence.races.scenarios.library import find
from warfence.races.scenarios.parse import parse, tidy
from warfence.races.scenarios.program import (
    GROUPS,
    VERDICTS,
    Access,
    Call,
    Cells,
    Choose,
    Declare,
    Declared,
    LaunchBlock,
    Ref,
    Remark,
    Repeat,
    Scenario,
    Statement,
    Thread,
    Touch,
)
from warfence.races.scenarios.text import text
from warfence.races.scenarios.words import Line, ScenarioError

HEADER = "scenario x\ntitle X\ngroup bypass\nsource none\nexpect ok\n\n"


def tree(written: str) -> Expression:
    return Line("here", 1, written).expression(["N", "D"])


NAMES = (
    Declare("param", (Declared("N", tree("3")), Declared("D", tree("N + 1")))),
    Declare("lanes", (Declared("A"), Declared("B"))),
    Declare("table", (Declared("t", tree("8")),)),
    Declare("pinned", (Declared("pin", tree("D")),)),
    Declare("array", (Declared("h", tree("4")),)),
    Declare("alias", (Declared("part", of=Cells("t", tree("2"), tree("N + 1"))),)),
    Declare("event", (Declared("e"), Declared("slot", tree("D")))),
    Declare("mailbox", (Declared("box"),)),
    Call("A", "allocates", new=Declared("x", tree("4"))),
)

words = st.text("abc xyz,.", min_size=1, max_size=12).map(str.strip).filter(bool)
notes = st.sampled_from(["", "a note", "of launch 1"])
numbers = st.sampled_from(["0", "N", "N + 1", "N % D", "(N + 1) * 2", "N // 2 - 1", "N - (D - 1)"]).map(tree)
lanes, memories = st.sampled_from("AB"), st.sampled_from(["t", "pin", "part", "x"])
events = st.one_of(st.just(Ref("e")), st.builds(Ref, st.just("slot"), numbers))
cells = st.one_of(
    st.builds(Cells, memories), st.builds(Cells, memories, numbers), st.builds(Cells, memories, numbers, numbers)
)
touches = st.one_of(
    st.builds(Touch, st.sampled_from(["reads", "writes", "donates"]), cells),
    st.builds(Touch, st.just("reads"), cells, numbers),
)
stages = st.sampled_from(["", "page_table"])


def accesses(subject: str | None) -> st.SearchStrategy[Access]:
    """Of a lane (None), the host, or, with an empty subject, inside a launch."""
    subjects = lanes if subject is None else st.just(subject)
    mine = touches.filter(lambda one: one.verb != "donates") if subject == "host" else touches
    return st.builds(Access, subjects, st.lists(mine, min_size=1, max_size=3).map(tuple), stages, notes)


H = st.just("host")
calls = st.one_of(
    st.builds(Call, lanes, st.just("records"), event=events, note=notes),
    st.builds(Call, lanes, st.just("waits"), event=events, number=st.none() | numbers, note=notes),
    st.builds(Call, lanes, st.just("waits"), other=lanes),
    st.builds(Call, lanes, st.just("awaits"), event=events, number=numbers),
    st.builds(Call, lanes, st.just("takes"), mailbox=st.just("box"), other=st.sampled_from(["", "A"])),
    st.builds(
        Call, lanes | H, st.just("allocates"), new=st.just(Declared("x", tree("N"))), memory=st.sampled_from(["", "x"])
    ),
    st.builds(Call, H, st.sampled_from(["syncs", "polls"]), event=events),
    st.builds(Call, H, st.just("syncs"), other=lanes),
    st.builds(Call, H, st.just("publishes"), event=events, mailbox=st.just("box")),
    st.builds(Call, H, st.sampled_from(["clears", "receives"]), mailbox=st.just("box")),
    st.builds(Call, H, st.just("frees"), memory=st.just("x")),
    st.builds(Call, H, st.sampled_from(["views", "drops"]), memory=st.just("h")),
    st.builds(Call, H, st.just("keeps"), memory=st.just("h"), new=st.just(Declared("old"))),
)
remarks = st.builds(Remark, st.just("") | words)
steps: st.SearchStrategy[Statement] = st.one_of(
    accesses(""), st.builds(Call, st.just(""), st.just("records"), event=events), st.just(Call("", "cuts")), remarks
)
plain = st.one_of(accesses(None), accesses("host"), calls, remarks)


def bodies(inner: st.SearchStrategy[Statement]) -> st.SearchStrategy[tuple[Statement, ...]]:
    return st.lists(inner, max_size=4).map(tidy)


blocks = st.one_of(
    st.builds(
        LaunchBlock,
        numbers,
        lanes,
        bodies(steps | st.builds(Repeat, st.just("i"), numbers, numbers, bodies(steps))),
        notes,
    ),
    st.builds(Repeat, st.just("j"), numbers, numbers, bodies(plain), notes),
    st.builds(Choose, st.lists(bodies(plain), min_size=1, max_size=3).map(tuple), notes),
)
tops = st.one_of(plain, blocks)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    body = [*NAMES, *draw(st.lists(tops, max_size=5))]
    if draw(st.booleans()):
        body.append(Thread("other", draw(bodies(plain | blocks)), draw(notes)))
    return Scenario(
        "some-id", draw(words), draw(st.sampled_from(GROUPS)), draw(words), draw(st.sampled_from(VERDICTS)),
        tidy(body), draw(st.sampled_from(["", "some-twin"])), tuple(draw(st.lists(st.just("") | words, max_size=2))),
    )  # fmt: skip


@pytest.mark.slow
@given(scenarios())
@settings(max_examples=60)
def test_what_is_printed_reads_back_the_same(scenario: Scenario) -> None:
    assert parse(text(scenario)) == scenario


@pytest.mark.parametrize(
    ("written", "printed", "value"),
    [
        ("7", "7", 7), ("007", "7", 7), ("N", "N", 10), ("N-D-1", "N - D - 1", 6), ("N - (D - 1)", "N - (D - 1)", 8),
        ("(N - D) - 1", "N - D - 1", 6), ("(N + 1) * 2", "(N + 1) * 2", 22), ("N + (1 * 2)", "N + 1 * 2", 12),
        ("N // (D // 2)", "N // (D // 2)", 10), ("(N // D) // 2", "N // D // 2", 1), ("((N))", "N", 10),
        ("N % (D * 2)", "N % (D * 2)", 4), ("N * (D % 2)", "N * (D % 2)", 10),
    ],
)  # fmt: skip
def test_an_expression_has_one_text_and_a_value(written: str, printed: str, value: int) -> None:
    found = tree(written)
    assert str(found) == printed
    assert tree(printed) == found
    assert found.value({"N": 10, "D": 3}) == value == eval(printed, {"N": 10, "D": 3})


@given(programs([*BOUND, *HOST, *BOXES, *AWAIT], 6))
@settings(max_examples=30)
def test_the_normal_form_of_a_normal_form_is_the_same(written: str) -> None:
    once = text(parse(written))
    assert text(parse(once)) == once


def test_spaces_columns_and_empty_lines_are_put_in_order_and_comments_stay() -> None:
    written = (
        HEADER
        + "param N=3\nlanes A\n\n\ntable t[ N+1 ]\nrepeat i in 0 .. N{ # each\nA reads t[i],writes t[ 0:i+1 ]as s\n} # end\n"
    )
    assert text(parse(written)).splitlines()[6:] == [
        "param N = 3", "lanes A", "", "table t[N + 1]", "repeat i in 0..N {  # each",
        "    A reads t[i], writes t[0:i + 1] as s", "    # end", "}",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "line", "column", "expected", "seen"),
    [
        ("lanes A\nB reads t[0]", 8, 1, "a lane or the host (A, host)", "'B'"),
        ("lanes forward\nforwrad reads t[0]", 8, 1, "did you mean 'forward'?", "'forwrad'"),
        ("lanes A\ntable t[4]\nA raeds t[0]", 9, 3, "did you mean 'reads'?", "'raeds'"),
        ("lanes A\ntable t[4]\nA reads u[0]", 9, 9, "a table (t)", "'u'"),
        ("lanes A\ntable t[4]\nA reads t[0", 9, 12, "']'", "the end of the line"),
        ("lanes A\ntable t[4]\nA reads t[k]", 9, 11, "a number or a parameter (none is declared)", "'k'"),
        ("lanes A\nA waits e", 8, 9, "an event (none is declared)", "'e'"),
        ("lanes A\nA waits lane", 8, 13, "a lane (A)", "the end of the line"),
        ("lanes A\nmailbox m\nA takes m or lane A", 9, 11, "'else' or the end of the line", "'or'"),
        ("lanes A\nlaunch 1 on A", 8, 14, "'{'", "the end of the line"),
        ("lanes A\nlaunch 1 on A {", 8, 1, "'}' below this line", "the end of the file"),
        (
            "lanes A\nlaunch 1 on A {\nwaits lane A\n}",
            9,
            1,
            "a verb (reads, writes, donates, records, cuts)",
            "'waits'",
        ),
        ("lanes A\ntable A[4]", 8, 7, "a new name (this one is declared as lanes)", "'A'"),
        ("table t", 7, 8, "'[' and the number of cells", "the end of the line"),
        ("event e[2]\nlanes A\nA records e", 9, 12, "'[' and which of these events", "the end of the line"),
        ("lanes A\nhost donates A", 8, 6, "a verb (reads, writes, allocates", "'donates'"),
        ("lanes A\n}", 8, 1, "a lane or the host", "'}'"),
        ("lanes A B", 7, 9, "the end of the line", "'B'"),
        ("lanes A\ntable lane[3]", 8, 7, "a name that is no word of the language", "'lane'"),
    ],
)
def test_an_error_says_where_and_what_was_expected(body: str, line: int, column: int, expected: str, seen: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse(HEADER + body, "a.scenario")
    assert (caught.value.line, caught.value.column) == (line, column), caught.value
    assert str(caught.value).startswith(f"a.scenario, line {line}, column {column}: expected ")
    assert expected in str(caught.value)
    assert f"found {seen}" in str(caught.value)


@pytest.mark.parametrize(
    ("header", "line", "message"),
    [
        ("scenario x\ntitel X", 2, "found 'titel'; did you mean 'title'?"),
        ("scenario x\ntitle X\ngroup bypas", 3, "found 'bypas'; did you mean 'bypass'?"),
        ("scenario X y", 1, "expected an id of small letters, digits and hyphens, found 'X y'"),
        ("scenario x\n\nlanes A", 2, "expected the field 'title', found the end of the header"),
        ("scenario x\ntitle", 2, "expected the text of 'title', found the end of the line"),
    ],
)
def test_an_error_of_the_header_does_too(header: str, line: int, message: str) -> None:
    with pytest.raises(ScenarioError, match=f"line {line}, ") as caught:
        parse(header)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("body", "values", "message"),
    [
        ("lanes A\ntable t[4]\nA reads t[4]", {}, "line 9: cells [4:5] of 't', which has cells [0:4]"),
        ("table t[4]\nhost reads t[0]", {}, "line 8: the host touches 't', memory of the device; declare it `pinned`"),
        ("lanes A\narray h[4]\nA writes h[0]", {}, "'h' is declared as array, and 'writes' it; write 'donates'"),
        ("lanes A\nevent e[2]\nA records e[2]", {}, "event e[2], but there are e[0] to e[1]"),
        ("param N = 1\nlanes A\ntable t[4]\nA reads t[1 // (N - 1)]", {}, "'1 // (N - 1)' divides by zero"),
        ("param N = 1", {"M": 2}, "no parameter 'M'; it has: N"),
    ],
)  # fmt: skip
def test_what_only_numbers_show_is_an_error_too(body: str, values: dict[str, int], message: str) -> None:
    from warfence.races.scenarios.explore import explore

    with pytest.raises(InputError) as caught:
        explore(parse(HEADER + body), values)
    assert message in str(caught.value)


def test_a_scenario_built_in_python_prints_as_the_file() -> None:
    b = Builder(
        "in-graph-late-read", "A look-up that stays behind the marker", "fence too early", "SGLang #32460", "bad",
        fixed_by="in-graph-late-read-fixed",
    )  # fmt: skip
    forward, schedule = b.lanes("forward", "schedule")
    b.declare("table", "t[8]", "map[16]")
    b.declare("event", "E")
    with b.launch(1, forward) as step:
        step.reads("t[3]", stage="page_table").says("records E  # the marker in the graph")
        step.reads("map[5]", stage="store_cache")
    schedule.waits("E").writes("map[5]")
    assert text(b.scenario()) == text(find("in-graph-late-read")).replace("\n\nlaunch", "\nlaunch")


def test_every_block_can_be_built() -> None:
    b = Builder("x", "X", "owner", "none", "ok")
    b.declare("param", "N = 2")
    (lane,) = b.lanes("A")
    b.declare("table", "t[4]")
    b.declare("pinned", "pin[4]")
    b.declare("array", "h[4]")
    b.declare("event", "e")
    b.declare("mailbox", "box")
    with b.repeat("i", 1, "N") as i:
        lane.reads(f"t[{i}]", "t[0]", "both").donates("h[1]").records("e").waits_lane(lane)
        with b.choose():
            b.host.publishes("e", "box")
            b.otherwise()
    lane.takes("box", lane).takes("box")
    with b.thread("other"):
        b.host.syncs("e").writes("pin")
    assert [type(one).__name__ for one in b.scenario().body[7:]] == ["Repeat", "Call", "Call", "Thread"]

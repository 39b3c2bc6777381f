"""Who reads the tables, by the parameters of recorded nodes."""

from __future__ import annotations

import json

import pytest

from warfence.core.errors import InputError
from warfence.core.modes import WarReadDonePolicy
from warfence.parity.boundary.find import refuse_write
from warfence.parity.graph import Node, Span, Table, read
from warfence.parity.graph.nodes import words_of

BASE = 0x7F2A_4000_0000
TABLE = Table("table", BASE, BASE + 256, 4, Span(BASE, BASE + 256))
SLICE = Table("slice", BASE + 0x1040, BASE + 0x1080, 8, Span(BASE + 0x1000, BASE + 0x2000))
OTHER = 0x7F2A_5000_0000


def kernel(
    position: int, *words: int, depends: tuple[int, ...] | None = None, name: str = "gemm", **more: object
) -> Node:
    before = depends if depends is not None else ((position - 1,) if position else ())
    return Node(position, "kernel", name, before, words, **more)


def test_an_address_among_the_parameters_is_a_read_from_its_cell_on() -> None:
    made = read([kernel(0, 7, BASE + 8), kernel(1, OTHER), kernel(2, BASE + 255), kernel(3, BASE + 256)], [TABLE])
    assert [[str(a) for a in op.reads] for op in made.nodes] == [["table[2:64]"], [], ["table[63:64]"], []]
    assert made.boundary.after.position == 2
    assert made.boundary.policy is WarReadDonePolicy.IN_GRAPH
    assert made.lines() == [
        "kernel node 0 (gemm): reads table[2:64]",
        "kernel node 2 (gemm): reads table[63:64]",
        "the reads end after kernel node 2 of 4: the marker stands there",
    ]
    json.dumps(made.document())


def test_an_address_around_a_table_that_is_a_slice_may_reach_it() -> None:
    made = read([kernel(0, BASE + 0x1000), kernel(1, BASE + 0x1FFF), kernel(2, BASE + 0x2000)], [SLICE])
    assert [[str(a) for a in op.reads] for op in made.nodes] == [["slice[0:8]"], ["slice[0:8]"], []]


def test_copies_and_fills_say_what_they_read_and_write() -> None:
    nodes = [
        Node(0, "memcpy", reads=(Span(BASE + 16, BASE + 32),), writes=(Span(OTHER, OTHER + 16),)),
        Node(1, "memset", depends=(0,), writes=(Span(BASE + 6, BASE + 7),)),
    ]
    made = read(nodes, [TABLE])
    assert [str(a) for a in made.nodes[0].reads] == ["table[4:8]"]
    assert [str(a) for a in made.nodes[1].writes] == ["table[1:2]"]
    assert made.lines()[0] == "node 1 (memset): writes table[1:2]"
    with pytest.raises(InputError, match=r"node 1 \(memset\) writes table\[1:2\], which is shared"):
        refuse_write(made.nodes[1])


def test_a_child_graph_does_what_its_nodes_do_at_any_depth() -> None:
    inner = Node(0, "conditional", inside=(kernel(0, BASE),))
    made = read([kernel(0, OTHER), Node(1, "child graph", depends=(0,), inside=(inner,)), kernel(2)], [TABLE])
    assert made.boundary.after.position == 1
    assert "node 1 (child graph): reads table[0:64]" in made.lines()


def test_what_cannot_be_listed_counts_as_a_reader() -> None:
    nodes = [
        kernel(0, BASE),
        Node(1, "host", depends=(0,)),
        kernel(2, unknown="the driver does not list the parameters of this kernel"),
        kernel(3),
    ]
    made = read(nodes, [TABLE])
    assert [op.position for op in made.boundary.unseen] == [1, 2]
    assert made.boundary.after.position == 2
    assert (
        "node 1 (host): cannot be seen (a function of the host, which may read anything); the marker stands behind it"
        in (made.lines())
    )


def test_the_last_readers_may_be_several_on_branches() -> None:
    nodes = [kernel(0, BASE), kernel(1, BASE, depends=(0,)), kernel(2, BASE, depends=(0,)), kernel(3, depends=(1, 2))]
    made = read(nodes, [TABLE])
    assert [op.position for op in made.boundary.last] == [1, 2]
    assert made.lines()[-1] == "the reads end on 2 branches: the marker stands behind kernel node 1 and kernel node 2"


def test_nothing_is_read() -> None:
    made = read([kernel(0, OTHER)], [TABLE])
    assert made.boundary.policy is WarReadDonePolicy.PRE_REPLAY
    assert made.lines() == ["no shared array is read: the ticket is published before the replay (pre_replay)"]


def test_the_words_of_a_parameter_begin_at_every_fourth_byte() -> None:
    packed = (3).to_bytes(4, "little") + BASE.to_bytes(8, "little") + (5).to_bytes(4, "little")
    assert BASE in words_of(packed)
    assert len(words_of(packed)) == 3
    assert words_of(BASE.to_bytes(8, "little")) == (BASE,)
    assert words_of(b"1234567") == ()

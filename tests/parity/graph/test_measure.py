"""The search for the last readers, against a strict pretended driver."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parity.graph.pretended import PretendedGraph
from warfence.core.errors import InputError
from warfence.parity.graph import Node, measure

CHAIN = [Node(i, "kernel", depends=(i - 1,) if i else ()) for i in range(200)]


@pytest.mark.parametrize("last", [0, 1, 99, 198, 199])
def test_a_chain_is_searched_in_log2_launches(last: int) -> None:
    graph = PretendedGraph(CHAIN, {0, last})
    found = measure(graph.order, graph)
    assert found.last == (last,)
    assert found.launches == len(graph.launches) <= 2 + math.ceil(math.log2(len(CHAIN)))


@pytest.mark.parametrize("last", [0, 1, 99, 198, 199])
def test_a_right_guess_is_confirmed_in_three_launches(last: int) -> None:
    graph = PretendedGraph(CHAIN, {0, last})
    assert measure(graph.order, graph, [last]).last == (last,)
    assert len(graph.launches) <= 3


@pytest.mark.parametrize("guess", [3, 120, 199])
def test_a_wrong_guess_does_not_mislead(guess: int) -> None:
    graph = PretendedGraph(CHAIN, {80})
    assert measure(graph.order, graph, [guess]).last == (80,)


def fork(branches: int, length: int) -> list[Node]:
    """A root, branches of equal length from it, and a node that joins them."""
    nodes = [Node(0, "kernel")]
    for _ in range(branches):
        for step in range(length):
            nodes.append(Node(len(nodes), "kernel", depends=(len(nodes) - 1 if step else 0,)))
    ends = tuple(range(length, len(nodes), length))
    return [*nodes, Node(len(nodes), "kernel", depends=ends)]


def test_each_branch_has_its_own_last_reader() -> None:
    graph = PretendedGraph(fork(3, 10), {0, 4, 15, 22})
    assert measure(graph.order, graph).last == (4, 15, 22)
    graph = PretendedGraph(fork(3, 10), {0, 4, 15, 22})
    assert measure(graph.order, graph, (4, 15, 22)).launches <= 2 * math.log2(len(graph.nodes)) + 3


def test_where_nothing_shows_nothing_is_claimed() -> None:
    for graph in (PretendedGraph(CHAIN[:8], set()), PretendedGraph(CHAIN[:8], {3}, hidden=frozenset({3}))):
        with pytest.raises(InputError, match="nothing reads them, or the outputs given do not depend on them"):
            measure(graph.order, graph)
        assert graph.launches == [frozenset()]


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_graph_with_any_guess(data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 24))
    nodes = [
        Node(i, "kernel", depends=tuple(data.draw(st.sets(st.integers(0, i - 1), max_size=3))) if i else ())
        for i in range(size)
    ]
    some = st.sets(st.integers(0, size - 1))
    reads = data.draw(st.sets(st.integers(0, size - 1), min_size=1))
    graph = PretendedGraph(nodes, reads, seed=data.draw(st.integers(0, 99)))
    assert measure(graph.order, graph, data.draw(some)).last == graph.order.last(reads)

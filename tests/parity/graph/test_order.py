"""Who is surely before whom in a graph, and where something is put in between."""

from __future__ import annotations

import pytest

from warfence.core.errors import InputError
from warfence.parity.graph import Node, Order


def graph(*depends: tuple[int, ...]) -> list[Node]:
    return [Node(position, "kernel", depends=before) for position, before in enumerate(depends)]


# 0 forks into 1-2 and 3; 4 joins them; 5 stands alone.
DIAMOND = graph((), (0,), (1,), (0,), (2, 3), ())


def test_the_last_ones_are_one_on_each_branch() -> None:
    order = Order(DIAMOND)
    assert order.topological == [0, 1, 2, 3, 4, 5]
    assert order.last([0, 1, 2, 3]) == (2, 3)
    assert order.last([0, 4, 5]) == (4, 5)
    assert order.last([1, 2]) == (2,)
    assert order.last([]) == ()
    assert order.behind(4, 0)
    assert not order.behind(3, 1)
    assert not order.behind(3, 3)


def test_a_seam_stands_behind_what_is_closed_and_before_all_others() -> None:
    order = Order(DIAMOND)
    assert order.seam(frozenset()) == ((), (0, 5))
    assert order.seam(order.closed([1])) == ((1,), (2, 3, 5))
    assert order.seam(order.closed([2, 3])) == ((2, 3), (4, 5))
    assert order.seam(frozenset(range(6))) == ((4, 5), ())


def test_a_list_that_is_not_in_the_graphs_order_is_sorted() -> None:
    order = Order(graph((2,), (), (1,)))
    assert order.topological == [1, 2, 0]
    assert order.closed([0]) == {0, 1, 2}


def test_a_list_that_is_no_graph_is_refused() -> None:
    with pytest.raises(InputError, match="node 1 depends on node 7, which its graph does not have"):
        Order(graph((), (7,)))
    with pytest.raises(InputError, match="the nodes depend on each other in a circle"):
        Order(graph((1,), (0,)))

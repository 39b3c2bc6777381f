"""measure_graph(): who reads the shared tables last, by overwriting them inside copies of the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves

from warfence.core.errors import InputError
from warfence.parity.boundary import Boundary
from warfence.parity.graph import Measured, Reading, measure, read
from warfence.parity.graph.reading import bounded
from warfence_torch.tools.accesses import tensors
from warfence_torch.tools.graphs.copies import Copy
from warfence_torch.tools.graphs.driver import raw_graph
from warfence_torch.tools.graphs.nodes import Listed, list_nodes
from warfence_torch.tools.graphs.tables import Given, tables_of
from warfence_torch.tools.other_values import bits, wrong_values


@dataclass(frozen=True, slots=True)
class MeasuredGraph:
    """The last readers of a graph, by both means. found: by its nodes' parameters. measured: by overwriting.

    boundary: behind which nodes no table is read, by either. launches: how many the measuring took, two clean ones included.
    """

    found: Reading
    measured: Measured
    boundary: Boundary
    launches: int

    def lines(self) -> list[str]:
        """The report: what was found, and whether overwriting says the same."""
        ends = " and ".join(str(self.found.nodes[p]) for p in self.measured.last)
        return [
            *self.boundary.lines(),
            f"measured by overwriting, in {self.launches} launches: {ends} reads last",
            *later(self.found, self.measured),
        ]


def measure_graph(
    graph: Any,
    shared: Given,
    outputs: Any,
    *,
    state: Any = (),
    wrong: Mapping[str, Tensor] | None = None,
) -> MeasuredGraph:
    """Overwrite the shared tables behind nodes of copies of the graph, and see up to where that changes a result.

    graph, shared: as for `read_graph`. outputs: the tensors that the graph writes its results to, alone or in lists, tuples
    and dicts. state: the tensors that it changes from launch to launch; they are put back before every launch, and are
    results too. wrong: values to write, by name of the table; left out, each cell gets another value out of the same table.

    The tables hold what they shall hold in a launch. The graph is launched several times; tables, outputs and state are put
    back at the end, and nobody else may use them meanwhile. It finds reads by addresses that lie in memory. InputError where
    two clean launches differ, where the graph writes a table, where overwriting before the launch changes nothing.
    """
    raw = raw_graph(graph)
    by_name, tables = tables_of(shared)
    listed = list_nodes(raw)
    found = read(listed.nodes, tables)
    with Overwriting(listed, found, by_name, outputs, state, wrong) as overwriting:
        measured = measure(found.order, overwriting, (op.position for op in found.boundary.last))
    boundary = bounded(found.nodes, found.order, measured.last)
    return MeasuredGraph(found, measured, boundary, overwriting.launches)


def later(found: Reading, measured: Measured) -> list[str]:
    """What to say where something reads behind all that the parameters show."""
    known = found.order.closed(op.position for op in found.boundary.last)
    return [
        f"measured later than found: {found.nodes[p]} reads a table by an address that is not among its parameters; the "
        f"marker stands behind it"
        for p in measured.last
        if p not in known
    ]


class Overwriting:
    """Launches copies of one graph whose tables are overwritten on the way. Implements `warfence.parity.graph.Overwrites`.

    Entered, it notes what tables, outputs and state hold, and the results of a clean launch; left, it puts all back.
    """

    def __init__(
        self, listed: Listed, found: Reading, tables: Mapping[str, Tensor], outputs: Any, state: Any,
        wrong: Mapping[str, Tensor] | None,
    ) -> None:  # fmt: skip
        self._listed, self._found, self._tables = listed, found, tables
        self._state = _given(state, "state")
        self._results = [*_given(outputs, "outputs"), *self._state]
        if not self._results:
            raise InputError(
                "no outputs are given, so nothing could show a read; give the tensors that the graph writes"
            )
        for name, table in tables.items():
            if not table.is_contiguous():
                raise InputError(
                    f"shared '{name}' is not contiguous, so it cannot be overwritten alone; give what holds it"
                )
        self._wrong = wrong_values(tables, wrong)
        self._stream = torch.cuda.Stream()
        self.launches = 0

    def __enter__(self) -> Overwriting:
        torch.cuda.synchronize()
        self._before = [(t, t.detach().clone()) for t in (*self._tables.values(), *self._results)]
        self._clean: list[Tensor] = []
        try:
            self._clean = self._run(None)
            self._refuse_writes()
            if not _same(self._clean, self._run(None)):
                raise InputError(
                    "two clean launches of the graph give different results, so there is nothing to compare; give what it "
                    "changes as state=, and take what is random out of it"
                )
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def changed(self, behind: frozenset[int]) -> bool:
        return not _same(self._clean, self._run(self._found.order.seam(behind)))

    def _run(self, seam: tuple[Sequence[int], Sequence[int]] | None) -> list[Tensor]:
        """The results of one launch from the same state, its tables overwritten at the seam."""
        self.launches += 1
        copy = Copy(self._listed)
        try:
            if seam is not None:
                for name, table in self._tables.items():
                    copy.put_copy(seam, self._wrong[name], table)
            copy.instantiate()
            self._restore()
            copy.launch(self._stream)
            torch.cuda.synchronize()
        finally:
            copy.close()
        return [bits(t) for t in self._results]

    def _restore(self) -> None:
        with torch.no_grad():
            for t, before in self._before:
                t.detach().copy_(before)
        torch.cuda.synchronize()

    def _refuse_writes(self) -> None:
        for (name, table), (_, before) in zip(self._tables.items(), self._before, strict=False):
            if not torch.equal(bits(table), bits(before)):
                raise InputError(
                    f"the graph writes '{name}', which is shared: only the scheduler writes shared tables; let it write to a "
                    f"private copy, or leave the table out of the shared ones"
                )


def _given(value: Any, what: str) -> list[Tensor]:
    """Every tensor of the device in what the user gave. InputError for what is none."""
    for one in tree_leaves(value):
        if not isinstance(one, Tensor):
            raise InputError(f"{what} holds a {type(one).__name__}; give tensors, alone or in lists, tuples and dicts")
    return list(tensors(tree_leaves(value)))


def _same(one: list[Tensor], other: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(one, other, strict=True))

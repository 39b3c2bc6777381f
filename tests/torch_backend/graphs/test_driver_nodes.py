"""The driver's side without a device: nodes as data, copies with nodes put in, and nothing left behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.torch_backend.graphs.pretended_driver import Driver, Handle, MemoryType, NodeType
from warfence.core.errors import InputError
from warfence.parity.graph import Span, Table, read
from warfence_torch.tools.graphs import copies, nodes
from warfence_torch.tools.graphs import driver as asking
from warfence_torch.tools.graphs.copies import Copy
from warfence_torch.tools.graphs.driver import asked, raw_graph
from warfence_torch.tools.graphs.nodes import PAGEABLE, list_nodes

BASE = 0x7F00_0000_0000
TABLE = Table("table", BASE, BASE + 64, 4, Span(BASE, BASE + 64))


def word(value: int) -> bytes:
    return value.to_bytes(8, "little")


@pytest.fixture
def cu(monkeypatch: pytest.MonkeyPatch) -> Driver:
    driver = Driver()
    for module in (nodes, copies, asking):
        monkeypatch.setattr(module, "driver", lambda: driver)
    return driver


def copy_of(
    source: int, target: int, kinds: tuple[MemoryType, MemoryType] = (MemoryType(2), MemoryType(2))
) -> dict[str, Any]:
    sides = {
        f"{side}{what}": value
        for side, base, kind in (("src", source, kinds[0]), ("dst", target, kinds[1]))
        for what, value in (
            ("MemoryType", kind), ("Device", base), ("Host", base), ("Pitch", 16), ("Height", 4), ("XInBytes", 4), ("Y", 1),
            ("Z", 0),
        )
    }  # fmt: skip
    return {"type": NodeType(1), "params": SimpleNamespace(WidthInBytes=8, Height=2, Depth=1, **sides)}


def test_kernels_of_any_source_are_listed_with_the_words_of_their_parameters(cu: Driver) -> None:
    raw = cu.graph(
        [
            cu.kernel("gemm", word(5), b"\1\0\0\0"),
            cu.kernel("triton_paged", word(BASE + 8), lazy=True),
            cu.kernel("none"),
        ],
        [(0, 1), (1, 2)],
    )
    listed = list_nodes(raw)
    assert [(n.kind, n.name, n.depends) for n in listed.nodes] == [
        ("kernel", "gemm", ()), ("kernel", "triton_paged", (0,)), ("kernel", "none", (1,)),
    ]  # fmt: skip
    assert listed.nodes[0].words == (5,)
    assert read(listed.nodes, [TABLE]).boundary.after.position == 1


def test_copies_and_fills_cover_what_they_touch(cu: Driver) -> None:
    cu.pinned = {0x20 + 4 + 16}
    fill = {"type": NodeType(2), "params": SimpleNamespace(dst=0x100, width=3, elementSize=4, height=2, pitch=32)}
    raw = cu.graph([
        copy_of(0x1000, 0x2000), copy_of(0x20, 0x2000, (MemoryType(1), MemoryType(2))),
        copy_of(0x60, 0x2000, (MemoryType(1), MemoryType(2))), copy_of(0, 0x2000, (MemoryType(3), MemoryType(2))), fill,
    ], [])  # fmt: skip
    plain, pinned, pageable, array, filled = list_nodes(raw).nodes
    assert plain.reads == (Span(0x1000 + 4 + 16, 0x1000 + 4 + 16 + 8 + 16),)
    assert plain.writes == (Span(0x2014, 0x202C),)
    assert (plain.name, pinned.name, pageable.name) == ("", "", PAGEABLE)
    assert array.unknown == "it copies to or from an array without addresses"
    assert filled.writes == (Span(0x100, 0x100 + 12 + 32),)


def test_graphs_inside_graphs_and_what_cannot_be_listed(cu: Driver) -> None:
    inner = cu.graph([cu.kernel("paged", word(BASE))], [])
    raw = cu.graph([
        {"type": NodeType(4), "graph": inner}, {"type": NodeType(13), "bodies": [inner]}, {"type": NodeType(13)},
        {"type": NodeType(3)}, {"type": NodeType(7)}, {"type": NodeType(99)}, {**cu.kernel("k"), "refused": True},
    ], [])  # fmt: skip
    said = list_nodes(raw).nodes
    assert [len(node.inside) for node in said] == [1, 1, 0, 0, 0, 0, 0]
    assert [node.unknown for node in said] == [
        "", "", "a conditional whose bodies this driver does not list", "", "",
        "a kind of node that this version does not know", "the driver does not list its parameters (CUDA_ERROR_INVALID_VALUE)",
    ]  # fmt: skip
    assert [op.position for op in read(said, [TABLE]).boundary.last] == [0, 1, 2, 3, 5, 6]


def test_a_copy_puts_nodes_between_and_leaves_the_graph_alone(cu: Driver) -> None:
    raw = cu.graph([cu.kernel("a"), cu.kernel("b"), cu.kernel("c")], [(0, 1), (1, 2)])
    copy = Copy(list_nodes(raw))
    copy.put_copy(((1,), (2,)), torch.ones(3), torch.zeros(3))
    copy.put_record([1], SimpleNamespace(cuda_event=7))  # type: ignore[arg-type]
    (clone,) = set(cu.graphs) - {raw}
    assert cu.edges[clone] == [(0, 1), (1, 2), (1, 3), (3, 2), (1, 4)]
    assert len(cu.graphs[raw]) == 3
    copy.instantiate()
    copy.launch(SimpleNamespace(cuda_stream=1))  # type: ignore[arg-type]
    copy.close()
    copy.close()
    assert cu.made == cu.ended == {"graphs": 1, "executables": 1}


def test_a_thousand_copies_leave_nothing_behind_however_they_end(cu: Driver) -> None:
    raw = cu.graph([cu.kernel("a")], [])
    listed = list_nodes(raw)
    for i in range(1000):
        cu.refuses = {"instantiate"} if i % 3 == 0 else set()
        copy = Copy(listed)
        try:
            copy.instantiate()
        except InputError as error:
            assert str(error) == "the CUDA driver refuses to instantiate the graph: CUDA_ERROR_INVALID_VALUE"  # noqa: PT017
        if i % 2:
            copy.close()
        del copy
    assert cu.made == cu.ended == {"graphs": 1000, "executables": 666}
    assert set(cu.graphs) == {raw}
    assert cu.mode == 1


def test_what_cannot_be_cloned_is_refused_with_its_node(cu: Driver) -> None:
    raw = cu.graph([cu.kernel("a"), {"type": NodeType(10)}], [])
    with pytest.raises(
        InputError, match=r"refuses to clone the graph .*; node 1 \(allocation\) is of a kind that cannot be"
    ):
        Copy(list_nodes(raw))
    assert cu.made == cu.ended


def test_what_is_no_graph_is_refused_in_a_sentence(cu: Driver) -> None:
    assert raw_graph(Handle(7)) == 7
    assert raw_graph(9) == 9
    for wrong in (0, True, "graph", None):
        with pytest.raises(InputError, match="; allowed are "):
            raw_graph(wrong)
    with pytest.raises(InputError, match="the CUDA driver refuses to do it: 7"):
        asked((7, None), "do it")

"""A captured graph as data: what a driver says about each node, and where the shared tables lie."""

from __future__ import annotations

import struct
from typing import NamedTuple

KERNEL, COPY, SET, HOST = "kernel", "memcpy", "memset", "host"


class Span(NamedTuple):
    """Addresses [begin, end) of memory, in bytes."""

    begin: int
    end: int


class Node(NamedTuple):
    """One node of a graph.

    position: its place in the list of nodes, from 0. kind: "kernel", "memcpy", "memset", "host", "child graph" and so on.
    name: of the kernel, else empty. depends: positions of the nodes that it stands behind. words: the 8-byte words that a
    kernel's parameters hold, any of which may be an address. reads, writes: memory that the node surely accesses.
    inside: the nodes of a child graph or of a conditional's bodies. unknown: why its accesses cannot be listed.
    """

    position: int
    kind: str
    name: str = ""
    depends: tuple[int, ...] = ()
    words: tuple[int, ...] = ()
    reads: tuple[Span, ...] = ()
    writes: tuple[Span, ...] = ()
    inside: tuple[Node, ...] = ()
    unknown: str = ""


class Table(NamedTuple):
    """A shared table of `size`-byte elements in the memory [begin, end).

    around: the whole memory that it is a part of. A kernel that was given an address in there may reach the table too.
    """

    name: str
    begin: int
    end: int
    size: int
    around: Span


def words_of(parameter: bytes) -> tuple[int, ...]:
    """Every 8-byte word of one parameter, at each multiple of four bytes (an address may follow a 4-byte number)."""
    last = len(parameter) - 7
    return tuple(struct.unpack_from("<Q", parameter, at)[0] for at in range(0, max(last, 0), 4))

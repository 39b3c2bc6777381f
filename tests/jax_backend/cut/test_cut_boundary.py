"""Where the reads of a traced function end. Nothing is compiled here."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warfence.core.modes import WarReadDonePolicy
from warfence.parity.boundary import Access, Boundary, find
from warfence_jax.tools.cutting.arguments import traced_with
from warfence_jax.tools.cutting.operations import operations
from warfence_jax.tools.cutting.order import hoist

TABLE = jnp.arange(12, dtype=jnp.int32).reshape(3, 4)
X = jnp.arange(4, dtype=jnp.int32)
CLOSED_OVER = TABLE + 1
scope = jax.named_scope


def boundary(fn: Callable[..., object], *args: object, order: str = "program", arrays: tuple = ()) -> Boundary:
    traced = traced_with(fn, args or (TABLE, X), 0, arrays)
    equations = hoist(traced)[0] if order == "hoist" else traced.equations
    return find(operations(traced, equations))


def after(fn: Callable[..., object], *args: object, **kw: object) -> tuple[str, str]:
    found = boundary(fn, *args, **kw).after
    assert found is not None
    return found.stage, found.name


@jax.jit
def nested(t, x):
    with scope("late"):
        y = jax.jit(lambda t: t[1] * 2)(t)
    with scope("end"):
        return y @ x


def scanned(t, x):
    with scope("loop"):
        total, _ = jax.lax.scan(lambda c, i: (c + t[i % 3], None), x, X)
    with scope("end"):
        return total * 2


def loops(t, x):
    with scope("loop"):
        total = jax.lax.while_loop(lambda c: c[0] < 9, lambda c: c + t[2], x)
    with scope("end"):
        return total * 2


def looks(t, x):
    with scope("branch"):
        y = jax.lax.cond(x[0] > 0, lambda t, x: t[0] + x, lambda t, x: x, t, x)
    with scope("end"):
        return y * 2


def looks_away(t, x):
    with scope("early"):
        y = t[0] + x
    with scope("branch"):
        return jax.lax.cond(x[0] > 0, lambda t, x: x + 1, lambda t, x: x, t, y)


def passes_on(t, x):
    with scope("branch"):
        return jax.lax.cond(x[0] > 0, lambda t: t, lambda t: t + 1, t)


@jax.custom_vjp
def custom(t):
    return t[1] * 1.0


custom.defvjp(lambda t: (t[1] * 1.0, None), lambda _, g: (g,))


def remat(t, x):
    with scope("custom"):
        y = custom(t)
    with scope("remat"):
        y = y + jax.checkpoint(lambda t: (t * 2)[2])(t)
    with scope("end"):
        return y * x


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (nested, ("late", "slice")), (scanned, ("loop", "scan")), (loops, ("loop", "while")), (looks, ("branch", "cond")),
        (looks_away, ("early", "slice")), (passes_on, ("branch", "cond")), (remat, ("remat", "mul")),
    ],
)  # fmt: skip
def test_the_reads_end_where_an_equation_last_looks_at_the_array(fn: Callable, expected: tuple[str, str]) -> None:
    assert after(fn) == expected


def test_a_body_called_twice_is_two_places() -> None:
    twice = jax.jit(lambda t: t[0] + t[1])

    def fn(t, x):
        with scope("first"):
            y = twice(t)
        with scope("second"):
            return y + twice(t) + x

    reads = boundary(fn).reads
    assert [(op.stage, op.reads) for op in reads] == [
        (stage, (Access("t", row * 4, row * 4 + 4),)) for stage in ("first", "second") for row in (0, 1)
    ]
    assert all("test_cut_boundary.py" in op.where for op in reads)


def test_an_array_handed_on_under_another_name_is_the_same_array() -> None:
    swap = jax.jit(lambda t, x: (x, t))
    assert after(lambda t, x: swap(t, x)[1][2, 1:3] + swap(t, x)[0][:2])[1] == "slice"
    assert boundary(lambda t, x: swap(t, x)[1][2, 1:3] + swap(t, x)[0][:2]).reads[0].reads == (Access("t", 9, 11),)


def test_leaves_are_named_after_their_parameter() -> None:
    seen = boundary(lambda tables, x: tables["a"][0] + tables["b"][x], {"a": TABLE, "b": X}, X).reads
    assert [op.reads[0] for op in seen] == [Access("tables['a']", 0, 4), Access("tables['b']", 0, 4)]


def test_an_array_that_is_closed_over_is_read_like_an_argument() -> None:
    def fn(t, x):
        with scope("argument"):
            y = t[0] + x
        with scope("closed over"):
            return y + jax.jit(lambda i: CLOSED_OVER[i])(1)

    assert boundary(fn, arrays=(CLOSED_OVER,)).stage == "closed over"
    assert boundary(fn).stage == "argument"  # unnamed, it is a constant like any other


def test_where_nothing_is_read_the_ticket_is_out_before_the_start() -> None:
    found = boundary(lambda t, x: x + 1)
    assert (found.policy, found.after, found.reads) == (WarReadDonePolicy.PRE_REPLAY, None, ())


def mixed(t, x):
    with scope("compute"):
        heavy = jnp.sin(x * 1.0) @ jnp.cos(x * 1.0)
        row = x[0] + 1
    with scope("dead"):
        t[2, 2] + 1
    with scope("read"):
        taken = t[row] * 2
    with scope("end"):
        return taken * heavy


def test_hoisting_keeps_the_last_read_and_what_it_needs() -> None:
    assert boundary(mixed).stage == boundary(mixed, order="hoist").stage == "read"
    gain = hoist(traced_with(mixed, (TABLE, X), 0, ()))[1]
    assert gain.after < gain.before
    assert {op.stage for op in gain.moved} == {"compute"}
    assert {op.name for op in gain.moved} >= {"sin", "cos", "dot_general"}
    assert {op.stage for op in gain.dropped} == {"dead"}
    assert gain.kept == ()


@pytest.mark.parametrize("ordered", [True, False])
def test_no_read_passes_an_ordered_effect(ordered: bool) -> None:
    def fn(t, x):
        y = jnp.sin(x * 1.0)
        jax.debug.callback(lambda v: None, y, ordered=ordered)
        return t[0] + y

    gain = hoist(traced_with(fn, (TABLE, X), 0, ()))[1]
    assert ["callback" in op.name for op in gain.kept] == [True] * ordered
    assert ("sin" in {op.name for op in gain.moved}) is not ordered


def test_effects_that_a_read_needs_bring_the_effects_before_them() -> None:
    def fn(t, x):
        say = partial(jax.experimental.io_callback, lambda v: v, X, ordered=False)
        first, second = say(x + 1), say(x + 2)
        return t[second % 3], first

    equations = hoist(traced_with(fn, (TABLE, X), 0, ()))[0]
    names = [e.primitive.name for e in equations]
    assert names[:4] == ["add", "io_callback", "add", "io_callback"]


@pytest.mark.slow
@settings(max_examples=25)
@given(st.lists(st.sampled_from(["slice", "gather", "jit", "scan", "compute"]), min_size=1, max_size=5))
def test_the_stage_of_the_boundary_is_the_last_one_that_reads(kinds: list[str]) -> None:
    bodies = {
        "slice": lambda t, y: y + t[1], "gather": lambda t, y: y + t[y % 3].sum(0), "compute": lambda t, y: y * 2 + 1,
        "jit": jax.jit(lambda t, y: t[0] * y),
        "scan": lambda t, y: jax.lax.scan(lambda c, row: (c + row, None), y, t)[0],
    }  # fmt: skip

    def fn(t, y):
        for i, kind in enumerate(kinds):
            with scope(f"stage {i}"):
                y = bodies[kind](t, y)
        return y

    readers = [f"stage {i}" for i, kind in enumerate(kinds) if kind != "compute"]
    for order in ("program", "hoist"):
        assert boundary(fn, order=order).stage == (readers[-1] if readers else None)

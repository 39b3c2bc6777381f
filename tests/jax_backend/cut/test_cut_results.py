"""What a cut function returns, takes, donates; and what it refuses."""

from __future__ import annotations

import re
import subprocess
import sys
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from warfence.core.errors import InputError
from warfence_jax import cut, marked

TABLE = jnp.arange(12, dtype=jnp.int32).reshape(3, 4)
UNREAD = jnp.zeros(5)
X = jnp.array([0.3, 0.7, 1.1, 2.0])
CLOSED_OVER = TABLE + 1


def step(tables, x, cache, scratch):
    """Reads a row, works, looks away, and gives back what it was lent."""
    heavy = jnp.sin(x) @ jnp.cos(x)
    row = tables["rows"][jnp.int32(x[0]), :]
    scratch = scratch + row
    y = jax.nn.softmax(row * heavy) + CLOSED_OVER[1]
    y = jax.lax.cond(x[0] > 9, lambda t, y: y * 2, lambda t, y: y, tables["rows"], y)
    return {"y": y, "cache": cache.at[0].add(y), "one": 1}, scratch


def arguments() -> tuple:
    return {"rows": TABLE, "unread": UNREAD}, X, jnp.zeros((2, 4)), jnp.ones(4, jnp.int32)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["program", "hoist"])
def test_the_parts_give_what_the_function_gives(order: str) -> None:
    made = cut(step, arguments(), shared_argnums=0, shared_arrays=[CLOSED_OVER], donate_argnums=(2, 3), order=order)
    assert [part.label for part in made.parts] == ["head", "rest"]
    head, rest = made.parts
    assert {"tables['rows']", "shared_arrays[0]"} < set(head.takes)
    assert set(rest.takes) <= {"x", "cache", "scratch"}
    assert made.unread == ("tables['unread']",)
    assert made.compare(*arguments(), CLOSED_OVER).bitwise
    # Another array in place of the one closed over: it is an argument now.
    moved = made(*arguments(), CLOSED_OVER + 1)[0]["y"]
    np.testing.assert_allclose(moved, made(*arguments(), CLOSED_OVER)[0]["y"] + 1, rtol=1e-6)
    assert made.refused == ()
    assert made.donation["cache"] == "in place in the rest"
    assert made.donation["scratch"].startswith("in place")
    assert any("tables['unread']: shared, but never read" in line for line in made.report())
    if made.gain is not None:
        assert made.gain.after < made.gain.before
        assert "sin" in {op.name for op in made.gain.moved}


@pytest.mark.slow
def test_a_donated_argument_is_given_away_once_and_the_others_are_kept() -> None:
    made = cut(step, arguments(), shared_argnums=0, donate_argnums=(2, 3))
    args = arguments()
    pointer = args[2].unsafe_buffer_pointer()
    known = made.head(*args)
    assert not args[2].is_deleted()  # the rest needs it
    (given, _), again = made.rest(known), arguments()
    assert (args[2].is_deleted(), args[3].is_deleted()) == (True, True)
    assert given["cache"].unsafe_buffer_pointer() == pointer
    assert not args[0]["rows"].is_deleted()
    assert not set(made.parts[0].aliased) & set(made.parts[1].aliased)
    assert made(*again)[0]["one"] == 1


@pytest.mark.slow
def test_memory_of_an_argument_that_the_head_alone_reads_goes_to_a_result_of_the_rest() -> None:
    def fn(t, cache):
        start = (cache.sum() + t[0]).astype(jnp.float32)
        return jnp.zeros_like(cache) + start

    made = cut(fn, (jnp.arange(3), jnp.ones((4, 4))), shared_argnums=0, donate_argnums=1)
    assert made.donation == {"cache": "in place in the rest"}
    assert made.parts[0].takes == ("t", "cache")
    assert made.compare(jnp.arange(3), jnp.ones((4, 4))).bitwise


@pytest.mark.slow
def test_an_ordered_effect_does_not_shift_what_is_said_of_donations() -> None:
    """JAX puts a token before the arguments of the executable."""

    def fn(t, x):
        y = x + t[0]
        jax.debug.callback(lambda v: None, y, ordered=True)
        return y, x.sum()

    made = cut(fn, (TABLE, X), shared_argnums=0, donate_argnums=1)
    assert made.donation == {"x": "in place in the rest"}


@pytest.mark.slow
def test_a_donation_that_no_result_fits_is_said_to_copy() -> None:
    made = cut(lambda t, x: x.sum() + t[0], (TABLE[0], X), shared_argnums=0, donate_argnums=1)
    assert made.donation == {"x": "copied, as by the uncut function"}
    assert made.refused == ()


def test_where_nothing_is_read_there_is_one_executable_without_the_shared_arrays() -> None:
    made = cut(lambda t, x: x * 2, (TABLE, X), shared_argnums=0)
    assert [part.takes for part in made.parts] == [("x",)]
    assert made.unread == ("t",)
    np.testing.assert_array_equal(made(TABLE, X), X * 2)


@pytest.mark.slow
def test_a_cut_behind_each_array_takes_each_no_longer_than_it_is_read() -> None:
    def fn(first, second, x):
        y = x + first[0]
        return (y * second[0] + first[0] * second[1]) * 2 + x

    made = cut(fn, (TABLE[0], TABLE[1], X), shared_argnums=(0, 1), behind="each", donate_argnums=2)
    assert [(part.label, part.takes) for part in made.parts] == [
        ("head 1", ("first", "second", "x")), ("head 2", ("second",)), ("rest", ("x",))
    ]  # fmt: skip
    assert made.compare(TABLE[0], TABLE[1], X).bitwise
    assert made.donation == {"x": "in place in the rest"}


def test_where_the_function_ends_with_a_read_there_is_no_rest() -> None:
    made = cut(lambda t, x: (x, t[0:2]), (TABLE, X), shared_argnums=0)
    assert [part.label for part in made.parts] == ["head"]
    given, row = made(TABLE, X)
    np.testing.assert_array_equal(given, X)
    np.testing.assert_array_equal(row, TABLE[0:2])


@pytest.mark.slow
def test_a_difference_is_told_in_its_unit() -> None:
    made = cut(lambda t, x: x + t[0], (TABLE, X), shared_argnums=0)
    made.__dict__["uncut"] = lambda t, x: [jnp.nextafter(x + t[0], jnp.float32(9))]
    (difference,) = made.compare(TABLE, X).results
    assert (difference.bitwise, difference.ulps) == (False, 1)
    assert 0 < difference.relative < difference.absolute < 1e-5
    assert re.fullmatch(r"result: off by \S+, \S+ of its largest value, 1 ulps", str(difference))
    made.__dict__["uncut"] = lambda t, x: [jnp.array([jnp.nan, 1.0, jnp.inf, 0.0]) + t[0] * 0]
    (difference,) = made.compare(TABLE, X).results
    assert (difference.bitwise, difference.absolute) == (False, np.inf)


def test_the_marker_variant_gives_the_same_and_calls_once() -> None:
    called: list[int] = []
    made = marked(lambda t, x: jnp.sin(x + t[1]) * 2, (TABLE, X), lambda: called.append(1), shared_argnums=0)
    np.testing.assert_allclose(made(TABLE, X), np.sin(np.asarray(X) + np.asarray(TABLE[1])) * 2, rtol=1e-6)
    jax.effects_barrier()
    assert called == [1]
    assert made.boundary.after.name == "slice"


def add(t, x):
    return t[0] + x


@pytest.mark.parametrize(
    ("fn", "options", "message"),
    [
        (add, {"shared_argnums": 2}, r"cut of 'add': shared_argnums names \[2\]; allowed are -2 to 1"),
        (add, {"shared_argnums": 0, "donate_argnums": -3}, r"donate_argnums names \[-3\]; allowed are -2 to 1"),
        (add, {"shared_argnums": -2, "donate_argnums": (0, 1)}, "t shared and donated: .*only the scheduler does that"),
        (add, {}, "no argument is shared; name some in shared_argnums or shared_arrays"),
        (add, {"shared_argnums": 0, "order": "late"}, "order is 'late'; choose one of: program, hoist"),
        (add, {"shared_argnums": 0, "behind": "all"}, "behind is 'all'; choose one of: last, each"),
        (add, {"shared_arrays": [3]}, "shared_arrays holds int; allowed are the jax.Arrays closed over"),
        (lambda t, x: (t, x), {"shared_argnums": 0}, "it returns t as it is, which is shared: .* return jnp.copy of it"),
        (lambda t: t, {"shared_argnums": 0}, "cannot be traced with these arguments .TypeError: .*functools.partial"),
        (lambda t, x: x if x[0] else t, {"shared_argnums": 0}, "cannot be traced .*TracerBoolConversionError"),
        (lambda t, x: jax.new_ref(x)[...] + t[0], {"shared_argnums": 0}, "it uses mutable references; write it without"),
    ],
)  # fmt: skip
def test_what_cannot_be_cut_is_refused(fn, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cut(fn, (TABLE, X), **options)


def test_a_call_with_other_arguments_is_refused() -> None:
    made = cut(add, (TABLE, X), shared_argnums=0)
    with pytest.raises(InputError, match=r"cut of 'add': called with .*, but it was cut for"):
        made(TABLE)
    with pytest.raises(InputError, match=r"cut of 'add', head: t is int32\[2,4\], not int32\[3,4\]; call it"):
        made(TABLE[:2], X)
    with pytest.raises(InputError, match="args is a dict"):
        cut(partial(add), {"t": TABLE}, shared_argnums=0)


def test_the_package_alone_imports_no_jax() -> None:
    child = "import sys, warfence_jax; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", child], check=False).returncode == 0

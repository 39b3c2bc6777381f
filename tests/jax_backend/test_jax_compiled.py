"""The text of a compiled module, read: who takes a table, and whether all of it comes before the word."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest

from warfence_jax.compiled import Module

GOOD = """HloModule jit_f, is_scheduled=true, entry_computation_layout={(s32[8]{0}, u32[1]{0})->(s32[2]{0}, u32[1]{0})}

%fused (param_0: s32[8], param_1: s32[2]) -> s32[2] {
  %param_0 = s32[8]{0} parameter(0)
  %param_1 = s32[2]{0} parameter(1)
  ROOT %g = s32[2]{0} gather(%param_0, %param_1), metadata={op_name="jit(f)/page_table/gather"}
}

ENTRY %main (t: s32[8], w: u32[1], r: s32[2]) -> (s32[2], u32[1]) {
  %t = s32[8]{0} parameter(0), metadata={op_name="t"}
  %w = u32[1]{0} parameter(1)
  %r = s32[2]{0} parameter(2)
  %view = s32[8]{0} bitcast(%t)
  %read = s32[2]{0} fusion(%view, %r), kind=kLoop, calls=%fused, metadata={op_name="jit(f)/layer/add"}
  %word = u32[1]{0} fusion(%w, /*index=1*/%read), kind=kLoop, calls=%count
  %rest = s32[2]{0} add(%read, %read)
  ROOT %out = (s32[2]{0}, u32[1]{0}) tuple(%rest, %word)
}
"""
AGAIN = GOOD.replace(
    "%rest = s32[2]{0} add(%read, %read)", "%rest = s32[2]{0} fusion(s32[8]{0} %t, s32[2]{0} %r), calls=%fused"
)
BESIDE = GOOD.replace("fusion(%w, /*index=1*/%read)", "fusion(%w)")
CALLED = """HloModule jit_f, is_scheduled=true

%command_buffer (p: s32[8], q: s32[2], v: u32[1]) -> (s32[2], u32[1]) {
  %p = s32[8]{0} parameter(0)
  %q = s32[2]{0} parameter(1)
  %v = u32[1]{0} parameter(2)
  %a = s32[2]{0} gather(%p, %q), metadata={op_name="jit(f)/page_table/gather"}
  %b = u32[1]{0} fusion(%v, %a), kind=kLoop, calls=%count
  %c = s32[2]{0} LAST
  ROOT %o = (s32[2]{0}, u32[1]{0}) tuple(%c, %b)
}

ENTRY %main (t: s32[8], w: u32[1], r: s32[2]) -> (s32[2], u32[1]) {
  %t = s32[8]{0} parameter(0)
  %w = u32[1]{0} parameter(1)
  %r = s32[2]{0} parameter(2)
  %call = (s32[2]{0}, u32[1]{0}) call(%t, %r, %w), to_apply=%command_buffer
  %x = s32[2]{0} get-tuple-element(%call), index=0
  %y = u32[1]{0} get-tuple-element(%call), index=1
  ROOT %out = (s32[2]{0}, u32[1]{0}) tuple(%x, %y)
}
"""


def test_uses_and_the_operations_inside_them() -> None:
    (use,) = Module(GOOD).uses(0)
    assert (use.instruction.name, use.op_names) == ("read", ("jit(f)/page_table/gather",))
    assert use.instruction.line == GOOD.splitlines().index(next(ln for ln in GOOD.splitlines() if "%read =" in ln)) + 1
    assert Module(GOOD).writer(1).name == "word"


@pytest.mark.parametrize(
    ("text", "late"),
    [
        (GOOD, []),
        (AGAIN, ["rest"]),  # once more behind the word
        (BESIDE, ["read"]),  # the word does not depend on it: it may come first
        (CALLED.replace("LAST", "add(%a, %a)"), []),
        (CALLED.replace("LAST", "gather(%p, %a)"), ["c"]),  # inside of what is captured
    ],
)
def test_a_use_that_is_not_before_the_word(text: str, late: list[str]) -> None:
    assert [use.instruction.name for use in Module(text).late([0], 1)] == late


def test_the_text_of_this_jax_is_understood() -> None:
    def f(table: jax.Array, rows: jax.Array, word: jax.Array) -> tuple[jax.Array, jax.Array]:
        with jax.named_scope("page_table"):
            read = table[rows]
        return jnp.tanh(read * 1.5), word + read.sum().astype(jnp.uint32)

    table, rows, word = jnp.arange(8), jnp.array([1, 2]), jnp.zeros((1,), jnp.uint32)
    module = Module(jax.jit(f, donate_argnums=2).lower(table, rows, word).compile().as_text())
    assert module.uses(0)
    assert all("page_table" in name for use in module.uses(0) for name in use.op_names)
    assert not module.late([0], 1) or len(module.uses(0)) > 1


def test_a_use_behind_a_callback_is_told_by_its_line() -> None:
    """What `marked` would make of an operation that is left out: the callback takes the array itself, the read comes behind."""
    name = "jit(f)/warfence_read_done/io_callback"
    call = f'  %told = token[] custom-call(%t), custom_call_target="call", metadata={{op_name="{name}"}}\n'
    module = Module(GOOD.replace("  %read =", f"{call}  %read ="))
    marker = module.scoped("warfence_read_done")
    assert marker is not None
    assert [use.instruction.name for use in module.behind([0], marker)] == ["read"]
    behind = Module(GOOD.replace("  %rest =", f"{call}  %rest ="))
    assert behind.behind([0], behind.scoped("warfence_read_done")) == []

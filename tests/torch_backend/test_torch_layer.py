"""A layer and the snapshot of where it writes: of a longer call it takes the first, of a shorter one nothing (law 10)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from warfence.core.errors import WarfenceError
from warfence_torch.kernels import KERNELS

KINDS = {"layer": "out_cache_loc", "layer, sliding": "swa_out_cache_loc"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_of_a_longer_call_gives_the_same(run: Any, world: Any, kind: str) -> None:
    out = world[KINDS[kind]]
    longer = np.concatenate([out, np.full((3, 2), 29, np.int32)], axis=1)
    given, after = run(kind, {KINDS[kind]: longer})
    expected, pool = run(kind)
    np.testing.assert_array_equal(given["hidden"], expected["hidden"])
    np.testing.assert_array_equal(after["kv.0"], pool["kv.0"])


def test_a_call_in_pieces_gives_the_same(run: Any, world: Any) -> None:
    """The first two queries of a sliding call, with the metadata of all four: table and locations are the whole call's."""
    piece = {n: world[n][:, :2].copy() for n in ("hidden", "positions")}
    given, _ = run("layer, sliding", piece)
    np.testing.assert_allclose(given["hidden"], run("layer, sliding")[0]["hidden"][:, :2], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_a_snapshot_of_a_shorter_call_is_refused_before_anything_is_written(cases: Any, world: Any, kind: str) -> None:
    case, name = cases[kind], KINDS[kind]
    world[name] = world[name][:, :3].copy()
    env = {n: torch.tensor(world[n]) for n in case.sees}
    message = f"snapshot '{name}' holds 3 write locations a row and the call writes 4"
    with torch.inference_mode(), pytest.raises(WarfenceError, match=message):
        KERNELS["layer"](env, case.attrs)
    np.testing.assert_array_equal(env["kv.0"].numpy(), world["kv.0"])

"""Which backends the suite runs on: all built-in ones, or those named with --backend."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from warfence.backend import Backend
from warfence.backends import load
from warfence.engine import Engine
from warfence.testing.small import SmallModel, make_engine, small_model

Target = tuple[str, str]
BUILT_IN: tuple[Target, ...] = (
    ("strict", "cpu"), ("torch", "cpu"), ("jax", "cpu"), ("torch", "cuda"), ("jax", "cuda"),
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("warfence")
    group.addoption(
        "--backend", action="append", default=[], help="backend to test: a name or pkg.mod:attr (repeatable)"
    )
    group.addoption("--device", default="cpu", help="device of the backends named with --backend")


def targets(config: pytest.Config) -> list[Target]:
    named = config.getoption("--backend")
    return [(name, config.getoption("--device")) for name in named] if named else list(BUILT_IN)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "target" in metafunc.fixturenames:
        params = [
            pytest.param(t, id=f"{t[0]}-{t[1]}", marks=[pytest.mark.gpu] if t[1] != "cpu" else [])
            for t in targets(metafunc.config)
        ]
        metafunc.parametrize("target", params, scope="session")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needing = [item for item in items if item.get_closest_marker("gpu")]
    if needing and (reason := why_no_gpu()):
        for item in needing:
            item.add_marker(pytest.mark.skip(reason=reason))


def why_no_gpu() -> str | None:
    if importlib.util.find_spec("torch") is None:
        return "needs a CUDA device, and torch to look for it"
    import torch

    return None if torch.cuda.is_available() else f"needs a CUDA device: torch {torch.__version__} sees none"


@pytest.fixture
def make_backend(target: Target) -> Callable[..., Backend]:
    """A factory of the backend under test."""
    name, device = target
    return lambda **options: load(name)(device=device, **options)


@pytest.fixture(scope="session")
def small() -> SmallModel:
    return small_model()


@pytest.fixture(scope="session")
def engines(small: SmallModel) -> Iterator[Callable[..., Engine]]:
    """Engines of the session by target and settings: many tests run on one, so that it is compiled once."""
    made: dict[str, Engine] = {}

    def get(target: Target, options: Mapping[str, Any] | None = None, **config: Any) -> Engine:
        key = repr((target, sorted((options or {}).items()), sorted(config.items())))
        if key not in made:
            backend = load(target[0])(device=target[1], **(options or {}))
            made[key] = make_engine(small, backend, **config)
        return made[key]

    yield get
    for engine in made.values():
        engine.backend.close()

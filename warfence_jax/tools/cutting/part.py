"""One part of a cut function: an ahead-of-time executable, and the names of what it takes and gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, Device, ShapeDtypeStruct
from jax.extend.core import ClosedJaxpr, JaxprEqn, Var, jaxpr_as_fun
from jax.sharding import SingleDeviceSharding
from jax.stages import Compiled

from warfence.core.errors import InputError
from warfence_jax.compiler import CALLBACK, Compiler, aliased_arguments, token_of
from warfence_jax.tools.cutting.order import ordered
from warfence_jax.tools.cutting.plan import Plan
from warfence_jax.tools.cutting.trace import Traced, shape_and_dtype

Values = dict[Var, Any]


class Part:
    """An executable: (what it takes, order, wait) -> (what it gives, token). The last three are int32 scalars of a lane.

    label: head (1, 2, ...) or rest.
    """

    def __init__(self, traced: Traced, plan: Plan, label: str, device: Device, compiler: Compiler) -> None:
        self.label, self.device, self.plan = label, device, plan
        self._traced = traced
        body = function(traced, plan.equations, (*plan.takes, *plan.blanks), plan.gives)

        def run(*given: Array) -> tuple[Array, ...]:
            *taken, order, wait = given
            results = body(*taken, *(jnp.zeros(*shape_and_dtype(v)) for v in plan.blanks))
            return (*results, token_of(order, wait, touchable(results)))

        scalar = ShapeDtypeStruct((), jnp.int32, sharding=SingleDeviceSharding(device))
        arguments = [*(described(v, device) for v in plan.takes), scalar, scalar]
        donate = [i for i, v in enumerate(plan.takes) if v in plan.donated]
        self._making = compiler.compile(f"{traced.name}/{label}", run, arguments, donate)[0]
        self._constants = {v: jax.device_put(traced.constants[v], device) for v in plan.takes if v in traced.constants}
        self._zero = jax.device_put(jnp.int32(0), device)

    @property
    def compiled(self) -> Compiled:
        """The executable; blocks until it is there."""
        return self._making.get()

    @cached_property
    def calls_back(self) -> bool:
        """It calls back into Python, so a lane dispatches it only when nothing is left to wait for."""
        return CALLBACK in (self.compiled.as_text() or "")

    @property
    def takes(self) -> tuple[str, ...]:
        """The arguments of the function that this part takes; constants and values of earlier parts have no names."""
        return tuple(self._traced.names[v] for v in self.plan.takes if v in self._traced.names)

    @property
    def shared(self) -> tuple[Var, ...]:
        """The shared arrays that this part takes, and holds until it has run."""
        return tuple(v for v in self.plan.takes if v in self._traced.shared)

    @property
    def aliased(self) -> set[Var]:
        """What it took over the memory of, read from the text of the executable."""
        return aliased(self.compiled, self.plan.takes, self.plan.equations)

    def __call__(self, values: Mapping[Var, Any]) -> Values:
        """Run with the values known; returns those that it gives."""
        return self.dispatch(self.arguments(values), self._zero, self._zero)[0]

    def arguments(self, values: Mapping[Var, Any]) -> list[Any]:
        """What it takes, where it runs."""
        taken = [self._constants[v] if v in self._constants else values[v] for v in self.plan.takes]
        away = [isinstance(a, Array) and a.device != self.device for a in taken]
        return [jax.device_put(a, self.device) if moves else a for a, moves in zip(taken, away, strict=True)]

    def dispatch(self, arguments: Sequence[Any], order: Array, wait: Array) -> tuple[Values, Array]:
        """Run behind the two tokens; returns what it gives, and its own token. InputError for other shapes."""
        try:
            *results, token = self.compiled(*arguments, order, wait)
        except TypeError as error:
            pairs = [(v, jax.typeof(a)) for v, a in zip(self.plan.takes, arguments, strict=True)]
            other = ", ".join(
                f"{self._traced.names.get(v, 'a value between the parts')} is {seen.str_short()}, not {v.aval.str_short()}"
                for v, seen in pairs
                if (tuple(seen.shape), seen.dtype) != shape_and_dtype(v)
            )
            raise InputError(
                f"cut of '{self._traced.name}', {self.label}: {other or error}; call it with what it was cut for, or cut again"
            ) from error
        return dict(zip(self.plan.gives, results, strict=True)), token


def function(traced: Traced, equations: Sequence[JaxprEqn], takes: Sequence[Var], gives: Sequence[Var]) -> Any:
    """The equations as a function of the values of `takes`; it returns a list: those of `gives`."""
    effects = frozenset().union(*(e.effects for e in equations))
    jaxpr = traced.template.replace(
        constvars=[], invars=list(takes), outvars=list(gives), eqns=list(equations), effects=effects,
        debug_info=traced.template.debug_info.with_unknown_names(),
    )  # fmt: skip
    return jaxpr_as_fun(ClosedJaxpr(jaxpr, ()))


def aliased(compiled: Compiled, takes: Sequence[Var], equations: Sequence[JaxprEqn]) -> set[Var]:
    """Those of `takes` that an executable of these equations keeps in place. JAX puts a token of each ordered effect first."""
    tokens = len({type(effect) for e in equations if ordered(e) for effect in e.effects})
    return {takes[i - tokens] for i in aliased_arguments(compiled)}


def described(variable: Var, device: Device) -> ShapeDtypeStruct:
    """A variable as an argument that lies on one device."""
    weak = bool(getattr(variable.aval, "weak_type", False))
    return ShapeDtypeStruct(*shape_and_dtype(variable), sharding=SingleDeviceSharding(device), weak_type=weak)


def touchable(results: Sequence[Array]) -> list[Array]:
    """The results that a token can be made of: numbers, and not empty. Keys and complex numbers by their parts."""
    plain = [jax.random.key_data(r) if jnp.issubdtype(r.dtype, jax.dtypes.prng_key) else r for r in results]
    plain = [r.real if jnp.iscomplexobj(r) else r for r in plain]
    return [r for r in plain if r.size]

"""One case: every strategy is measured or says why not, in turn, and the document keeps its form."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pytest

from warfence.bench.document import FORMAT, Document, document, environment
from warfence.bench.group import Group, chosen
from warfence.bench.measure import Measurement, measure
from warfence.bench.memory import over_steps
from warfence.bench.results import CaseResult
from warfence.bench.run import BenchOptions, Found, run
from warfence.bench.strategies import NAMES
from warfence.core.errors import InputError
from warfence.host.documents import decoded, plain
from warfence.host.meter import Meter
from warfence.serve.jobs.start import open_backend

from .conftest import LITTLE, SMALL

pytestmark = pytest.mark.slow  # a whole case is measured before the first

CASE_KEYS = {
    "backend", "device", "case", "parameters", "forward_ms", "schedule_ms", "boundary_ms", "ideal_ms", "strategies",
    "unavailable", "host_costs_us", "fence_share_of_step", "barrier_latency_us", "no_barrier_latency", "memory",
}  # fmt: skip
STRATEGY_KEYS = {
    "policy", "fence", "steps", "step_ms", "over_ideal", "lead_ms", "bubble", "writes_us", "execute_us", "barrier_us",
    "over_in_graph",
}  # fmt: skip


def test_every_strategy_is_measured_or_says_why_not(result: CaseResult) -> None:
    assert {*result.strategies, *result.unavailable} == set(NAMES)
    assert dict(result.unavailable) == {
        "fresh_staging": "backend strict has no option staging=fresh",
        "donation_only": "no guards_writes: tables are written in place; only the fence protects them",
        "copied_tables": "backend strict has no option tables=copied",
        "cut": "backend strict has no option marker=cut, tables=donated",
        "word": "backend strict has no option marker=word, tables=aliased",
        "node": "backend strict has no option marker=node, tables=device",
    }
    policies = {name: found.policy for name, found in result.strategies.items()}
    assert (policies["pre_replay"], policies["copy"]) == ("pre_replay", "pre_replay")
    assert (policies["in_graph"], policies["post_replay"]) == ("in_graph", "post_replay")


def test_strategies_run_in_turn(measured: tuple[CaseResult, list[str]]) -> None:
    result, order = measured
    names = [name for name in NAMES if name in result.strategies]
    warm_up, rounds, memory = order[: len(names)], order[len(names) : 3 * len(names)], order[3 * len(names) :]
    assert warm_up == names
    assert rounds == names * LITTLE.rounds
    assert memory == []  # not through the same door


def test_figures_are_of_all_rounds(result: CaseResult) -> None:
    for found in result.strategies.values():
        assert len(found.step_ms.values) == len(found.over_ideal.values) == LITTLE.rounds
    reference = result.strategies["in_graph"].over_in_graph
    assert reference is not None
    assert reference.median == 1.0
    pairs = zip(result.forward_ms.values, result.schedule_ms.values, result.boundary_ms.values, strict=True)
    assert result.ideal_ms.values == tuple(max(f, s + b) for f, s, b in pairs)


def test_the_form_of_the_document_is_stable(result: CaseResult) -> None:
    made = document(environment([], {"OMP_NUM_THREADS": "1"}), LITTLE, Found([result]))
    found = json.loads(json.dumps(plain(made)))
    assert set(found) == {"format", "environment", "settings", "legend", "cases", "served", "rounds"}
    assert found["format"] == FORMAT == 1
    assert {"date", "command", "machine", "cpus", "devices", "versions", "variables"} <= set(found["environment"])
    assert set(found["cases"][0]) == CASE_KEYS
    assert all(set(one) == STRATEGY_KEYS for one in found["cases"][0]["strategies"].values())
    assert set(found["cases"][0]["host_costs_us"]) == {"in_graph", "recorded", "coarse", "off"}
    assert found["cases"][0]["barrier_latency_us"] is None
    assert found["cases"][0]["no_barrier_latency"] == "backend strict offers no clocks on both lanes"
    assert found["cases"][0]["strategies"]["serial"]["bubble"] is None


def test_a_document_is_read_as_it_was_written(result: CaseResult) -> None:
    made = plain(document(environment([], {}), LITTLE, Found([result])))
    read = decoded(json.dumps(made).encode(), Document, "document", "", "it")
    assert read.cases == [result]
    assert read.served == []
    assert plain(read) == made


def test_a_backend_without_markers_still_has_a_reference_for_its_limits() -> None:
    def unmarked(options: dict[str, str]) -> object:
        from warfence.parity.strict.backend import StrictBackend

        return StrictBackend(external_markers=False, **options)

    group = Group("strict", unmarked, SMALL, chosen(["serial", "in_graph"]), LITTLE, Meter())
    try:
        (result,) = measure([(group, SMALL)])
    finally:
        group.close()
    assert list(result.strategies) == ["serial"]
    assert result.unavailable == {"in_graph": "no external_markers: switched off"}
    assert set(result.host_costs_us) == {"recorded", "coarse", "off"}
    assert result.strategies["serial"].over_in_graph is None
    assert result.fence_share_of_step is None


def test_memory_is_looked_at_after_a_third_and_at_the_end() -> None:
    sizes = iter([100, 200, 200, 200])
    memory = over_steps(lambda: 10, lambda: {"tables_bytes": next(sizes), "torch": "2.8"})
    assert memory.steps == (10, 30)
    assert [dict(one) for one in memory.reported_bytes] == [{"tables_bytes": 100}, {"tables_bytes": 200}]


def test_a_strategy_that_there_is_not_is_refused() -> None:
    with pytest.raises(InputError, match="unknown strategy 'hope'; choose one of: serial, coarse"):
        chosen(["hope"])
    assert [s.name for s in chosen(["in_graph", "serial"])] == ["serial", "in_graph"]


@pytest.mark.parametrize("backend", ["torch", "jax"])
def test_backends_agree_with_themselves_behind_every_strategy(backend: str) -> None:
    group = Group(backend, partial(open_backend, backend, "cpu"), SMALL, chosen([]), LITTLE, Meter())
    try:
        (result,) = measure([(group, SMALL)])
    finally:
        group.close()
    left_out = {
        "torch": {"fresh_staging", "donation_only", "copied_tables", "cut", "word", "node"},
        "jax": {"fresh_staging", "by_value", "node"},
    }
    assert set(result.unavailable) == left_out[backend]
    assert all(found.bubble is not None for found in result.strategies.values())
    assert result.no_barrier_latency is not None


def test_cases_that_differ_in_table_rows_alone_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    round_ = Measurement.round

    def noted(self: Measurement) -> None:
        turns.append(self.case.table_rows)
        round_(self)

    monkeypatch.setattr(Measurement, "round", noted)
    few, many = SMALL, replace(SMALL, table_rows=64)
    plan = BenchOptions(
        {"strict": partial(open_backend, "strict", "cpu")}, "cpu", [few, many], (), chosen(["in_graph"]), LITTLE
    )
    found = Found()
    run(plan, Meter(), found)
    assert turns == [8, 64] * LITTLE.rounds
    assert [result.case for result in found.cases] == [few, many]

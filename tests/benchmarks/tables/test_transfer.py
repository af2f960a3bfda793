"""Transfer: every network is a source for every other, and what a run is told."""

import pytest

from benchmarks.arms.contract import run_arm
from benchmarks.arms.phi_methods import learned
from benchmarks.problems.contract import make_pipeline
from benchmarks.tables.ours import transfer
from benchmarks.tables.registry import find_experiment
from metricopt.methods.known import KnownStatistics


def specs(tier):
    found = find_experiment("transfer").specs(tier, 1, None)
    return {(spec.block, spec.row, spec.column): spec for spec in found}


@pytest.mark.parametrize("tier", ["local", "smoke"])
def test_every_other_network_is_a_source(tier):
    names = set(transfer.networks(tier))
    for block in names:
        rows = {row for place, row, _ in specs(tier) if place == block}
        told = {row.removeprefix("phi-") for row in rows if row.startswith("phi-")}
        assert told == names - {block}
        assert {f"statistics-{name}" for name in told} < rows


def test_networks_of_both_pipelines_have_one_generator():
    found = specs("local")
    described = {
        make_pipeline(spec.pipeline, 0).recorded_seeds["adapter"]
        for (_, row, _), spec in found.items()
        if row == "metricopt"
    }
    assert len(described) == 1
    other = next(iter(found.values())).pipeline
    assert make_pipeline(other, 1).recorded_seeds["adapter"] not in described


def test_what_was_learned_elsewhere_is_kept_and_used():
    spec = specs("smoke")["tail", "statistics-digit-net", "f-macro"]
    source = make_pipeline(spec.arm.source, 0)
    known = learned(spec, source)
    assert isinstance(known, KnownStatistics)
    # Fifteen queries there; here five.
    assert 10 <= len(known.costs) <= 15
    again = learned(spec, make_pipeline(spec.arm.source, 0))
    assert again.costs.tolist() == known.costs.tolist()
    chosen = run_arm(spec, make_pipeline(spec.pipeline, 0))
    assert chosen.queries == 5
    assert chosen.notes["identified"] == 1

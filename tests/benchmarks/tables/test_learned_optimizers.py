"""Tables of optimizers: run at tier smoke with a few rows, planned at others."""

import pytest

from benchmarks.execution.networks import networks_of, prepare
from benchmarks.execution.runner import run_all
from benchmarks.problems.optimizers.learning import OptimizerLearning
from benchmarks.problems.optimizers.spec import OptimizerSpec
from benchmarks.report.page import write_report
from benchmarks.report.sections.learning_cost import LEARNING
from benchmarks.runs.codec import decode
from benchmarks.runs.notes import META_STEPS
from benchmarks.runs.store import RunStore
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.problems.data_variants import variants_are_full

COLUMNS = ("digit-8/f1", "digit-8/1T", "digit-8/2T")
"""A column of the one, and fine-tunings of two lengths of the other."""
SHOWN = {
    "tableS1": (
        "cross-entropy",
        "loss-only",
        "loss-only-powersign",
        "loss-only-dense",
        "lstm-optimizer",
        "metricopt-learned",
        "metricopt-learned-metric",
        "metricopt-learned-statistics",
        "metricopt-learned-smoothing-0.1",
        "metricopt-learned-twice-horizon",
    ),
    "optimizers": (
        "cross-entropy",
        "loss-only",
        "loss-only-adam",
        "mlp-optimizer",
        "loss-metricopt-mlp",
    ),
}
"""Some rows of every table."""


@pytest.mark.parametrize("name", SHOWN)
def test_a_table_runs_and_its_report_is_verified(
    name, shared_cache, tmp_path, monkeypatch
):
    experiment, store = find_experiment(name), RunStore(tmp_path / "runs")
    specs = [
        spec
        for spec in experiment.specs("smoke", None, True)
        if spec.row in SHOWN[name] and spec.column in COLUMNS
    ]
    prepare(specs)
    run_all(specs, store, workers=1)
    records = [store.get(spec) for spec in specs]
    assert {record.status for record in records} == {"done"}
    noting = {r.spec.row for r in records if META_STEPS in r.notes}
    learned = {s.row for s in specs if s.arm.kind == "learned-optimizer"}
    assert noting == learned < set(SHOWN[name])
    folder = tmp_path / "report"
    write_report(experiment.layout("smoke"), records, folder)
    assert LEARNING in (folder / "table.md").read_text(encoding="utf-8")


def test_three_optimizers_of_a_row_are_needed_at_tier_local(monkeypatch):
    variants_are_full(monkeypatch)
    specs = find_experiment("tableS1").specs("local", None, True)
    learned = [each for each in networks_of(specs) if isinstance(each, OptimizerSpec)]
    for spec in specs:
        if spec.arm.kind == "learned-optimizer" and not spec.replicate:
            wanted = decode(OptimizerLearning, spec.arm.settings)
            own = [
                each
                for each in learned
                if each.problem == spec.pipeline and each.learning == wanted
            ]
            assert len(own) == 3


def test_longer_runs_and_other_networks_take_the_optimizer_of_the_first_column(
    monkeypatch,
):
    variants_are_full(monkeypatch)
    specs = find_experiment("optimizers").specs("local", None, True)
    learned = [spec for spec in specs if spec.row == "mlp-optimizer"]
    assert {spec.budget.gradient_steps for spec in learned} == {50, 100, 250}
    assert {spec.arm.settings["steps"] for spec in learned} == {50}
    assert len({spec.column for spec in learned}) == 5
    needed = [each for each in networks_of(learned) if isinstance(each, OptimizerSpec)]
    # One for each replicate on tables, and two more for the one network on images.
    assert len(needed) == 3 + 2
    assert len({each.problem.settings["revision"] for each in needed}) == 1
    assert {each.problem for each in needed} == {learned[0].pipeline}


def test_no_logarithm_is_taken_of_a_loss_that_may_be_below_zero():
    specs = find_experiment("table2").specs("local", 1, True)
    found = {
        spec.row: decode(OptimizerLearning, spec.arm.settings).settings.objective
        for spec in specs
        if spec.arm.kind == "learned-optimizer"
    }
    terms = {row: objective.loss_term for row, objective in found.items()}
    assert terms == {
        "metricopt-learned": "log-ratio",
        "aucpr-metricopt-learned": "sum",
    }

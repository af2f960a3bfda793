"""Arms that choose phi: budgets, preparations that runs share, and settings."""

import functools
from dataclasses import replace

import pytest
import torch

from baselines.phi_methods.contract import RIVALS
from benchmarks.arms.contract import ARMS, run_arm, sees
from benchmarks.arms.diagnosis import _in_a_plane
from benchmarks.arms.phi_methods import make_method
from benchmarks.execution.runner import execute
from benchmarks.problems.choices import Adapted, Chosen, together
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.tabular.pipeline import BiasSettings
from benchmarks.rows.on_outputs import SHORT
from benchmarks.runs.artifacts import cache_kinds
from benchmarks.runs.record import VALUE_FUNCTION
from benchmarks.runs.spec import Arm
from benchmarks.runs.store import RunStore
from metricopt.algorithm1 import meta_preparation
from metricopt.algorithm1.metricopt import MetricOpt
from metricopt.errors import ConfigError
from metricopt.methods.contract import METHODS
from tests.benchmarks.arms.arm_cases import (
    METRICOPT,
    RECIPE,
    assert_values,
    metricopt_spec,
    record_of,
)
from tests.benchmarks.problems.pipeline_cases import (
    STEPS,
    make_spec,
    method_spec,
    tabular_unit,
)

ROWS = 2
SETTINGS = {
    "untouched": (0, {}),
    "loss-only": (0, {}),
    "loss-only-dense": (STEPS, {}),
    "random-search": (20, {}),
    "cma-es": (20, {}),
    "guided-cma": (20, {}),
    "metricopt": (80, METRICOPT),
    "metricopt-outputs": (16, SHORT),
    "metricopt-literal": (80, {"recipe": RECIPE, "steps": [0.1, 0.3]}),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_methods_stay_within_their_budget(name):
    queries, settings = SETTINGS[name]
    record = record_of(method_spec(name, queries, settings=settings))
    assert_values(record.values("observe"), ROWS)
    assert_values(record.values("test"), ROWS)
    assert record.shared_queries <= record.queries <= queries
    assert record.queries == queries or name.startswith("metricopt")
    assert 0 <= record.gradient_steps <= STEPS
    assert record.trace[-1].test["f1"] == record.values("test")
    for point in record.trace:
        assert_values(point.test["f1"], ROWS)
        assert point.queries <= queries
        if point.observe:
            assert_values(point.observe["f1"], ROWS)
    # Shared queries were made once, the others for every row.
    own = ROWS * (record.queries - record.shared_queries)
    assert sum(record.queried.values()) == own + record.shared_queries


def test_the_untouched_network_is_that_of_theta():
    spec = method_spec("untouched", metric="mcr")
    record = record_of(spec)
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    errors = []
    for split in (pipeline.splits.observe, pipeline.splits.test):
        with torch.no_grad():
            positive = pipeline.theta(split.inputs)[:, 0] > 0
        errors.append((positive != split.targets.bool()).double().mean().item())
    assert record.values("observe") == pytest.approx([errors[0]] * ROWS, abs=1e-6)
    assert record.values("test") == pytest.approx([errors[1]] * ROWS, abs=1e-6)


def test_a_run_is_the_same_when_its_value_function_is_read(monkeypatch):
    spec = metricopt_spec(replicate=2)
    made = record_of(spec)

    def fail(self, *arguments, **named):
        raise AssertionError("the value function was trained again")

    monkeypatch.setattr(MetricOpt, "prepare", fail)
    # Its seconds, too, are those of the training.
    assert record_of(spec) == made
    assert made.seconds[VALUE_FUNCTION] > 0


def test_runs_that_share_a_value_function_are_both_charged_for_it(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path))
    trained = []
    prepare = MetricOpt.prepare

    def counted(self, *arguments, **named):
        trained.append(prepare(self, *arguments, **named))
        return trained[-1]

    monkeypatch.setattr(MetricOpt, "prepare", counted)
    first = metricopt_spec(row="first")
    # It differs in what comes after the training alone.
    longer = replace(first, row="second", meta_tests=3)
    one, other = record_of(first), record_of(longer)
    (preparation,) = trained
    assert preparation.queries == 48
    assert one.queries == other.queries == 48 + 6
    assert one.shared_queries == other.shared_queries == 48 + 6
    assert one.queried == other.queried == {"observe": 48 + 6}
    assert one.seconds == other.seconds
    assert cache_kinds()["preparation"][0] == 1
    # Another metric or another network makes another one.
    record_of(replace(first, metric=replace(first.metric, name="mcr")))
    record_of(replace(first, pipeline=tabular_unit(sampling="natural")))
    assert len(trained) == cache_kinds()["preparation"][0] == 3


def test_a_run_may_have_several_value_functions(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path))
    one = record_of(metricopt_spec(replicate=1, diagnose=True))
    assert cache_kinds()["preparation"][0] == 1
    spec = metricopt_spec(replicate=1, diagnose=True, value_functions=3)
    several = record_of(spec)
    # The first is that of the other run; two more are trained, with noise of their own.
    assert cache_kinds()["preparation"][0] == 3
    assert_values(several.values("test"), 3 * ROWS)
    for split in ("observe", "test"):
        assert several.values(split)[:ROWS] == one.values(split)
    parts = [several.values("test")[at : at + ROWS] for at in (0, ROWS, 2 * ROWS)]
    assert len(set(map(tuple, parts))) > 1
    assert several.notes["spearman_loss"][0] == one.notes["spearman_loss"]
    assert (
        len(several.notes["spearman_loss"])
        == len(set(several.notes["spearman_loss"]))
        == 3
    )
    for point, first in zip(several.trace, one.trace, strict=True):
        assert (point.step, point.queries) == (first.step, first.queries)
        assert point.test["f1"][:ROWS] == first.test["f1"]
    # A row pays for one of them, the run for all.
    assert (several.queries, several.shared_queries) == (54, 54)
    assert several.queried == {"observe": 3 * 54}
    assert several.seconds[VALUE_FUNCTION] > one.seconds[VALUE_FUNCTION]


def test_several_value_functions_need_a_method_that_trains_one():
    spec = method_spec("cma-es", 20, value_functions=2)
    text = "cma-es trains nothing that its runs share, so one run cannot have 2 value"
    with pytest.raises(ConfigError, match=text):
        run_arm(spec, make_pipeline(spec.pipeline, spec.replicate))


def test_value_functions_of_one_run_cost_the_same():
    parts = [Chosen(Adapted(torch.zeros(1, 2)), queries=n) for n in (5, 7)]
    with pytest.raises(ConfigError, match="must cost the same queries and steps, got"):
        together(parts)


def test_a_value_function_is_not_shared_by_rows_that_train_differently():
    """More candidate steps leave fewer queries for meta-training."""
    for steps in ([0.4, 0.8], [0.1, 0.2, 0.4, 0.8]):
        settings = {"recipe": RECIPE | {"tasks": 60}, "steps": steps}
        record = record_of(method_spec("metricopt", 80, settings=settings, replicate=3))
        assert 70 < record.queries <= 80


def test_runs_that_prepare_something_are_known_before():
    prepares = ARMS.get("method").prepares
    assert prepares(metricopt_spec())
    assert not prepares(method_spec("cma-es", 20))
    assert not ARMS.get("network").prepares(make_spec(Arm("network", "any")))
    assert not ARMS.get("threshold-shift").prepares(make_spec(Arm("threshold-shift")))


def test_spending_more_than_the_budget_is_recorded_as_failed(tmp_path, monkeypatch):
    # As if the method had forgotten what choosing its step costs.
    monkeypatch.setattr(meta_preparation, "trial_queries", lambda steps: 0)
    settings = {"recipe": RECIPE | {"tasks": 60}, "steps": [0.4, 0.8]}
    spec = method_spec("metricopt", 80, settings=settings, replicate=4)
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    record = execute(spec, pipeline, RunStore(tmp_path), {})
    assert record.status == "failed"
    assert record.message == (
        "metricopt may spend 80 metric queries on one result, and spent 84"
    )


def test_settings_reach_the_method():
    settings = {
        "recipe": {"tasks": 3, "rollout": {"steps": 7}},
        "steps": [0.5],
        "optimizer": "adam",
    }
    found = make_method(Arm("method", "metricopt", settings))
    assert (found.recipe.tasks, found.recipe.rollout.steps) == (3, 7)
    assert found.recipe.rollout.observations == MetricOpt().recipe.rollout.observations
    assert (found.steps, found.optimizer) == ((0.5,), "adam")
    assert settings["recipe"] == {"tasks": 3, "rollout": {"steps": 7}}
    with pytest.raises(ConfigError, match=r"MetricOpt has no setting pace; known: rec"):
        make_method(Arm("method", "metricopt", {"pace": 1}))


def test_an_oracle_searches_on_test_and_says_so():
    spec = make_spec(Arm("oracle", "cma-es"), queries=20, meta_tests=ROWS)
    record = record_of(spec)
    assert record.queried == {"test": 20 * ROWS}
    assert record.trace[-1].observe == record.trace[-1].test
    assert record.values("test") == record.trace[-1].test["f1"]


@pytest.mark.parametrize(
    ("arm", "text"),
    [
        (Arm("magic"), r"unknown kind of arm 'magic'; known: class-offsets, .*, net"),
        (Arm("method", "magic"), r"unknown method 'magic'; known: "),
        (Arm("network", "magic"), r"unknown network method 'magic'; known: "),
    ],
)
def test_unknown_arms(arm, text):
    spec = make_spec(arm)
    with pytest.raises(ConfigError, match=text):
        run_arm(spec, make_pipeline(spec.pipeline, spec.replicate))


def test_a_method_that_does_not_suit_the_tasks_is_refused(monkeypatch):
    monkeypatch.setattr(MetricOpt, "suits", lambda self, task: False)
    spec = metricopt_spec()
    with pytest.raises(
        ConfigError, match="metricopt does not suit tasks of the pipeline tabular"
    ):
        run_arm(spec, make_pipeline(spec.pipeline, spec.replicate))


@pytest.mark.parametrize(
    ("arm", "expected"),
    [
        (Arm("method", "cma-es"), "metric values"),
        (Arm("method", "metricopt", METRICOPT), "loss gradients"),
        (Arm("method", "metricopt-outputs"), "outputs and labels"),
        (Arm("threshold-shift"), "outputs and labels"),
        (Arm("network", "learned-surrogate"), "outputs and labels"),
        (Arm("oracle", "cma-es"), "test"),
    ],
)
def test_every_arm_says_what_it_sees(arm, expected):
    assert sees(arm) == expected


def test_a_rival_has_a_name_of_its_own():
    assert not {*METHODS} & {*RIVALS}


RIVAL_RUNS = {
    "adaptive-surrogates": {},
    "dictionary": {"evaluations": 60},
    "lq-cma-es": {},
    "trust-region-bo": {"candidates": 50, "fit_steps": 2},
    "white-box": {"formula": "f1", "steps": 20},
}


def test_every_rival_has_a_run():
    assert {*RIVAL_RUNS} == {*RIVALS}


@pytest.mark.parametrize("name", RIVAL_RUNS)
@pytest.mark.parametrize("metric", ["f1", "mcr"])
def test_rivals_stay_within_their_budget(name, metric):
    spec = method_spec(name, 12, settings=RIVAL_RUNS[name], metric=metric)
    record = record_of(spec)
    assert_values(record.values("test"), ROWS)
    spent = {"dictionary": 4, "white-box": 0}.get(name, 12)
    assert record.queries == spent
    assert sum(record.queried.values()) == ROWS * spent
    assert record.trace[-1].test[metric] == record.values("test")
    observed = [point.observe[metric] for point in record.trace if point.observe]
    assert len(observed) >= (2 if spent else 0)
    untouched = record_of(method_spec("untouched", metric=metric))
    if spent:
        # The best observed phi is returned, and phi = 0 was observed.
        assert record.trace[-1].observe[metric] == record.values("observe")
        pairs = zip(record.values("observe"), untouched.values("observe"), strict=True)
        better = [(new - old) * (1 if metric == "f1" else -1) for new, old in pairs]
        assert min(better) >= 0


def test_a_rival_does_not_suit_every_task():
    pipeline = tabular_unit(adapter=BiasSettings(33))
    with pytest.raises(ConfigError, match="lq-cma-es does not suit tasks"):
        record_of(method_spec("lq-cma-es", 5, pipeline=pipeline))


STARTING = {
    "loss-only": {},
    "loss-only-dense": {},
    "metricopt": METRICOPT,
    "metricopt-adam": METRICOPT | {"optimizer": "adam"},
    "metricopt-literal": {"recipe": RECIPE, "steps": [0.1, 0.3]},
}


@functools.cache
def start_of(row):
    """What the meta-tests of a row are worth on test before their first step."""
    name = row.removesuffix("-adam")
    record = record_of(method_spec(name, 80, settings=STARTING[row], rows=5))
    assert record.trace[0].step == 0
    return record.trace[0].test["f1"]


@pytest.mark.parametrize("row", STARTING)
def test_the_meta_tests_of_all_rows_start_alike(row):
    assert start_of(row) == start_of("loss-only")
    assert len(set(start_of(row))) > 1


RANKED = {"spearman_loss", "spearman_guided", "loss_spearman"}
NAMES = RANKED | {"value_error_loss", "value_error_guided"}
POINTS = ("health_true", "health_predicted", "embedding_x", "embedding_cost")


def test_diagnosis_is_outside_the_budget_and_draws_in_replicate_0_only():
    spec = metricopt_spec(diagnose=True)
    found, plain = record_of(spec), record_of(metricopt_spec())
    notes = found.notes
    assert set(notes) >= NAMES and not set(plain.notes) & NAMES
    assert all(-1 <= notes[name] <= 1 for name in sorted(RANKED))
    # What both kinds of trajectories say together measures the gap between them.
    assert not set(notes) & {"spearman", "value_error"}
    assert "embedding_x" not in notes
    # The result is that of the run without it, and costs as much.
    assert (found.test, found.queried) == (plain.test, plain.queried)
    notes = record_of(replace(spec, replicate=0)).notes
    assert len({len(notes[name]) for name in POINTS}) == 1
    assert len(notes["path_steps"]) == len(notes["path_loss_cost"]) == 10


def test_a_dead_value_function_is_one_point():
    assert _in_a_plane(torch.ones(40, 3)).tolist() == [[0.0, 0.0]] * 40
    generator = torch.Generator().manual_seed(0)
    place = _in_a_plane(torch.randn(40, 3, generator=generator))
    assert place.shape == (40, 2) and bool(torch.isfinite(place).all())
    assert len(place.unique(dim=0)) == 40

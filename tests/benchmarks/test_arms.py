"""Arms: every kind of row gives an outcome of the right shape within its budget."""

import math
from dataclasses import replace

import pytest
import torch

from benchmarks import arms, tasks
from benchmarks.arms import build_method, run_arm
from benchmarks.problems import CANCER
from benchmarks.protocol import Arm, Place, method
from benchmarks.records import VALUE_FUNCTION, RunStore
from benchmarks.runner import execute, run_all
from benchmarks.tasks import bench_of
from benchmarks.uci import spec
from metricopt.errors import ConfigError, MetricError
from metricopt.methods import metricopt as metricopt_method
from metricopt.methods.metricopt import MetricOpt

STEPS = 50
ROWS = 2
RECIPE = {"tasks": 16, "block": 8}
SCHEDULE = (("epochs", 1), ("batch_size", 64))
METHODS = {
    "untouched": (0, {}),
    "loss-only": (0, {}),
    "loss-only-dense": (STEPS, {}),
    "random-search": (20, {}),
    "cma-es": (20, {}),
    "guided-cma": (20, {}),
    "metricopt": (80, {"recipe": RECIPE, "steps": [0.4, 0.8]}),
    "metricopt-literal": (80, {"recipe": RECIPE, "steps": [0.1, 0.3]}),
}
NETWORKS = {
    "surrogate-loss": Arm(
        "network",
        "surrogate-loss",
        settings=(("loss", "lovasz-softmax"), ("pretrain_epochs", 1)),
        schedule=SCHEDULE,
    ),
    "learned-surrogate": Arm("network", "learned-surrogate", schedule=SCHEDULE),
    "cost-sensitive": Arm(
        "network", "cost-sensitive", schedule=SCHEDULE, from_theta=True
    ),
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    """Share theta and parsed data between these tests, and with nothing else."""
    cache = tmp_path_factory.getbasetemp() / "arms-cache"
    monkeypatch.setenv("METRICOPT_CACHE", str(cache))
    tasks._bench.cache_clear()
    torch.set_num_threads(1)


def make_spec(arm, *, metric="f1", replicate=1, row="row"):
    """Return the spec of a short run on 569 examples."""
    place = Place("table3", "smoke", "balanced", row, metric, replicate)
    found = spec(place, CANCER, "full", arm)
    settings = dict(found.settings)
    settings["backbone"] = settings["backbone"] | {"epochs": 2}
    return replace(found, settings=settings)


def method_arm(name, queries, settings, **options):
    return Arm(*method(name, **settings), queries=queries, meta_tests=ROWS, **options)


def assert_values(values, count):
    assert len(values) == count
    assert all(0.0 <= value <= 1.0 for value in values)
    assert all(value == round(value, 6) for value in values)


@pytest.mark.parametrize("name", METHODS)
def test_methods_stay_within_their_budget(name):
    queries, settings = METHODS[name]
    outcome = run_arm(make_spec(method_arm(name, queries, settings)))
    assert_values(outcome.observe, ROWS)
    assert_values(outcome.test, ROWS)
    assert outcome.shared_queries <= outcome.queries <= queries
    assert outcome.queries == queries or name.startswith("metricopt")
    assert 0 <= outcome.gradient_steps <= STEPS
    assert outcome.trace[-1]["test"] == outcome.test
    for point in outcome.trace:
        assert_values(point["test"], ROWS)
        assert point["queries"] <= queries
        if point["observe"] is not None:
            assert_values(point["observe"], ROWS)


def test_the_untouched_network_is_that_of_theta():
    outcome = run_arm(make_spec(method_arm("untouched", 0, {}), metric="mcr"))
    bench = bench_of(dict(make_spec(Arm("method"), metric="mcr").settings), 1)
    errors = []
    for split in (bench.splits.observe, bench.splits.test):
        with torch.no_grad():
            positive = bench.theta(split.inputs)[:, 0] > 0
        errors.append((positive != split.targets.bool()).double().mean().item())
    assert outcome.observe == pytest.approx([errors[0]] * ROWS, abs=1e-6)
    assert outcome.test == pytest.approx([errors[1]] * ROWS, abs=1e-6)


@pytest.mark.parametrize("row", NETWORKS)
def test_network_methods(row):
    outcome = run_arm(make_spec(NETWORKS[row]))
    assert_values(outcome.observe, 1)
    assert_values(outcome.test, 1)
    assert outcome.gradient_steps > 0
    assert outcome.trace == []


def test_a_network_method_does_not_depend_on_what_ran_before():
    found = make_spec(NETWORKS["cost-sensitive"])
    alone = run_arm(found)
    tasks._bench.cache_clear()
    # Its bench now has an adapter, and so a frozen form of theta.
    run_arm(make_spec(method_arm("random-search", 4, {})))
    assert run_arm(found) == alone


def test_threshold_shift_is_the_best_of_all_thresholds():
    outcome = run_arm(make_spec(Arm("threshold-shift")))
    untouched = run_arm(make_spec(method_arm("untouched", 0, {})))
    assert_values(outcome.observe, 1)
    assert_values(outcome.test, 1)
    # One query more than there are examples to observe.
    assert outcome.queries <= 57 + 1
    assert outcome.observe[0] >= untouched.observe[0]
    assert math.isfinite(outcome.notes["threshold"])


def test_diagnosis_is_outside_the_budget_and_draws_in_replicate_0_only():
    _, settings = METHODS["metricopt"]
    arm = method_arm("metricopt", 80, settings, diagnose=True)
    notes = run_arm(make_spec(arm)).notes
    plain = run_arm(make_spec(method_arm("metricopt", 80, settings)))
    names = {"spearman", "spearman_loss", "spearman_guided"}
    assert names <= set(notes) and not names & set(plain.notes)
    assert all(-1 <= notes[name] <= 1 for name in sorted(names))
    assert "embedding_x" not in notes
    notes = run_arm(make_spec(arm, replicate=0)).notes
    sizes = {
        len(notes[name])
        for name in ("health_true", "health_predicted", "embedding_x", "embedding_cost")
    }
    assert len(sizes) == 1


def test_a_run_is_the_same_when_its_value_function_is_read(monkeypatch):
    _, settings = METHODS["metricopt"]
    found = make_spec(method_arm("metricopt", 80, settings), replicate=2)
    made = run_arm(found)

    def fail(self, task, budget, generator):
        raise AssertionError("the value function was trained again")

    monkeypatch.setattr(MetricOpt, "train", fail)
    tasks._bench.cache_clear()
    # Its seconds, too, are those of the training.
    assert run_arm(found) == made
    assert made.seconds[VALUE_FUNCTION] > 0


def test_a_value_function_is_not_shared_by_rows_that_train_differently():
    """More candidate steps leave fewer queries for meta-training."""
    for steps in ([0.4, 0.8], [0.1, 0.2, 0.4, 0.8]):
        settings = {"recipe": RECIPE | {"tasks": 60}, "steps": steps}
        outcome = run_arm(make_spec(method_arm("metricopt", 80, settings), replicate=3))
        assert 70 < outcome.queries <= 80


def test_spending_more_than_the_budget_is_recorded_as_failed(tmp_path, monkeypatch):
    def trial_queries(steps):
        return 0

    # As if the method had forgotten what choosing its step costs.
    monkeypatch.setattr(metricopt_method, "trial_queries", trial_queries)
    monkeypatch.setattr(
        metricopt_method, "choose_step", lambda task, steps, finetune: (steps[0], 9)
    )
    settings = {"recipe": RECIPE | {"tasks": 60}, "steps": [0.4, 0.8]}
    found = make_spec(method_arm("metricopt", 80, settings), replicate=4)
    record = execute(found, RunStore(tmp_path))
    assert record.status == "failed"
    assert record.message.startswith("metricopt may spend 80 metric queries, and spent")


def test_settings_reach_the_method():
    settings = {
        "recipe": {"tasks": 3, "rollout": {"steps": 7}},
        "steps": [0.5],
        "optimizer": "adam",
    }
    found = build_method("metricopt", settings)
    assert (found.recipe.tasks, found.recipe.rollout.steps) == (3, 7)
    assert found.recipe.rollout.observations == MetricOpt().recipe.rollout.observations
    assert (found.steps, found.optimizer) == ((0.5,), "adam")
    assert settings["recipe"] == {"tasks": 3, "rollout": {"steps": 7}}


@pytest.mark.parametrize(
    ("arm", "text"),
    [
        (Arm("magic"), r"unknown kind of arm 'magic'; known: method, oracle, "),
        (Arm("method", "magic"), r"unknown method 'magic'; known: "),
        (Arm("network", "magic"), r"unknown network method 'magic'; known: "),
    ],
)
def test_unknown_arms(arm, text):
    with pytest.raises(ConfigError, match=text):
        run_arm(make_spec(arm))


def test_done_runs_are_recorded(tmp_path):
    found = make_spec(method_arm("random-search", 20, {}))
    store = RunStore(tmp_path)
    record = execute(found, store)
    assert record.finished and store.get(found) == record
    assert (record.queries, len(record.test)) == (20, ROWS)
    assert record.data["variant"] == "breast_cancer"
    assert record.environment["torch"] == torch.__version__.split("+")[0]
    assert set(record.seeds) == {"split", "theta", "adapter"}
    assert record.seconds["total"] >= 0


def test_a_diverging_run_is_recorded_as_such(tmp_path):
    arm = Arm("network", "surrogate-loss", schedule=(("learning_rate", 1e30),))
    arm = replace(arm, settings=(("loss", "lovasz-softmax"), ("pretrain_epochs", 0)))
    found = make_spec(arm)
    record = execute(found, RunStore(tmp_path))
    assert record.status == "diverged", record.message
    assert "loss" in record.message
    assert not record.finished and record.test == []
    # It is not run again.
    assert run_all([found], RunStore(tmp_path), workers=1) == []


def test_a_failing_metric_is_recorded_as_such(tmp_path, monkeypatch):
    def broken(settings):
        metric = tasks.metric_of(settings)

        def values(outputs, targets):
            raise MetricError("metric f1 returned nan, expected a number in [0, 1]")

        monkeypatch.setattr(metric, "values", values)
        return metric

    monkeypatch.setattr(arms, "metric_of", broken)
    found = make_spec(method_arm("random-search", 20, {}), row="broken")
    store = RunStore(tmp_path)
    record = execute(found, store)
    assert record.status == "failed"
    assert record.message == "metric f1 returned nan, expected a number in [0, 1]"
    assert store.get(found) == record


def test_a_budget_too_small_is_recorded_as_failed(tmp_path):
    record = execute(make_spec(method_arm("metricopt", 5, {})), RunStore(tmp_path))
    assert record.status == "failed"
    assert record.message.startswith("a budget of 5 queries, ")

"""Pipelines of episodes: what runs are judged by."""

from dataclasses import replace

import pytest
import torch

from benchmarks.arms.contract import run_arm
from benchmarks.arms.learners import nearest_class_mean
from benchmarks.execution.runner import judge
from benchmarks.problems.choices import OnEpisodes
from benchmarks.problems.contract import SealedError, make_pipeline
from benchmarks.problems.episodes.metrics import SquaredError, TaskAccuracy
from benchmarks.problems.episodes.tiers import images
from benchmarks.runs.notes import (
    GRADIENT_NORM,
    INNER_STEPS,
    QUERY_ACCURACY,
    QUERY_STEPS,
    SUPPORT_LOSS,
    TASK_DIVERGED,
    TRAINED_STEPS,
)
from benchmarks.runs.paths import cache_root
from benchmarks.runs.spec import Arm, Unit
from metricopt.errors import ConfigError
from metricopt.geometry.parameters import dot
from tests.benchmarks.problems.episodes.learning_cases import DRAWN, WAVES, learner_run

NAN = float("nan")


@pytest.fixture(autouse=True)
def cache(tmp_path_factory, monkeypatch):
    """A cache that the tests of this file share."""
    folder = tmp_path_factory.getbasetemp() / "learners"
    monkeypatch.setenv("METRICOPT_CACHE", str(folder))


def outcome(spec):
    pipeline = make_pipeline(spec.pipeline, spec.replicate)
    return judge(run_arm(spec, pipeline), spec, pipeline), pipeline


def test_a_learner_has_a_value_for_every_new_task_as_a_naive_loop_gives_it():
    found, pipeline = outcome(learner_run(DRAWN))
    learner = pipeline.theta.network
    expected = []
    for number in range(3):
        episodes = pipeline.source.batch("test", [number])
        support, query = (part for part in next(episodes.one_by_one()))
        phi = dict(learner.network.named_parameters())
        for _ in range(2):
            loss = torch.nn.functional.cross_entropy(
                torch.func.functional_call(learner.network, phi, (support[0],)),
                support[1],
            )
            steps = torch.autograd.grad(loss, [*phi.values()])
            phi = {
                name: weight - 0.1 * step
                for (name, weight), step in zip(phi.items(), steps, strict=True)
            }
        outputs = torch.func.functional_call(learner.network, phi, (query[0],))
        expected.append(float((outputs.argmax(1) == query[1]).float().mean()))
    assert found["test"]["task-accuracy"] == pytest.approx(expected, abs=1e-6)
    assert found["test"][TASK_DIVERGED] == [0.0, 0.0, 0.0]
    # Validated on two episodes, which are no tests.
    assert len(found["observe"]["task-accuracy"]) == 2
    assert found["notes"][TRAINED_STEPS] == 2 and not found["queried"]


def test_tasks_that_diverge_are_counted_and_wrong():
    wild = replace(DRAWN, learner=Unit("maml", {"rate": 1e10, "steps": 3}))
    with pytest.warns(UserWarning, match="meta-gradient was not finite"):
        test = outcome(learner_run(wild))[0]["test"]
    diverged = torch.tensor(test[TASK_DIVERGED]) == 1
    accuracy = torch.tensor(test["task-accuracy"])
    assert diverged.any() and not accuracy[diverged].any()


def test_all_rows_meet_the_same_tasks_and_replicates_others():
    runs = [learner_run(DRAWN), learner_run(replace(DRAWN, learner=None))]
    sources = [make_pipeline(run.pipeline, 0).source for run in runs]
    first, second = (source.batch("test", range(3)) for source in sources)
    assert torch.equal(first.query_inputs, second.query_inputs)
    other = make_pipeline(runs[0].pipeline, 1).source.batch("test", range(3))
    assert not torch.equal(first.query_inputs, other.query_inputs)


def test_what_is_not_trained_has_no_prerequisite_and_no_network():
    found, pipeline = outcome(learner_run(replace(DRAWN, learner=None)))
    assert not pipeline.prerequisites and not pipeline.network_data
    assert pipeline.forecast() is None and len(found["test"]["task-accuracy"]) == 3


def test_the_nearest_class_mean_is_the_one_of_a_naive_loop():
    episodes = make_pipeline(learner_run(DRAWN).pipeline, 0).source.batch(
        "test", [0, 1]
    )
    scores = nearest_class_mean(episodes)
    assert scores.shape == (2, 6, 3)
    for at in range(2):
        for place, query in enumerate(episodes.query_inputs[at]):
            distances = []
            for label in range(3):
                own = episodes.support_targets[at] == label
                mean = episodes.support_inputs[at][own].mean(0)
                distances.append(float((query - mean).square().sum()))
            expected = torch.tensor(distances)
            torch.testing.assert_close(
                -scores[at, place], expected, rtol=1e-4, atol=1e-4
            )


def test_the_course_on_new_tasks_is_noted_step_by_step():
    spec = learner_run(DRAWN, Arm("learner", "maml", {"steps": 4}), pictured=True)
    found, pipeline = outcome(spec)
    notes, learner = found["notes"], pipeline.theta.network
    assert notes[INNER_STEPS] == notes[QUERY_STEPS] == [0, 1, 2, 3, 4]
    with torch.no_grad():
        paths = [
            learner.adapt(*support, steps=5)
            for support, _ in pipeline.source.batch("test", range(3)).one_by_one()
        ]
    for step in range(5):
        losses = torch.stack([path.losses[step] for path in paths])
        gradients = [path.gradients[step] for path in paths]
        norms = torch.stack([dot(each, each).sqrt() for each in gradients])
        assert notes[SUPPORT_LOSS][step] == pytest.approx(
            float(losses.median()), rel=1e-3
        )
        assert notes[GRADIENT_NORM][step] == pytest.approx(
            float(norms.median()), rel=1e-3
        )
    last = sum(found["test"]["task-accuracy"]) / 3
    assert notes[QUERY_ACCURACY][4] == pytest.approx(last, abs=1e-3)
    plain, _ = outcome(learner_run(DRAWN))
    assert SUPPORT_LOSS not in plain["notes"]
    assert plain["observe"]
    assert not found["observe"]


def test_more_steps_are_another_result_of_the_same_learner():
    runs = [
        learner_run(WAVES, Arm("learner", "maml", {"steps": steps})) for steps in (0, 9)
    ]
    (before, first), (after, second) = map(outcome, runs)
    assert first.theta.digest == second.theta.digest
    assert before["test"]["squared-error"] != after["test"]["squared-error"]


def test_tests_are_sealed_while_an_arm_runs():
    pipeline = make_pipeline(learner_run(DRAWN).pipeline, 0)
    choice = OnEpisodes(nearest_class_mean)
    metrics = {"task-accuracy": TaskAccuracy()}
    with pipeline.sealed():
        assert pipeline.evaluate([choice], "observe", metrics)
        for read in (
            lambda: pipeline.evaluate([choice], "test", metrics),
            lambda: pipeline.pictured(choice),
        ):
            with pytest.raises(SealedError, match="read once, by the runner"):
                read()


def test_a_plan_counts_the_images_that_the_cache_keeps():
    pipeline = make_pipeline(learner_run(DRAWN).pipeline, 0)
    assert pipeline.source.images
    (file,) = (cache_root() / "decoded").glob("drawn-classes-*.npy")
    # Before and after the images stand what the array is, and its digest.
    assert pipeline.decoded() == {"drawn-classes": file.stat().st_size - 128 - 32}
    official = make_pipeline(images("paper")[0].pipeline(), 0)
    assert official.decoded() == {"miniimagenet": 60_000 * 84 * 84 * 3}
    assert make_pipeline(learner_run(WAVES).pipeline, 0).decoded() == {}


def test_arms_run_on_pipelines_of_their_kind_alone():
    spec = learner_run(DRAWN, Arm("method", "random-search"))
    pipeline = make_pipeline(spec.pipeline, 0)
    with pytest.raises(ConfigError, match="'method' runs on a NetworkPipeline, got"):
        run_arm(spec, pipeline)


def test_an_output_that_is_not_finite_counts_as_wrong():
    outputs = torch.tensor([[2.0, 1.0], [NAN, 0.0], [0.0, torch.inf], [0.0, 1.0]])
    targets = torch.tensor([0, 0, 1, 1])
    assert TaskAccuracy().value(outputs, targets) == 0.5
    assert TaskAccuracy().value(outputs[[0, 3]], targets[[0, 3]]) == 1.0


def test_errors_are_squared_and_end_at_a_hundred():
    targets = torch.zeros(2, 1)
    assert SquaredError().value(torch.tensor([[1.0], [3.0]]), targets) == 5.0
    for wild in (NAN, torch.inf, 1e30, 11.0):
        assert SquaredError().value(torch.full((2, 1), wild), targets) == 100.0


def test_diverged_tasks_are_told():
    metric = make_pipeline(learner_run(DRAWN).pipeline, 0).metric(Unit(TASK_DIVERGED))
    targets = torch.tensor([0])
    assert metric.value(torch.tensor([[NAN, 1.0]]), targets) == 1.0
    assert metric.value(torch.tensor([[0.0, 1.0]]), targets) == 0.0

"""The loop: descent, clipping, schedules, the best state, steps left out."""

import math
import re

import pytest
import torch
from torch import nn

from metricopt.errors import (
    ConfigError,
    DataError,
    DivergedError,
    LossError,
    ShapeError,
)
from metricopt.fewshot import (
    Episodes,
    MetaLearner,
    MetaTraining,
    meta_train,
    query_outputs,
)
from metricopt.geometry import BlockIAF, Identity
from tests.metricopt.checkpoints.trainings import accuracy, same
from tests.metricopt.fewshot.drawn_episodes import (
    WAYS,
    blob_learner,
    blobs,
    line_learner,
    lines,
    perceptron,
)

SHORT = {"iterations": 6, "episodes": 2, "validate_every": 2, "save_every": 0}


def settings(**changes):
    return MetaTraining(**SHORT | changes)


@pytest.mark.parametrize("batching", ["loop", "vmap"])
def test_it_learns_to_learn(batching):
    learner = blob_learner(rate=0.03)
    before = accuracy(learner)
    found = meta_train(
        learner, blobs, settings(iterations=60, rate=0.01, batching=batching)
    )
    assert before < 0.6
    assert accuracy(learner) > 0.9
    assert len(found.losses) == len(found.gradient_norms) == found.kept == 60
    assert found.skipped == ()
    assert not learner.training


def test_a_step_is_that_of_the_optimizer_on_the_mean_query_loss():
    learner, other = line_learner(), line_learner()
    found = meta_train(learner, lines, settings(iterations=1, rate=0.1))
    losses = [other.query_loss(*each) for each in lines(range(2)).one_by_one()]
    mean = torch.stack(losses).mean()
    mean.backward()
    gradient = torch.cat([w.grad.flatten() for w in other.parameters()])
    torch.optim.Adam(other.parameters(), 0.1).step()
    assert found.losses[0] == pytest.approx(mean.item())
    assert found.gradient_norms[0] == pytest.approx(gradient.norm().item(), rel=1e-5)
    for weight, expected in zip(learner.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(weight, expected)


def test_the_map_may_have_a_rate_of_its_own():
    learner, other = line_learner(), line_learner()
    asked = settings(iterations=1, rate=0.1, geometry_rate=0.01)
    meta_train(learner, lines, asked)

    def longest(part):
        parts = (getattr(each, part).parameters() for each in (learner, other))
        return max((a - b).abs().max().item() for a, b in zip(*parts, strict=True))

    # The first step of Adam moves every weight by its rate.
    assert longest("network") == pytest.approx(0.1, rel=1e-3)
    assert longest("geometry") == pytest.approx(0.001, rel=1e-3)


def test_long_meta_gradients_are_clipped():
    learner, other = line_learner(Identity), line_learner(Identity)
    asked = settings(iterations=1, optimizer="sgd", rate=1.0, clip=0.01)
    found = meta_train(learner, lines, asked)
    pairs = zip(learner.parameters(), other.parameters(), strict=True)
    moved = torch.cat([(a - b).detach().flatten() for a, b in pairs]).norm()
    assert found.gradient_norms[0] > 0.1
    # Nesterov's first step is 1 + 0.9 gradients long.
    assert moved.item() == pytest.approx(0.019, rel=1e-3)


def test_rates_follow_their_schedule():
    cosine = settings(rate=2.0, schedule="cosine")
    steps = settings(rate=2.0, schedule="steps")
    expected = [1 + math.cos(math.pi * i / 6) for i in range(6)]
    assert [cosine.rate_at(i) for i in range(6)] == pytest.approx(expected)
    expected = [2, 2, 0.2, 0.2, 0.02, 0.02]
    assert [steps.rate_at(i) for i in range(6)] == pytest.approx(expected)
    assert settings(rate=2.0).rate_at(5) == 2


def test_the_state_of_the_highest_score_is_kept():
    scores, states = iter([math.nan, 0.5, 0.2]), {}

    def validate(learner):
        assert not learner.training
        states[len(states)] = {n: w.clone() for n, w in learner.state_dict().items()}
        return next(scores)

    learner = line_learner()
    found = meta_train(learner, lines, settings(), validate=validate)
    assert found.kept == 4
    assert list(found.validations) == [2, 4, 6]
    assert found.validations[4] == 0.5
    kept = learner.state_dict()
    assert all(torch.equal(kept[n], w) for n, w in states[1].items())
    assert not all(torch.equal(kept[n], w) for n, w in states[2].items())


def broken(numbers):
    """Lines, but the query of episode 5 is not finite."""
    found = lines(numbers)
    targets = found.query_targets.clone()
    targets[[n == 5 for n in numbers]] = math.inf
    return Episodes(*found.support, found.query_inputs, targets)


def test_a_meta_gradient_that_is_not_finite_is_skipped_and_counted():
    learner = line_learner()
    with pytest.warns(UserWarning, match="1 of 6 meta-steps were left out"):
        found = meta_train(learner, broken, settings())
    assert found.skipped == (2,)
    assert not math.isfinite(found.losses[2])
    assert not math.isfinite(found.gradient_norms[2])
    assert all(map(math.isfinite, found.losses[:2] + found.losses[3:]))
    assert all(bool(weight.isfinite().all()) for weight in learner.parameters())
    # The step was left out: the state is that of before.
    before = line_learner()
    meta_train(before, broken, settings(iterations=2))
    after = line_learner()
    with pytest.warns(UserWarning, match="1 of 3 meta-steps"):
        meta_train(after, broken, settings(iterations=3))
    assert same(after, before)


def test_a_training_without_any_step_is_an_error():
    message = "not finite 6 times in a row, up to iteration 5: the mean query loss"
    with pytest.raises(DivergedError, match=message):
        meta_train(line_learner(rate=1e12), lines, settings())


def test_states_of_other_trainings_are_refused(tmp_path):
    path = tmp_path / "state.pt"
    meta_train(line_learner(), lines, settings(), checkpoint=path)
    for learner, asked in (
        (line_learner(), settings(rate=0.5)),
        (line_learner(Identity), settings()),
        (line_learner(steps=2), settings()),
        (line_learner(lambda phi: BlockIAF(phi, scale="exp")), settings()),
    ):
        with pytest.raises(ConfigError, match="is of another meta-training; expected"):
            meta_train(learner, lines, asked, checkpoint=path)
    with pytest.raises(ConfigError, match="is of another meta-training; expected"):
        meta_train(
            line_learner(),
            lambda numbers: lines([1 + number for number in numbers]),
            settings(),
            checkpoint=path,
        )


def test_what_differs_from_another_training_is_all_that_is_said(tmp_path):
    path = tmp_path / "state.pt"
    meta_train(line_learner(), lines, settings(), checkpoint=path)
    with pytest.raises(ConfigError, match=r"; expected 'rate': .*, got 'rate': "):
        meta_train(line_learner(), lines, settings(rate=0.1), checkpoint=path)


def test_options_of_a_loss_tell_trainings_apart(tmp_path):
    path = tmp_path / "state.pt"

    def learner(delta):
        return MetaLearner(perceptron(1, 1), nn.HuberLoss(delta=delta))

    found = meta_train(learner(1.0), lines, settings(), checkpoint=path)
    with pytest.raises(ConfigError, match="is of another meta-training; expected"):
        meta_train(learner(2.0), lines, settings(), checkpoint=path)
    again = meta_train(learner(1.0), lines, settings(), checkpoint=path)
    assert again.losses == found.losses


def test_class_weights_of_a_loss_tell_trainings_apart(tmp_path):
    path = tmp_path / "state.pt"

    def learner(weight):
        module = nn.CrossEntropyLoss(weight=torch.tensor([1.0, weight, 1.0]))
        # Held by a function, the module is no part of the learner.
        return MetaLearner(perceptron(4, WAYS), lambda *given: module(*given))

    def trained(weight):
        return meta_train(learner(weight), blobs, settings(), checkpoint=path)

    found = trained(1.0)
    with pytest.raises(ConfigError, match=r"another meta-training; .* loss"):
        trained(2.0)
    assert trained(1.0).losses == found.losses


@pytest.mark.parametrize("after", [", options ", ", start "])
def test_a_state_of_a_version_that_knew_less_is_taken(after, tmp_path):
    path = tmp_path / "state.pt"
    found = meta_train(line_learner(), lines, settings(), checkpoint=path)
    state = torch.load(path)
    state["key"], unknown = state["key"].split(after)
    assert unknown
    torch.save(state, path)
    again = meta_train(line_learner(), lines, settings(), checkpoint=path)
    assert again.losses == found.losses


def test_the_first_episodes_are_drawn_twice_with_a_checkpoint(tmp_path):
    drawn = []

    def counted(numbers):
        drawn.append(numbers[0])
        return lines(numbers)

    path = tmp_path / "state.pt"
    found = meta_train(line_learner(), counted, settings(), checkpoint=path)
    assert drawn == [0, 0, 2, 4, 6, 8, 10]
    assert found.losses == meta_train(line_learner(), lines, settings()).losses
    drawn.clear()
    meta_train(line_learner(), counted, settings(), checkpoint=path)
    assert drawn == [0, 0]


def test_episodes_that_differ_from_call_to_call_are_refused(tmp_path):
    numbers = iter(range(0, 1_000, 10))

    def drawn(asked):
        return lines([next(numbers) for _ in asked])

    path = tmp_path / "state.pt"
    with pytest.raises(ConfigError, match="must always give the same episode"):
        meta_train(line_learner(), drawn, settings(), checkpoint=path)
    assert not path.exists()


def with_targets(change):
    """Blobs whose targets of the second episode are changed."""

    def changed(numbers):
        found = blobs(numbers)
        targets = [t.clone() for t in (found.support_targets, found.query_targets)]
        for each in targets:
            each[1] = change(each[1])
        return Episodes(
            found.support_inputs, targets[0], found.query_inputs, targets[1]
        )

    return changed


def reshaped(numbers):
    found = lines(numbers)
    return Episodes(found.support_inputs, found.support_targets[..., 0], *found.query)


def infinite(numbers):
    found = lines(numbers)
    return Episodes(
        found.support_inputs * math.nan, found.support_targets, *found.query
    )


def typed(inputs=torch.float32, targets=torch.int64):
    def made(numbers):
        found = blobs(numbers)
        return Episodes(
            found.support_inputs.to(inputs),
            found.support_targets.to(targets),
            found.query_inputs.to(inputs),
            found.query_targets.to(targets),
        )

    return made


@pytest.mark.parametrize(
    ("make", "episodes", "error", "message"),
    [
        (
            blob_learner,
            with_targets(lambda t: t + 1),
            DataError,
            "classes in [0, 2] for outputs [n, 3], got 0 to 3",
        ),
        (
            blob_learner,
            with_targets(lambda t: t - 1),
            DataError,
            "classes in [0, 2] for outputs [n, 3], got -1 to 2",
        ),
        (
            blob_learner,
            with_targets(lambda t: t.clamp(max=1)),
            ConfigError,
            "as many classes in its support: expected 3 as in the first one, got 2",
        ),
        (
            blob_learner,
            typed(targets=torch.int32),
            DataError,
            "targets that are classes must be int64, got int32 [6]: use",
        ),
        (
            blob_learner,
            typed(inputs=torch.float64),
            ConfigError,
            "the network must take float64 [6, 4], but raised RuntimeError: mat1",
        ),
        (
            blob_learner,
            typed(targets=torch.float32),
            LossError,
            "must take outputs float32 [6, 3] and targets float32 [6], but raised Runt",
        ),
        (line_learner, reshaped, ShapeError, "shape of the outputs [n, 1], got [3]"),
        (line_learner, infinite, DataError, "finite before any step, got nan"),
        (
            line_learner,
            lambda n: lines(n[:1]),
            ShapeError,
            "support of 2 episodes needs",
        ),
        (
            line_learner,
            lambda n: lines(n).tensors(),
            ConfigError,
            "the function of numbers returns must be Episodes(...)",
        ),
        (
            line_learner,
            lambda n: Episodes(*lines(n).support, *lines([0, 1, 2]).query),
            ShapeError,
            "the query of 2 episodes needs inputs and targets [2, n, ...]",
        ),
    ],
)
def test_episodes_of_no_use_are_refused_before_a_step(make, episodes, error, message):
    learner = make()
    with pytest.raises(error, match=re.escape(message)):
        meta_train(learner, episodes, settings())
    assert same(learner, make())


def test_ways_that_change_later_are_refused():
    def changing(numbers):
        return (with_targets(lambda t: t.clamp(max=1)) if numbers[0] else blobs)(
            numbers
        )

    with pytest.raises(ConfigError, match="expected 3 as in the first one, got 2"):
        meta_train(blob_learner(), changing, settings())


def test_a_learner_that_is_frozen_whole_has_nothing_to_learn():
    with pytest.raises(ConfigError, match="a learner needs something to learn, but"):
        meta_train(line_learner().requires_grad_(False), lines, settings())


@pytest.mark.parametrize("score", [None, torch.zeros(2), "high"])
def test_a_score_that_is_no_number_is_refused(score):
    with pytest.raises(ConfigError, match="validate must return a number, got"):
        meta_train(line_learner(), lines, settings(), validate=lambda _: score)


def test_outputs_are_made_one_by_one_or_all_at_once():
    with pytest.raises(ConfigError, match="batching must be one of"):
        query_outputs(blob_learner(), blobs([0]), batching="map")
    with pytest.raises(ConfigError, match=r"episodes must be Episodes\(\.\.\.\), got"):
        query_outputs(blob_learner(), blobs([0]).tensors())

"""The loop: it beats Adam, clips, skips, and goes back."""

import math
import re

import pytest
import torch
from torch.nn.utils import parameters_to_vector

from metricopt.errors import ConfigError, DivergedError, LossError, ShapeError
from metricopt.learned_optimizers import (
    MetricOptMLP,
    Objective,
    OptimizerTraining,
    mean_objective,
    train_optimizer,
)
from metricopt.learned_optimizers.metricopt_mlp import LOSS_INPUTS, SCALE_INPUTS
from tests.metricopt.learned_optimizers.quadratics import (
    Bare,
    Constant,
    Descent,
    Line,
    Quadratics,
    tuned_loss,
)

HORIZON = 20
LOSS_ALONE = Objective(metric_weight=0.0)
SHORT = {"iterations": 6, "pairs": 2, "validate_every": 2, "save_every": 0}


def settings(**changes):
    return OptimizerTraining(**SHORT | changes)


def mlp(seed=0, **changes):
    return MetricOptMLP(6, seed=seed, **changes)


def weights(optimizer):
    return parameters_to_vector(optimizer.parameters()).detach().clone()


def test_b11_it_beats_tuned_optimizers_on_held_out_tasks():
    learned = MetricOptMLP(HORIZON, LOSS_INPUTS + SCALE_INPUTS)
    asked = OptimizerTraining(
        iterations=300,
        pairs=8,
        deviation=0.03,
        objective=LOSS_ALONE,
        rate=3e-3,
        first_steps=10,
    )
    found = train_optimizer(
        learned, Bare, asked, held_out=Bare(range(20_000, 20_064)), show=False
    )
    tasks = Bare(range(10_000, 10_128))
    score = mean_objective(learned, tasks, LOSS_ALONE)
    kinds = {
        "sgd": torch.optim.SGD,
        "momentum": lambda phi, rate: torch.optim.SGD(phi, rate, 0.9),
        "adam": torch.optim.Adam,
    }
    for make in kinds.values():
        assert score < tuned_loss(make, tasks, HORIZON) - 0.5
    assert len(found.losses) == len(found.gradient_norms) == 300
    assert found.frozen == 0
    steps = sum(asked.length(iteration, HORIZON) for iteration in range(300))
    validated = 64 * HORIZON * len(found.validations)
    assert found.inner_steps == 16 * 2 * steps + validated
    # One learned on 8 coordinates moves 40.
    wide = Bare.__new__(Bare)
    made = [Bare._one(wide, number, 40) for number in range(16)]
    wide.start, wide.axes, wide.curvature = map(torch.stack, zip(*made, strict=True))
    assert mean_objective(learned, wide, LOSS_ALONE) < -1


def test_the_metric_is_improved_where_the_objective_has_it():
    learned, tasks = mlp(scale=0.3), Quadratics(range(500, 532))
    objective = Objective(metric_weight=50.0)
    before = mean_objective(learned, tasks, objective)
    train_optimizer(learned, Quadratics, settings(iterations=60, rate=0.01))
    assert mean_objective(learned, tasks, objective) < before - 1


def test_a_step_is_that_of_adam_on_a_clipped_gradient():
    # The objective of one step of phi <- phi + w from 1 is (1 + w)^2: slope 2 at 0.
    asked = settings(
        iterations=1,
        estimator="through-steps",
        deviation=0.0,
        objective=Objective(metric_weight=0.0, loss_term="sum"),
        rate=0.1,
    )
    learned = Constant(0.0, horizon=1)
    found = train_optimizer(learned, lambda n: Line(len(n)), asked)
    assert found.gradient_norms == (2.0,)
    assert found.losses == (1.0,)
    assert learned.weight.item() == pytest.approx(-0.1)


def test_gradients_longer_than_the_limit_are_scaled_down(monkeypatch):
    seen = []

    def step(adam):
        seen.extend(w.grad.item() for w in adam.param_groups[0]["params"])

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    for clip in (0.5, 100.0):
        asked = settings(
            iterations=1,
            estimator="through-steps",
            deviation=0.0,
            objective=Objective(metric_weight=0.0, loss_term="sum"),
            clip=clip,
        )
        train_optimizer(Constant(0.0, horizon=1), lambda n: Line(len(n)), asked)
    assert seen == pytest.approx([0.5, 2.0])


def test_runs_grow_to_the_horizon():
    asked = settings(iterations=100, first_steps=20, lengthening=0.2)
    lengths = [asked.length(i, 200) for i in (0, 10, 20, 99)]
    assert lengths == [20, 110, 200, 200]
    assert asked.length(0, 7) == 7
    assert settings(lengthening=0.0, first_steps=1).length(0, 9) == 9
    cut = settings(window=4)
    assert list(cut.windows(10)) == [4, 4, 2]
    assert list(settings().windows(10)) == [10]


def test_the_weights_are_updated_after_every_window():
    asked = settings(iterations=2, window=4, lengthening=0.0, estimator="persistent")
    found = train_optimizer(MetricOptMLP(10), Quadratics, asked)
    assert len(found.gradient_norms) == 2 * 3


def test_the_best_weights_are_kept_and_gone_back_to():
    # Rates of 4 and more diverge on a curvature of 1; Adam's steps are that long.
    learned = Descent(1.0, dtype=torch.float32)
    held_out = Bare(range(900, 916))
    asked = settings(
        iterations=12, objective=LOSS_ALONE, rate=60.0, validate_every=1, pairs=4
    )
    found = train_optimizer(learned, Bare, asked, held_out=held_out)
    scores = found.validations
    assert set(scores) == set(range(13))
    assert found.kept == min(scores, key=scores.get)
    assert found.restarts
    assert all(scores[i] > scores[0] for i in found.restarts)
    score = mean_objective(learned, held_out, LOSS_ALONE)
    assert score == pytest.approx(scores[found.kept], abs=1e-6)


class Rough(Bare):
    """Quadratics, but no second derivative is finite in the batch with number 4."""

    def __init__(self, numbers):
        super().__init__(numbers)
        self.bad = 4 in numbers

    def losses(self, phi, step):
        value = super().losses(phi, step)
        if not self.bad:
            return value
        # The value is finite, its second derivative is not.
        return value + (phi - phi.detach()).abs().pow(1.5).sum(-1)


def test_meta_gradients_that_are_not_finite_are_skipped_and_counted():
    asked = settings(estimator="through-steps", deviation=0.0, objective=LOSS_ALONE)
    learned = mlp(inputs=LOSS_INPUTS)
    with pytest.warns(UserWarning, match="1 of 6 meta-steps were left out"):
        found = train_optimizer(learned, Rough, asked)
    assert found.skipped == (2,)
    assert not math.isfinite(found.gradient_norms[2])
    assert all(map(math.isfinite, found.gradient_norms[:2] + found.gradient_norms[3:]))
    assert weights(learned).isfinite().all()


def test_a_training_without_any_step_is_an_error():
    def rough(numbers):
        return Rough([4] * len(numbers))

    asked = settings(estimator="through-steps", deviation=0.0, objective=LOSS_ALONE)
    with pytest.raises(DivergedError, match="not finite 6 times in a row, up to it"):
        train_optimizer(mlp(inputs=LOSS_INPUTS + SCALE_INPUTS), rough, asked)


class Hopeless(Bare):
    """Losses that are no number at any phi."""

    def losses(self, phi, step):
        return super().losses(phi, step) * torch.nan


def test_losses_that_are_no_numbers_from_the_start_are_said_to_be():
    asked = settings(objective=LOSS_ALONE)
    with pytest.raises(DivergedError, match="not finite at phi_0, before any step"):
        train_optimizer(mlp(inputs=LOSS_INPUTS + SCALE_INPUTS), Hopeless, asked)
    text = "held-out tasks must be finite before training, got nan"
    with pytest.raises(LossError, match=text):
        train_optimizer(
            mlp(inputs=LOSS_INPUTS), Bare, asked, held_out=Hopeless(range(2))
        )


class Overflowing(Bare):
    """Losses that are finite after the first step, and whose sum is not."""

    def losses(self, phi, step):
        return super().losses(phi, step).clamp(0.5, 1) * 3e38 ** min(step, 1)


def test_strategies_are_no_advice_to_who_uses_them():
    asked = settings(objective=Objective(metric_weight=0, loss_term="sum"))
    with pytest.raises(DivergedError) as caught:
        train_optimizer(mlp(inputs=LOSS_INPUTS + SCALE_INPUTS), Overflowing, asked)
    assert str(caught.value).endswith(
        "6 times in a row, up to iteration 5: use a smaller scale of steps, or a "
        "shorter horizon"
    )


def test_runs_that_were_stopped_are_counted():
    asked = settings(iterations=2, objective=LOSS_ALONE, deviation=1e-3)
    learned = Descent(1e38, horizon=6, dtype=torch.float32)
    learned.forward = lambda seen, state: (seen.phi * 1e30, state)
    found = train_optimizer(learned, Bare, asked)
    assert found.frozen == 2 * 2 * 4


def test_other_seeds_draw_other_noise():
    first, other = mlp(), mlp()
    train_optimizer(first, Quadratics, settings())
    train_optimizer(other, Quadratics, settings(seed=1))
    assert not torch.equal(weights(first), weights(other))


def test_states_of_other_trainings_are_refused(tmp_path):
    path = tmp_path / "state.pt"
    train_optimizer(mlp(), Quadratics, settings(), checkpoint=path)
    for learned, asked in (
        (mlp(), settings(rate=0.5)),
        (mlp(scale=0.2), settings()),
        (MetricOptMLP(7), settings()),
    ):
        with pytest.raises(ConfigError, match="is of another meta-training; expected"):
            train_optimizer(learned, Quadratics, asked, checkpoint=path)


class Steeper(Quadratics):
    """The same starts, and losses that are twice as high."""

    def losses(self, phi, step):
        return 2 * super().losses(phi, step)


HELD_OUT = Quadratics(range(900, 904))


@pytest.mark.parametrize(
    ("tasks", "held_out"),
    [
        (Steeper, HELD_OUT),
        (lambda numbers: Quadratics([n + 50 for n in numbers]), HELD_OUT),
        (Quadratics, Steeper(range(900, 904))),
        (Quadratics, Quadratics(range(901, 905))),
    ],
)
def test_a_state_of_other_tasks_is_refused(tasks, held_out, tmp_path):
    path = tmp_path / "state.pt"
    train_optimizer(
        mlp(), Quadratics, settings(), held_out=HELD_OUT, checkpoint=path, show=False
    )
    part = "held out" if tasks is Quadratics else "tasks"
    with pytest.raises(ConfigError, match=rf"expected {part} \w+, got {part} \w+:"):
        train_optimizer(
            mlp(), tasks, settings(), held_out=held_out, checkpoint=path, show=False
        )


def test_a_state_of_a_version_that_did_not_look_at_tasks_is_taken(tmp_path):
    path, learned = tmp_path / "state.pt", mlp()
    found = train_optimizer(learned, Quadratics, settings(), checkpoint=path)
    state = torch.load(path)
    state["key"], *_ = state["key"].split(", tasks ")
    torch.save(state, path)
    again = mlp()
    assert train_optimizer(again, Quadratics, settings(), checkpoint=path) == found
    assert torch.equal(weights(again), weights(learned))


def test_a_checkpoint_draws_nothing_that_a_training_draws(tmp_path):
    class Drawing(Bare):
        """Losses with noise of torch's global generator."""

        def losses(self, phi, step):
            return super().losses(phi, step) * (1 + 0.1 * torch.rand(()))

    asked, found = settings(objective=LOSS_ALONE), []
    for path in (None, tmp_path / "state.pt"):
        learned = mlp(inputs=LOSS_INPUTS)
        torch.manual_seed(0)
        train_optimizer(learned, Drawing, asked, checkpoint=path)
        found.append(weights(learned))
    assert torch.equal(*found)


@pytest.mark.parametrize(
    ("tasks", "error", "message"),
    [
        (Bare, ConfigError, "Bare has no metric"),
        (lambda n: n, ConfigError, "tasks must be InnerTasks from the function of"),
        (
            lambda n: Quadratics([0]),
            ShapeError,
            "the starts of 2 tasks must have shape [2, d], got [1, 8]",
        ),
        (
            lambda n: Quadratics(n, dtype=torch.float16),
            ConfigError,
            "the starts of tasks must be float32 or float64, got float16",
        ),
        (
            lambda n: Quadratics(n, dtype=torch.float64),
            ConfigError,
            "the starts of tasks must be float32 like the weights of the learned",
        ),
    ],
)
def test_tasks_of_no_use_are_refused(tasks, error, message):
    learned = mlp()
    with pytest.raises(error, match=re.escape(message)):
        train_optimizer(learned, tasks, settings())
    assert torch.equal(weights(learned), weights(mlp()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"iterations": 0}, "meta-training needs iterations >= 1, got iterations=0"),
        ({"tasks": 1.5}, "tasks must be a whole number, got 1.5"),
        ({"pairs": 0}, "pairs >= 1, got pairs=0"),
        ({"window": 0}, "window >= 1, got window=0"),
        ({"window": "all"}, "window must be a whole number, got 'all'"),
        ({"rate": 0.0}, "rate > 0, got rate=0.0"),
        ({"estimator": "es"}, "estimator must be one of 'strategies', 'persistent'"),
        ({"order": "second"}, "order must be one of 'first', 'full', got 'second'"),
        ({"objective": 1}, "objective must be an Objective(...), got 1"),
        ({"deviation": 0.0}, "'strategies' needs deviation > 0, got deviation=0"),
        ({"deviation": -0.1}, "deviation >= 0, got deviation=-0.1"),
        ({"estimator": "merged", "window": 5}, "'merged' needs window=None, got"),
        ({"estimator": "persistent"}, "'persistent' needs a window, got None"),
        (
            {"estimator": "merged", "tasks": 1, "pairs": 1},
            "needs two pairs in all to know a variance, got tasks=1 and pairs=1",
        ),
    ],
)
def test_a_setting_out_of_its_range_is_named(changes, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        OptimizerTraining(**changes)


class Rewards(Bare):
    """Quadratics whose losses are below 0."""

    def losses(self, phi, step):
        return super().losses(phi, step) - 100


def test_losses_below_zero_are_warned_of_where_logarithms_are_taken():
    learned = mlp(inputs=LOSS_INPUTS + SCALE_INPUTS)
    with pytest.warns(UserWarning, match="2 of 2 losses are below 0 at phi_0"):
        train_optimizer(learned, Rewards, settings(iterations=1, objective=LOSS_ALONE))
    summed = Objective(metric_weight=0, loss_term="sum")
    found = train_optimizer(learned, Rewards, settings(iterations=1, objective=summed))
    assert found.gradient_norms[0] > 0


def test_what_is_no_training_is_refused():
    frozen = mlp(inputs=LOSS_INPUTS)
    next(frozen.parameters()).requires_grad_(False)
    for optimizer, given, said in (
        (frozen, {}, "trains all weights"),
        (mlp(), {"tasks": Bare(range(2))}, "a function from numbers to InnerTasks"),
        (mlp(), {"settings": OptimizerTraining}, r"pass OptimizerTraining\(...\)"),
        (mlp(), {"held_out": Bare}, "held_out must be InnerTasks, made"),
    ):
        with pytest.raises(ConfigError, match=said):
            train_optimizer(optimizer, **{"tasks": Bare, **given})
    for make in (
        lambda: OptimizerTraining(rate=None),
        lambda: Objective(metric_weight=None),
    ):
        with pytest.raises(ConfigError, match="got None"):
            make()

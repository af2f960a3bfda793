"""The mini-batch loop: it learns, keeps the best epoch, repeats, and stops in time."""

import pytest
import torch
from torch import nn

from baselines.fitting import CHUNK, Recipe, Schedule, fit, predict
from baselines.losses import LOSSES
from metricopt.errors import ConfigError, DataError, DivergedError
from metricopt.metrics import make_metric
from metricopt.sampling import Split
from metricopt.seeding import make_generator

CROSS_ENTROPY = LOSSES.get("cross-entropy")


def schedule(**changes):
    settings = {"epochs": 8, "batch_size": 32, "learning_rate": 0.02, "balanced": True}
    return Schedule(**(settings | changes))


def run(network, data, *, loss=CROSS_ENTROPY, seed="a", on_epoch=None, **changes):
    recipe = Recipe(loss, schedule(**changes), on_epoch)
    generator = make_generator(seed)
    return fit(network, data.train, data.observe, recipe=recipe, generator=generator)


@pytest.mark.parametrize("balanced", [True, False])
def test_learns(network, data, balanced):
    run(network, data, balanced=balanced)
    outputs = predict(network, data.test.inputs)
    assert make_metric("f1").value(outputs, data.test.targets) > 0.93
    assert not network.training


def test_best_epoch_is_kept_and_callbacks_see_every_one(network, data):
    epochs = []
    best = run(network, data, on_epoch=epochs.append, balanced=False)
    scores = [epoch.observe_score for epoch in epochs]
    assert [epoch.number for epoch in epochs] == list(range(1, 9))
    assert best.score == min(scores)
    assert best.epoch == scores.index(min(scores)) + 1
    kept = CROSS_ENTROPY(predict(network, data.observe.inputs), data.observe.targets)
    assert float(kept) == pytest.approx(best.score, rel=1e-6)


def test_last_epoch_is_kept_on_request(network, data):
    rate = {"learning_rate": 0.3, "keep_best": False, "balanced": False}
    epochs = []
    best = run(network, data, on_epoch=epochs.append, **rate)
    assert (best.epoch, best.score) == (8, epochs[-1].observe_score)
    kept = CROSS_ENTROPY(predict(network, data.observe.inputs), data.observe.targets)
    assert float(kept) == pytest.approx(best.score, rel=1e-6)


def test_same_seed_same_weights_whatever_the_global_state(network, data):
    results = []
    start = {name: value.clone() for name, value in network.state_dict().items()}
    for seed, noise in (("a", 1), ("a", 2), ("b", 1)):
        network.load_state_dict(start)
        torch.manual_seed(noise)
        before = torch.get_rng_state()
        run(network, data, seed=seed, epochs=2)
        assert torch.equal(torch.get_rng_state(), before)
        results.append(predict(network, data.test.inputs))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_divergence_is_reported_and_the_last_good_state_kept(network, data):
    calls = 0
    kept = []

    def fails_in_third_epoch(outputs, targets):
        nonlocal calls
        calls += 1
        loss = CROSS_ENTROPY(outputs, targets)
        return loss * float("nan") if calls == 25 else loss

    def keep(_epoch):
        kept.append({k: v.clone() for k, v in network.state_dict().items()})

    with pytest.raises(
        DivergedError, match=r"became nan in epoch 3; .* its state after epoch 2"
    ):
        run(network, data, loss=fails_in_third_epoch, on_epoch=keep, keep_best=False)
    assert len(kept) == 2
    for name, value in network.state_dict().items():
        assert torch.equal(value, kept[-1][name])
    assert not network.training


def test_balanced_batches_need_two_classes(network, data):
    ones = Split(data.train.inputs, torch.ones_like(data.train.targets))
    recipe = Recipe(CROSS_ENTROPY, schedule())
    with pytest.raises(DataError, match=r"at least two classes, got only class \[1\]"):
        fit(network, ones, data.observe, recipe=recipe, generator=make_generator(0))


def test_weight_decay_shrinks_the_weights(data):
    norms = []
    for decay in (0.0, 1.0):
        network = nn.Linear(30, 1)
        nn.init.ones_(network.weight)
        run(network, data, weight_decay=decay, keep_best=False)
        norms.append(network.weight.norm().item())
    assert norms[1] < 0.5 * norms[0]


@pytest.mark.parametrize(
    "change", [{"epochs": 0}, {"batch_size": 1}, {"learning_rate": 0.0}]
)
def test_bad_schedules_are_named(change):
    name, value = next(iter(change.items()))
    with pytest.raises(ConfigError, match=f"got .*{name}={value}"):
        schedule(**change)


def test_steps_cover_the_split_about_once():
    assert schedule().steps_per_epoch(330) == 10
    assert schedule().steps_per_epoch(5) == 1


def test_predict_in_chunks_equals_one_pass():
    network = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
    inputs = torch.randn(CHUNK + 5, 2, generator=make_generator(0))
    actual = predict(network, inputs)
    assert not actual.requires_grad
    torch.testing.assert_close(actual, network.eval()(inputs).detach())

"""The training loop: it learns, keeps the best epoch, repeats, and stops in time."""

import math

import pytest
import torch
from torch import nn

from baselines.losses.cross_entropy import cross_entropy
from baselines.training import prediction
from baselines.training.loop import Hooks, train
from baselines.training.optimization import Training
from baselines.training.prediction import CHUNK, predict, predict_examples
from baselines.training.randomness import GlobalRandomness, draws_globally
from metricopt.errors import DivergedError
from metricopt.losses.contract import RowLoss
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import BalancedSampler, Split
from tests.baselines.toy_images import ToyImages, image_network
from tests.baselines.training.runs import image_run, make_run, same, weights

IMAGE_TRAINING = Training(
    3,
    0.05,
    optimizer="sgd",
    weight_decay=5e-4,
    warm_up=0.25,
    precision="bfloat16",
    channels_last=True,
    keep_best=False,
)


def plain_loop(network, data, *, balanced, epochs, rate):
    """What the loop does with its default settings, step by step."""
    generator = make_generator("a")
    kind = BalancedSampler(data.train.targets, 32)
    optimizer = torch.optim.Adam(network.parameters(), lr=rate, fused=True)
    rates = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, rate, total_steps=10 * epochs
    )
    observe = data.observe
    if balanced:
        sampler = BalancedSampler(observe.targets, len(observe))
        (index,) = sampler.draw(1, generator)
        observe = Split(observe.inputs[index], observe.targets[index])
    seed = int(torch.randint(2**62, (), generator=generator))
    scores = []
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        for _ in range(epochs):
            drawn = (
                kind.draw(10, generator)
                if balanced
                else torch.randint(len(data.train), (10, 32), generator=generator)
            )
            network.train()
            for index in drawn:
                outputs = network(data.train.inputs[index])
                loss = cross_entropy(outputs, data.train.targets[index])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                rates.step()
            network.eval()
            with torch.no_grad():
                found = cross_entropy(network(observe.inputs), observe.targets)
            scores.append(float(found))
    return scores


@pytest.mark.parametrize("balanced", [True, False])
def test_equals_a_plain_loop_to_the_bit(network, data, balanced):
    start, epochs = weights(network), []
    run = make_run(network, data, balanced=balanced, epochs=3, keep_best=False)
    train(run, hooks=Hooks(epochs.append))
    found = weights(network)
    network.load_state_dict(start)
    scores = plain_loop(network, data, balanced=balanced, epochs=3, rate=0.02)
    assert [epoch.observe_score for epoch in epochs] == scores
    assert same(found, network.state_dict())


def test_image_training_equals_a_plain_loop_to_the_bit():
    run = image_run(IMAGE_TRAINING)
    train(run)
    images, generator, losses = ToyImages(), make_generator("images"), []
    network = image_network().to(memory_format=torch.channels_last)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=5e-4
    )
    rates = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, 0.05, total_steps=12, pct_start=0.25, cycle_momentum=False
    )
    network.train()
    for _ in range(3):
        total = torch.zeros(())
        for index in torch.randperm(64, generator=generator).split(16):
            inputs = images.augmented(index, generator)
            with torch.autocast("cpu", torch.bfloat16):
                outputs = network(inputs)
            loss = cross_entropy(outputs.float(), images.targets[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            rates.step()
            total += loss.detach()
        losses.append(float(total) / 4)
    assert run.losses == losses
    assert same(weights(run.network), network.state_dict())
    assert torch.equal(run.generator.get_state(), generator.get_state())


@pytest.mark.parametrize("balanced", [True, False])
def test_learns(network, data, balanced):
    train(make_run(network, data, balanced=balanced))
    outputs = predict(network, data.test.inputs)
    assert make_metric("f1").value(outputs, data.test.targets) > 0.93
    assert not network.training


def test_same_seed_same_weights_whatever_the_global_state(network, data):
    results = []
    start = weights(network)
    for seed, noise in (("a", 1), ("a", 2), ("b", 1)):
        network.load_state_dict(start)
        torch.manual_seed(noise)
        before = torch.get_rng_state()
        train(make_run(network, data, seed=seed, epochs=2))
        assert torch.equal(torch.get_rng_state(), before)
        results.append(predict(network, data.test.inputs))
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])


def test_divergence_is_reported_and_the_last_good_state_kept(network, data):
    calls, kept = 0, []

    def fails_in_third_epoch(outputs, targets):
        nonlocal calls
        calls += 1
        loss = cross_entropy(outputs, targets)
        return loss * math.nan if calls == 25 else loss

    hooks = Hooks(lambda _epoch: kept.append(weights(network)))
    run = make_run(network, data, loss=fails_in_third_epoch, keep_best=False)
    with pytest.raises(
        DivergedError, match=r"became nan in epoch 3 of 8; .* its state after epoch 2"
    ):
        train(run, hooks=hooks)
    assert len(kept) == 2
    assert same(kept[-1], network.state_dict())
    assert not network.training


def test_hooks_and_losses_are_told_of_every_step(network, data):
    seen = []

    class Noting(Hooks):
        def before_step(self, step, steps):
            seen.append(("hook", step, steps))

    class NotingLoss(RowLoss):
        def before_step(self, step, steps):
            seen.append(("loss", step, steps))

        def _row_losses(self, outputs, targets):
            return outputs.square().mean((1, 2))

    train(make_run(network, data, loss=NotingLoss(1), epochs=2), hooks=Noting())
    expected = [(who, step, 20) for step in range(20) for who in ("hook", "loss")]
    assert seen == expected


def test_outputs_are_float32_near_those_without_autocast():
    run = image_run(IMAGE_TRAINING)
    inputs = ToyImages().batch(slice(5))
    with torch.no_grad():
        found, exact = run.forward(inputs), run.network(inputs)
    assert found.dtype == torch.float32
    assert not torch.equal(found, exact)
    torch.testing.assert_close(found, exact, rtol=0.05, atol=0.05)


def test_weight_decay_shrinks_the_weights(data):
    norms = []
    for decay in (0.0, 1.0):
        network = nn.Linear(30, 1)
        nn.init.ones_(network.weight)
        train(make_run(network, data, weight_decay=decay, keep_best=False))
        norms.append(network.weight.norm().item())
    assert norms[1] < 0.5 * norms[0]


CPU = torch.device("cpu")


def test_uses_go_on_from_each_other_and_leave_no_trace():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    randomness = GlobalRandomness(7, CPU)
    parts = []
    for count in (2, 3):
        with randomness.in_use():
            parts.append(torch.rand(count))
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(3)
    with torch.random.fork_rng([]):
        torch.manual_seed(7)
        expected = [torch.rand(2), torch.rand(3)]
    assert torch.equal(torch.cat(parts), torch.cat(expected))


def test_a_state_can_be_taken_elsewhere():
    first, second = GlobalRandomness(7, CPU), GlobalRandomness(8, CPU)
    with first.in_use():
        torch.rand(5)
    second.restore(first.state())
    draws = []
    for randomness in (first, second):
        with randomness.in_use():
            draws.append(torch.rand(4))
    assert torch.equal(*draws)


def test_dropout_is_found_wherever_it_is():
    assert draws_globally(
        nn.Sequential(nn.Sequential(nn.Linear(2, 2), nn.Dropout2d(0.1)))
    )
    assert not draws_globally(nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2)))


def test_predict_in_chunks_equals_one_pass():
    network = nn.Sequential(nn.Linear(2, 3), nn.Dropout(0.5))
    inputs = torch.randn(CHUNK + 5, 2, generator=make_generator(0))
    actual = predict(network, inputs)
    assert not actual.requires_grad
    torch.testing.assert_close(actual, network.eval()(inputs).detach())


@pytest.mark.parametrize("numbers", [1, 10 * 64, 2**21])
def test_large_inputs_come_in_small_chunks(monkeypatch, numbers):
    monkeypatch.setattr(prediction, "NUMBERS", numbers)
    network, images, sizes = image_network(), ToyImages(), []
    network.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0])))
    outputs = predict_examples(network, images)
    assert max(sizes) == {1: 1, 640: 10}.get(numbers, 64)
    assert sum(sizes) == 64
    assert not network.training
    torch.testing.assert_close(outputs, network(images.inputs).detach())
    assert images.augmentations == 0

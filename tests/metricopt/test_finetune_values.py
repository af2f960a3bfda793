"""`finetune` where a network predicts values: the diabetes data of scikit-learn."""

from functools import partial

import numpy as np
import pytest
import torch
from sklearn.datasets import load_diabetes
from sklearn.metrics import cohen_kappa_score, mean_pinball_loss
from torch import nn

import metricopt
from metricopt.adapters.output_offsets import OutputOffsets, Unmodulated
from metricopt.on_outputs.search import SHIFTS
from metricopt.reading.meaning import Meaning
from metricopt.reading.outputs import Standard
from metricopt.tasks.sampling import Split

PINBALL = partial(mean_pinball_loss, alpha=0.9)
VALUES = Meaning("values", "numbers")


def splits(grades=False, more=0):
    inputs, targets = load_diabetes(return_X_y=True)
    targets += more
    if grades:
        targets = np.digitize(targets, (80, 120, 170, 240)).astype(float)
    inputs, targets = torch.tensor(20 * inputs).float(), torch.tensor(targets).float()
    order = torch.randperm(442, generator=torch.Generator().manual_seed(0))
    parts = order.tensor_split([150, 320])
    return [Split(inputs[part], targets[part, None]) for part in parts]


def trained(train, steps=100):
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 1))
    with torch.no_grad():
        network[2].bias.fill_(train.targets.mean())
    optimizer = torch.optim.Adam(network.parameters(), lr=0.03)
    for _ in range(steps):
        optimizer.zero_grad()
        nn.functional.mse_loss(network(train.inputs), train.targets).backward()
        optimizer.step()
    return network


def values(network, split):
    with torch.no_grad():
        return network(split.inputs)


def improved(network, train, observe, metric, **settings):
    return metricopt.finetune(
        network,
        train=train,
        observe=observe,
        metric=metric,
        progress=False,
        **{"queries": 30, "loss": nn.MSELoss()} | settings,
    )


@pytest.mark.parametrize("more", [0, 10_000])
def test_a_loss_of_values_is_at_least_as_good_as_with_twenty_shifts(more, tmp_path):
    train, observe, test = splits(more=more)
    network = trained(train)
    spread = observe.targets.std()
    shifts = torch.linspace(-1.5, 1.5, 20) * spread
    tried = [PINBALL(observe.targets, values(network, observe) + by) for by in shifts]
    by_hand = PINBALL(test.targets, values(network, test) + shifts[np.argmin(tried)])
    before = PINBALL(test.targets, values(network, test))
    found = improved(network, train, observe, PINBALL)
    assert found.evidence.identified is not None
    assert "residuals" in found.evidence.reason
    assert found.metric_after <= min(tried) * 1.02
    merged = found.merge()
    found.save(tmp_path / "phi")
    for made in (found.adapter, metricopt.auto_adapter(network, train.inputs[:4])):
        with made.attach(metricopt.load_phi(tmp_path / "phi", made)):
            again = values(network, test)
        torch.testing.assert_close(again, values(merged, test))
    after = PINBALL(test.targets, values(merged, test))
    assert after < 0.6 * before
    assert after <= by_hand * 1.02
    assert PINBALL(observe.targets, values(merged, observe)) == pytest.approx(
        found.metric_after, rel=1e-5
    )


def test_outputs_that_nothing_is_known_of_are_shifted_first():
    train, observe, _ = splits()
    network = trained(train)
    shifts = torch.linspace(-1.5, 1.5, 20) * observe.targets.std()
    tried = [PINBALL(observe.targets, values(network, observe) + by) for by in shifts]

    def loss(outputs, targets):
        return PINBALL(targets, outputs)

    settings = {"outputs": "raw", "higher_is_better": False, "no_harm": False}
    found = improved(network, train, observe, loss, **settings)
    assert found.method == "guided-cma"
    assert found.metric_after <= min(tried)


def test_values_are_shifted_where_their_statistics_explain_nothing():
    train, observe, _ = splits()
    network = trained(train)
    asked = []

    def digits(outputs, targets):
        asked.append(outputs.clone())
        return ((outputs * 997) % 1).mean().item()

    settings = {"higher_is_better": True, "check_direction": False, "queries": 50}
    found = improved(network, train, observe, digits, **settings)
    assert "No statistics" in found.evidence.reason
    whole = [outputs for outputs in asked if len(outputs) == len(observe)]
    shifted = [
        any(is_shifted(one, other) for one in whole[:place])
        for place, other in enumerate(whole)
    ]
    assert sum(shifted) >= len(SHIFTS)


def is_shifted(one, other):
    moved = one - other
    return moved.std() < 1e-3 < moved.abs().min()


def rounded_kappa(outputs, targets):
    grades = outputs.round().clamp(0, 4).flatten()
    return cohen_kappa_score(targets.flatten(), grades, weights="quadratic")


def test_kappa_of_rounded_values_gains():
    train, observe, test = splits(grades=True)
    network = trained(train, steps=25)  # its values lie close to their mean
    before = rounded_kappa(values(network, test), test.targets)
    found = improved(network, train, observe, rounded_kappa, higher_is_better=True)
    assert "rounded values" in found.evidence.reason
    after = rounded_kappa(values(found.merge(), test), test.targets)
    assert found.metric_after > found.metric_before
    assert after > before + 0.03


@pytest.mark.parametrize("flat", [False, True])
def test_values_are_scaled_then_shifted(flat, tmp_path):
    train = splits()[0]
    network = trained(train)
    if flat:
        network = nn.Sequential(network, nn.Flatten(0))
    meaning = Meaning("values", "numbers", flat=flat)
    few = train.inputs[:6]
    adapter = metricopt.auto_adapter(network, few, offsets=meaning)
    size = adapter.size
    assert adapter.parts["offsets"] == slice(size - 2, size - 1)
    assert adapter.parts["scales"] == slice(size - 1, size)
    phi = torch.zeros(size)
    phi[-2:] = torch.tensor([10.0, np.log(2.0)])
    untouched = network(few)
    expected = 2 * untouched + 10
    outputs = adapter.predict(adapter.encode(few), phi[None])[0]
    torch.testing.assert_close(outputs.view_as(expected), expected)
    torch.testing.assert_close(adapter.merged(phi)(few), expected)
    with adapter.attach(phi):
        torch.testing.assert_close(network(few), expected)
    torch.testing.assert_close(network(few), untouched)
    metricopt.save_phi(tmp_path / "phi", phi, adapter)
    same = metricopt.auto_adapter(network, few, offsets=meaning)
    assert torch.equal(metricopt.load_phi(tmp_path / "phi", same), phi)
    unscaled = OutputOffsets(same.inner, few, meaning)
    with pytest.raises(metricopt.ConfigError, match="this adapter has"):
        metricopt.load_phi(tmp_path / "phi", unscaled)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_phi_of_zeros_is_the_untouched_network_at_any_precision(dtype):
    outputs = torch.tensor([[0.05], [3.0], [500.0], [-6e4]]).to(dtype)
    meaning = Meaning("values", "numbers", standard=Standard((1e4,), (30.0,)))
    inner = Unmodulated(nn.Identity(), outputs)
    adapter = OutputOffsets(inner, outputs, meaning, scaled=True)
    found = adapter.predict(adapter.encode(outputs), torch.zeros(1, 2))
    assert torch.equal(found[0], outputs)


def test_phi_far_from_zero_is_loaded_as_exactly_as_the_network_computes(tmp_path):
    outputs = 1e9 + torch.arange(20.0, dtype=torch.float64)[:, None]
    network = nn.Linear(1, 1, dtype=torch.float64)
    with torch.no_grad():
        network.weight.fill_(1.0)
        network.bias.zero_()
    meaning = Meaning("values", "numbers", standard=Standard((1e9 + 10,), (5.0,)))
    saved, plain = (
        metricopt.auto_adapter(network, outputs, offsets=each)
        for each in (meaning, VALUES)
    )
    phi = torch.zeros(saved.size)
    phi[-2:] = torch.tensor([0.5, np.log(2.0)])
    metricopt.save_phi(tmp_path / "phi", phi, saved)
    loaded = metricopt.load_phi(tmp_path / "phi", plain)
    found = plain.predict(plain.encode(outputs), loaded[None])[0]
    expected = 2 * (outputs - 1e9 - 10) + 1e9 + 12.5
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-4)


def test_a_network_whose_last_layer_takes_no_scale_is_followed_by_it():
    network = nn.Sequential(nn.Linear(10, 2), nn.Tanh())
    few = splits()[0].inputs[:4]
    adapter = metricopt.auto_adapter(network, few, offsets=VALUES)
    phi = torch.zeros(adapter.size)
    phi[-4:] = torch.tensor([1.0, 0.0, 0.0, np.log(3.0)])
    expected = network(few) * torch.tensor([1.0, 3.0]) + torch.tensor([1.0, 0.0])
    torch.testing.assert_close(adapter.merged(phi)(few), expected)


def test_targets_that_are_missing_are_left_to_the_loss_and_the_metric():
    def known(outputs, targets):
        return (outputs - targets)[targets.isfinite()]

    def loss(outputs, targets):
        return known(outputs, targets).square().mean()

    def pinball(outputs, targets):
        errors = -known(outputs, targets)
        return torch.maximum(0.9 * errors, -0.1 * errors).mean().item()

    train, observe, _ = splits()
    network = trained(train)
    for split in (train, observe):
        split.targets[::5] = torch.nan
    said = {"higher_is_better": False, "check_direction": False}
    found = improved(network, train, observe, pinball, loss=loss, **said)
    assert found.metric_after < 0.8 * found.metric_before
    assert "no statistics that are known here" in found.summary()

"""Settings of a training, its optimiser and its rate."""

import pytest
import torch
from torch import nn

from baselines.losses.contract import make_loss
from baselines.optimizers.powersign import PowerSign
from baselines.training.optimization import (
    OPTIMIZERS,
    Training,
    arithmetic,
    make_optimizer,
    make_rates,
)
from metricopt.errors import ConfigError


def rates_of(training, steps_per_epoch=4):
    """The rate, and the first momentum of Adam, at every step."""
    optimizer = make_optimizer(
        nn.Linear(2, 2), nn.CrossEntropyLoss(), training, steps_per_epoch
    )
    schedule = make_rates(optimizer, training, steps_per_epoch)
    (group,) = optimizer.param_groups
    rates, momenta = [], []
    for _ in range(training.epochs * steps_per_epoch):
        rates.append(group["lr"])
        momenta.append(group.get("momentum", group.get("betas", [None])[0]))
        optimizer.step()
        schedule.step()
    return rates, momenta


def test_one_cycle_rises_for_its_warm_up_and_ends_near_zero():
    training = Training(10, 0.4, optimizer="sgd", warm_up=0.25)
    rates, momenta = rates_of(training)
    assert max(rates) == pytest.approx(0.4)
    assert rates.index(max(rates)) == pytest.approx(len(rates) / 4, abs=1)
    assert rates[-1] < 1e-3
    assert set(momenta) == {0.9}


def test_by_default_it_is_the_one_cycle_of_torch():
    rates, momenta = rates_of(Training(5, 0.4))
    adam = torch.optim.Adam(nn.Linear(2, 2).parameters(), lr=0.4)
    expected = torch.optim.lr_scheduler.OneCycleLR(adam, 0.4, total_steps=20)
    for rate, momentum in zip(rates, momenta, strict=True):
        assert adam.param_groups[0]["lr"] == rate
        assert adam.param_groups[0]["betas"][0] == momentum
        adam.step()
        expected.step()
    assert len(set(momenta)) > 10


def test_steps_divide_by_ten_at_half_and_three_quarters():
    rates, _ = rates_of(Training(8, 0.1, optimizer="sgd", schedule="steps"))
    rounded = [round(rate, 6) for rate in rates]
    assert rounded == [0.1] * 16 + [0.01] * 8 + [0.001] * 8


def test_a_constant_rate_stays():
    assert set(rates_of(Training(3, 0.07, schedule="constant"))[0]) == {0.07}


def test_a_cosine_ends_at_zero():
    rates, _ = rates_of(Training(4, 0.2, optimizer="powersign", schedule="cosine"))
    assert rates[0] == 0.2
    assert rates[8] == pytest.approx(0.1)
    assert rates[-1] < 0.01


def test_powersign_lasts_as_long_as_the_training():
    training = Training(3, 0.2, optimizer="powersign", weight_decay=1e-4)
    made = make_optimizer(nn.Linear(2, 2), nn.CrossEntropyLoss(), training, 5)
    assert isinstance(made, PowerSign)
    (group,) = made.param_groups
    assert (group["lr"], group["decay_steps"], group["weight_decay"]) == (0.2, 15, 1e-4)


def test_a_step_of_rmsprop_by_hand():
    weight = nn.Linear(1, 1, bias=False)
    before = weight.weight.item()
    training = Training(1, 0.5, optimizer="rmsprop", momentum=0.0)
    made = make_optimizer(weight, nn.CrossEntropyLoss(), training, 1)
    weight.weight.grad = torch.full((1, 1), 2.0)
    made.step()
    # The mean square begins at 1, as in TensorFlow; epsilon 1 is inside the root.
    expected = before - 0.5 * 2 / (0.9 * 1 + 0.1 * 4 + 1) ** 0.5
    assert weight.weight.item() == pytest.approx(expected, abs=1e-6)


def test_what_a_loss_learns_decays_with_adam_and_not_with_sgd():
    network, loss = nn.Linear(2, 4), make_loss("aucpr", classes=4)
    sgd = Training(1, 0.1, optimizer="sgd", weight_decay=5e-4)
    groups = make_optimizer(network, loss, sgd, 1).param_groups
    assert [group["weight_decay"] for group in groups] == [5e-4, 0.0]
    assert [len(group["params"]) for group in groups] == [2, 2]
    adam = Training(1, 0.1, weight_decay=5e-4)
    (group,) = make_optimizer(network, loss, adam, 1).param_groups
    assert (group["weight_decay"], len(group["params"])) == (5e-4, 4)
    plain = make_optimizer(network, make_loss("cross-entropy", classes=4), sgd, 1)
    assert len(plain.param_groups) == 1


def test_sgd_has_the_momentum_it_is_given():
    for momentum, nesterov in ((0.8, True), (0.8, False), (0.0, False)):
        training = Training(
            1, 0.1, optimizer="sgd", momentum=momentum, nesterov=nesterov
        )
        made = make_optimizer(nn.Linear(2, 2), nn.CrossEntropyLoss(), training, 1)
        (group,) = made.param_groups
        assert (group["momentum"], group["nesterov"]) == (momentum, nesterov)


def test_the_last_layer_may_learn_faster():
    network = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 4), nn.Flatten())
    training = Training(3, 0.1, head_factor=10.0)
    optimizer = make_optimizer(network, nn.CrossEntropyLoss(), training, 4)
    others, head = optimizer.param_groups
    assert [tuple(w.shape) for w in head["params"]] == [(4, 3), (4,)]
    assert [tuple(w.shape) for w in others["params"]] == [(3, 2), (3,)]
    rates = make_rates(optimizer, training, 4)
    for _ in range(6):
        assert head["lr"] == pytest.approx(10 * others["lr"])
        optimizer.step()
        rates.step()


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ({"avx512_bf16": True}, "bfloat16"),
        ({"avx512_bf16": False, "amx_bf16": True}, "bfloat16"),
        ({"avx2": True, "avx512_bf16": False}, "float32"),
        ({"sve_bf16": True}, "bfloat16"),
        ({}, "float32"),
    ],
)
def test_the_fastest_precision_is_that_of_the_processor(
    monkeypatch, instructions, expected
):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: instructions)
    cpu = torch.device("cpu")
    assert arithmetic("fastest", cpu) == expected
    assert arithmetic("bfloat16", cpu) == "bfloat16"
    assert arithmetic("float32", cpu) == "float32"


def test_an_optimizer_of_ones_own_is_known_by_its_name(monkeypatch):
    monkeypatch.setattr(OPTIMIZERS, "_units", dict(OPTIMIZERS._units))

    @OPTIMIZERS.register("lion")
    def _lion(network, learned, training, steps):
        weights = [*network.parameters(), *learned]
        return torch.optim.Adagrad(weights, training.learning_rate * steps)

    training = Training(3, 0.1, optimizer="lion")
    made = make_optimizer(nn.Linear(2, 2), nn.CrossEntropyLoss(), training, 5)
    assert isinstance(made, torch.optim.Adagrad)
    assert made.param_groups[0]["lr"] == pytest.approx(1.5)
    with pytest.raises(ConfigError, match="named 'lion' is registered already"):
        OPTIMIZERS.register("lion")(_lion)

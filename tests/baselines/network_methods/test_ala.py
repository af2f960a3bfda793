"""ALA: what its controller sees, decides and learns, and what a training notes."""

import math

import pytest
import torch

from baselines.learned_losses.ala_controller import (
    ACTIONS,
    FEATURES,
    Controller,
    PairPolicy,
    PairStates,
    moved,
)
from baselines.network_methods.ala import AdaptiveLossAlignment
from baselines.training.batches import PermutedBatches, SampledBatches
from baselines.training.children import Children, siblings
from baselines.training.optimization import Training
from baselines.validation import Validation
from metricopt.errors import ConfigError, DataError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import Split
from tests.baselines.breast_cancer import breast_cancer
from tests.baselines.toy_images import ToyImages, image_network

TRAINING = Training(3, 0.05, optimizer="sgd")


def trained(settings, observe=None, metric="mcr", training=TRAINING, network=None):
    """Train on images; return the result and what was counted."""
    observe = observe or ToyImages(seed=1)
    validation = Validation(make_metric(metric), observe)
    result = AdaptiveLossAlignment(**{"measured": 1, **settings}).train(
        network or image_network(),
        PermutedBatches(ToyImages(), 16),
        validation,
        training=training,
        generator=make_generator("ala"),
    )
    return result, validation


def test_a_state_holds_both_directions_the_loss_parameter_and_the_time():
    pairs = PairStates(3, diagonal=True)
    confusions = torch.rand(2, 3, 3)
    for factor in (1.0, 2.0):
        pairs.observe(factor * confusions)
    phi = torch.eye(3).repeat(2, 1, 1)
    states = pairs.states(phi, 0.25)
    assert states.shape == (2, 6, FEATURES)
    place = torch.stack([pairs.first, pairs.second], 1).tolist().index([0, 2])
    c, unit = confusions[1], math.log(3)
    past = [c[0, 2] / unit] * 9 + [2 * c[0, 2] / unit]
    assert torch.allclose(states[1, place, :10], torch.stack(past))
    assert torch.allclose(states[1, place, 19], 2 * c[2, 0] / unit)
    # The moving average is 1.1 times the first statistic.
    assert torch.allclose(states[1, place, 20], torch.tensor(0.9 / 1.1))
    assert states[1, place, 22] == 0
    assert states[0, 0, 22] == 1
    assert (states[..., 23] == 0.25).all()


def test_statistics_are_in_units_of_chance():
    """So that a policy can be used with any number of classes."""
    for classes in (2, 10):
        pairs = PairStates(classes, diagonal=True)
        chance = torch.full((1, classes, classes), math.log(classes))
        pairs.observe(chance)
        states = pairs.states(torch.eye(classes)[None], 0.0)
        assert torch.allclose(states[..., :20], torch.ones(()))


def test_a_policy_learns_the_action_that_is_rewarded():
    torch.manual_seed(0)
    controller = Controller(PairPolicy(), make_generator("c"))
    states = torch.randn(4, 6, FEATURES)
    allowed = torch.ones(6, dtype=torch.bool)
    for _ in range(400):
        decision = controller.decide(states, allowed)
        raised = (decision.actions == 2).float().mean(-1)
        controller.reward(decision, (raised - 1 / 3).sign())
    assert controller.course.raised[-1] > 0.8
    assert controller.course.raised[-1] > controller.course.raised[0]
    assert controller.entropy < 0.6


@pytest.mark.parametrize(("reward", "learns"), [(0.0, True), (1.0, False)])
def test_a_policy_without_news_stays_as_it_is(reward, learns):
    policy = PairPolicy()
    before = [weight.clone() for weight in policy.parameters()]
    controller = Controller(policy, make_generator("c"), learns=learns)
    for _ in range(30):
        decision = controller.decide(
            torch.randn(1, 3, FEATURES), torch.ones(3, dtype=torch.bool)
        )
        controller.reward(decision, torch.tensor([reward]))
    assert all(map(torch.equal, before, policy.parameters()))


def test_decisions_move_both_directions_within_bounds():
    pairs = PairStates(4, diagonal=True)
    controller = Controller(PairPolicy(), make_generator("c"))
    pairs.observe(torch.rand(2, 4, 4))
    allowed = pairs.second < 3
    phi = torch.eye(4).repeat(2, 1, 1)
    for _ in range(40):
        decision = controller.decide(pairs.states(phi, 0.0), allowed)
        before, phi = phi, moved(phi, decision, pairs, 0.1)
        assert torch.equal(phi, phi.mT)
        assert phi.abs().max() <= 1
        assert (phi - before).abs().max() <= 0.1 + 1e-6
    assert torch.equal(phi[:, 3], torch.eye(4)[3].expand(2, -1))
    assert not torch.equal(phi[0], phi[1])


@pytest.mark.parametrize("count", [1, 3])
def test_children_are_the_same_batched_or_one_after_another(count):
    torch.manual_seed(0)
    networks = [network.double() for network in siblings(image_network(), count)]
    inputs = ToyImages().inputs.double()
    results = []
    for batched in (False, True):
        children = Children(networks, batched=batched).train()
        rate = torch.optim.SGD(children.parameters(), 0.1)
        for part in inputs.split(16):
            outputs = children(part)
            assert outputs.shape == (16, count, 4)
            rate.zero_grad()
            outputs.square().mean().backward()
            rate.step()
        results.append([children.eval()(inputs), children.network(count - 1)(inputs)])
    for looped, batched in zip(*results, strict=True):
        assert torch.allclose(looped, batched)
    assert torch.allclose(results[0][0][:, count - 1], results[0][1])


def test_siblings_have_weights_of_their_own():
    network = image_network()
    first, second, third = siblings(network, 3)
    assert first is network
    assert not torch.equal(second[0].weight, third[0].weight)
    assert not torch.equal(second[0].weight, network[0].weight)


def test_queries_are_four_in_a_period_for_each_child_and_one_an_epoch():
    training = Training(16, 0.05, optimizer="sgd")  # 64 steps
    result, validation = trained(
        {"period": 16, "measured": 4, "children": 2}, training=training
    )
    assert validation.queries == result.queries == 3 * 4 * 2 + 16
    # Of the first period's reward nothing is known: there is none before it.
    assert len(result.notes["rewards"]) == 2
    assert len(result.notes["entropies"]) == 4
    assert result.gradient_steps == 2 * 64


def test_loss_parameters_are_noted_from_the_identity_to_the_end():
    result, _ = trained({"period": 4}, training=Training(8, 0.05, optimizer="sgd"))
    phi = torch.tensor(result.notes["phi"]).view(-1, 4, 4)
    assert len(phi) == len(result.notes["phi_steps"]) == 9
    assert torch.equal(phi[0], torch.eye(4))
    assert not torch.equal(phi[-1], torch.eye(4))
    assert (phi[-1].diag() == 1).all()
    assert result.notes["phi_steps"][-1] == 32


def test_noise_is_fixed_and_small():
    result, validation = trained({"form": "noise", "period": 4})
    phi = torch.tensor(result.notes["phi"]).view(-1, 4, 4)
    assert torch.equal(phi[0], phi[-1])
    assert 0 < (phi[0] - torch.eye(4)).abs().max() <= 0.1
    assert torch.equal(phi[0], phi[0].T)
    assert validation.queries == 3
    assert "entropy" not in result.notes
    assert result.policy is None


def test_a_class_that_is_not_observed_is_left_alone():
    images = ToyImages(seed=1)
    observe = Split(
        images.inputs[images.targets != 2], images.targets[images.targets != 2]
    )
    for form in ("policy", "confusion"):
        result, _ = trained({"period": 2, "form": form}, observe=observe)
        phi = torch.tensor(result.notes["phi"]).view(-1, 4, 4)[-1]
        assert torch.equal(phi[2], torch.eye(4)[2])
        assert not torch.equal(phi[0], torch.eye(4)[0])


def test_a_second_run_begins_with_the_policy_of_the_first():
    settings, longer = {"period": 4}, Training(8, 0.05, optimizer="sgd")
    first, _ = trained(settings, training=longer)
    weights = {}
    for second in ("reuse", "finetune"):
        result, validation = trained({**settings, "second": second}, training=longer)
        assert result.gradient_steps == 2 * first.gradient_steps
        assert result.queries == validation.queries > first.queries
        weights[second] = list(result.policy.parameters())
    assert all(map(torch.equal, weights["reuse"], first.policy.parameters()))
    assert not all(map(torch.equal, weights["finetune"], first.policy.parameters()))


def test_a_policy_is_used_with_another_number_of_classes(tmp_path):
    file = tmp_path / "policy.safetensors"
    result, _ = trained({"period": 2})
    result.policy.save(file)
    data = breast_cancer()
    network = torch.nn.Sequential(torch.nn.Linear(data.train.inputs.shape[1], 1))
    moved_on = AdaptiveLossAlignment(
        period=2, measured=1, policy=str(file), learns=False
    ).train(
        network,
        SampledBatches(data.train, 32),
        Validation(make_metric("f1"), data.observe),
        training=TRAINING,
        generator=make_generator("ala"),
    )
    assert all(
        map(torch.equal, moved_on.policy.parameters(), result.policy.parameters())
    )
    with pytest.raises(DataError, match="holds no policy of ALA"):
        trained({"policy": str(tmp_path / "none")})
    (tmp_path / "text").write_text("no tensors")
    with pytest.raises(DataError, match="holds no policy of ALA"):
        trained({"policy": str(tmp_path / "text")})


def test_a_metric_that_never_changes_teaches_nothing():
    constant = make_metric(lambda outputs, targets: 0.5, higher_is_better=True)
    longer = Training(8, 0.05, optimizer="sgd")
    result, _ = trained({"period": 4, "updates": 3}, metric=constant, training=longer)
    assert result.notes["rewards"] == [0.0] * 6
    assert set(result.notes["entropies"][1:]) != {0.0}
    fixed, _ = trained({"period": 4, "learns": False}, training=longer)
    assert all(map(torch.equal, result.policy.parameters(), fixed.policy.parameters()))


def test_a_memory_that_is_not_full_yet_is_learned_from():
    """Three pairs in memory are fewer than a sample of 256."""
    policy = PairPolicy()
    before = [weight.clone() for weight in policy.parameters()]
    controller = Controller(policy, make_generator("c"))
    decision = controller.decide(
        torch.randn(1, 3, FEATURES), torch.ones(3, dtype=torch.bool)
    )
    controller.reward(decision, torch.tensor([1.0]))
    assert not all(map(torch.equal, before, policy.parameters()))
    assert all(bool(weight.isfinite().all()) for weight in policy.parameters())


def test_a_collapsed_policy_is_reported(tmp_path):
    policy = PairPolicy()
    with torch.no_grad():
        policy.layers[-1].bias.copy_(torch.tensor([0.0, 30.0, 0.0]))
    policy.save(tmp_path / "sure")
    result, _ = trained({"period": 2, "policy": str(tmp_path / "sure")})
    assert result.notes["collapsed"] == 1
    assert result.notes["entropy"] < 0.01
    assert set(result.notes["raised"]) == {0}
    assert trained({"period": 2})[0].notes["collapsed"] == 0
    assert ACTIONS == (-1, 0, 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"period": 0}, "period=0"),
        ({"updates": 0}, "updates=0"),
        ({"period": 10}, "a period of 10 steps is too short .* 4 times, 5 steps apart"),
        ({"children": 0}, "children=0"),
        ({"step": 1.5}, "step=1.5"),
        ({"gamma": 0.0}, r"gamma must be in \(0, 1\], got 0.0"),
        ({"form": "random"}, "form must be one of .*'noise'.* got 'random'"),
        ({"second": "yes"}, "second must be one of .* got 'yes'"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ConfigError, match=message):
        AdaptiveLossAlignment(**settings)

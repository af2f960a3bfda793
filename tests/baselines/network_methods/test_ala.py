"""ALA: what its controller sees, decides and learns, and what a training notes."""

import itertools
import math
from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from baselines.learned_losses.adaptive_correlation import (
    SURENESS,
    AdaptiveCorrelation,
    PairStates,
)
from baselines.learned_losses.ala_controller import ACTIONS, Controller, Policy
from baselines.network_methods import ala
from baselines.network_methods.ala import AdaptiveLossAlignment
from baselines.training.children import Children, siblings
from baselines.training.optimization import Training
from metricopt.errors import ConfigError
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import Split
from tests.baselines.toy_images import (
    TRAINING,
    ToyImages,
    image_network,
    train_on_images,
)

FEATURES = AdaptiveCorrelation.features
LONGER = Training(8, 0.05, optimizer="sgd")
"""32 steps."""


def trained(training=TRAINING, metric="mcr", observe=None, **settings):
    method = AdaptiveLossAlignment(**{"measured": 1} | settings)
    return train_on_images(method, training, metric=metric, observe=observe)


def test_a_state_holds_both_directions_the_loss_parameter_and_the_time():
    pairs = PairStates(3)
    confusions = torch.rand(2, 3, 3)
    for factor in (1.0, 2.0):
        pairs.observe(factor * confusions)
    phi = torch.eye(3).repeat(2, 1, 1)
    phi[0, 0, 2] = 0.7
    states = pairs.states(phi, 0.25)
    assert states.shape == (2, 3, FEATURES)
    place = torch.stack([pairs.first, pairs.second], 1).tolist().index([0, 2])
    # Standardised over the six confusions of a period: a factor changes nothing.
    c = confusions[1]
    wrong = c[~torch.eye(3, dtype=torch.bool)]
    standard = (c - wrong.mean()) / wrong.std()
    assert torch.allclose(states[1, place, :10], standard[0, 2].expand(10), atol=1e-5)
    assert torch.allclose(states[1, place, 10:20], standard[2, 0].expand(10), atol=1e-5)
    # The moving average is 1.1 times the first statistic.
    assert torch.allclose(states[1, place, 20], torch.tensor(0.9 / 1.1))
    assert states[:, place, 22].tolist() == pytest.approx([0.7, 0])
    assert (states[..., 23] == 0.25).all()


def test_classes_that_are_not_observed_do_not_count_as_statistics():
    pairs, confusions = PairStates(4), torch.rand(1, 4, 4)
    confusions[:, 2] = torch.nan
    pairs.observe(confusions)
    states = pairs.states(torch.eye(4)[None], 0.0)
    seen = (pairs.first != 2) & (pairs.second != 2)
    known = states[0, seen, :20]
    assert known.mean().item() == pytest.approx(0, abs=1e-5)
    assert torch.cat([known[:, 0], known[:, 10]]).std().item() == pytest.approx(1)


def test_the_only_pair_has_statistics_in_units_of_chance():
    pairs, confusions = PairStates(2), torch.rand(1, 2, 2)
    pairs.observe(confusions)
    states = pairs.states(torch.eye(2)[None], 0.0)
    assert states[0, 0, 0] == confusions[0, 0, 1] / math.log(2)


def test_pairs_that_do_not_differ_have_statistics_of_zero():
    """With any number of classes: what they share is no reason to act on one."""
    for classes in (3, 10):
        pairs = PairStates(classes)
        chance = torch.full((1, classes, classes), math.log(classes))
        pairs.observe(chance)
        states = pairs.states(torch.eye(classes)[None], 0.0)
        assert torch.allclose(states[..., :20], torch.zeros(()), atol=1e-4)


def confusions_of(done, pairs, generator):
    """Return confusions [1, 10, 10] that grow towards 6 nats."""
    grown = (2.3 + 3.7 * done) * pairs
    return grown + 0.1 * torch.randn(1, 10, 10, generator=generator)


@pytest.mark.parametrize("seed", range(3))
def test_rewards_by_the_toss_of_a_coin_collapse_no_policy(seed):
    torch.manual_seed(seed)
    generator, adapted = make_generator(f"coin {seed}"), AdaptiveCorrelation(10)
    controller = Controller(Policy(FEATURES), generator)
    pairs = 0.6 + 0.8 * torch.rand(10, 10, generator=generator)
    phi, allowed = torch.eye(10)[None], torch.ones(45, dtype=torch.bool)
    for decision in range(225):
        done = decision / 225
        adapted.pairs.observe(confusions_of(done, pairs, generator).clamp(min=0.01))
        made = controller.decide(adapted.states(phi, done), allowed)
        phi = adapted.moved(phi, made.changes(0.1))
        toss = 2.0 * torch.randint(2, (1,), generator=generator) - 1
        controller.reward(made, toss)
    assert controller.entropy > 0.2


def test_a_policy_learns_the_action_that_is_rewarded():
    torch.manual_seed(0)
    controller = Controller(Policy(FEATURES), make_generator("c"))
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
    policy = Policy(FEATURES)
    before = [weight.clone() for weight in policy.parameters()]
    controller = Controller(policy, make_generator("c"))
    controller.begin(learns=learns)
    for _ in range(30):
        decision = controller.decide(
            torch.randn(1, 3, FEATURES), torch.ones(3, dtype=torch.bool)
        )
        controller.reward(decision, torch.tensor([reward]))
    assert all(map(torch.equal, before, policy.parameters()))


def test_decisions_move_both_directions_within_bounds():
    adapted = AdaptiveCorrelation(4)
    controller = Controller(Policy(FEATURES), make_generator("c"))
    adapted.pairs.observe(torch.rand(2, 4, 4))
    allowed = adapted.pairs.second < 3
    phi = torch.eye(4).repeat(2, 1, 1)
    for _ in range(40):
        decision = controller.decide(adapted.states(phi, 0.0), allowed)
        before, phi = phi, adapted.moved(phi, decision.changes(0.1))
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
    network[1].running_mean += 1
    network[4].bias.requires_grad_(False)
    first, second, third = siblings(network, 3)
    assert first is network
    # They are the same numbers in another order.
    for own, other in zip(network.parameters(), second.parameters(), strict=True):
        assert torch.equal(own.flatten().sort()[0], other.flatten().sort()[0])
    assert torch.equal(second[4].bias, network[4].bias)
    assert torch.equal(second[1].running_mean, torch.zeros(8))
    assert not torch.equal(second[0].weight, third[0].weight)
    assert not torch.equal(second[0].weight, network[0].weight)


def test_queries_are_four_in_a_period_for_each_child_and_one_an_epoch():
    training = Training(16, 0.05, optimizer="sgd")  # 64 steps
    result, validation = trained(training, period=16, measured=4, children=2)
    assert validation.queries == result.queries == 3 * 4 * 2 + 16
    # Of the first period's reward nothing is known: there is none before it.
    assert len(result.notes["rewards"]) == 2
    assert len(result.notes["entropies"]) == 4
    assert result.gradient_steps == 2 * 64


def test_loss_parameters_are_noted_from_the_identity_to_the_end():
    result, _ = trained(LONGER, period=4)
    phi = torch.tensor(result.notes["phi"]).view(-1, 4, 4)
    assert len(phi) == len(result.notes["phi_steps"]) == 9
    assert torch.equal(phi[0], torch.eye(4))
    assert not torch.equal(phi[-1], torch.eye(4))
    assert (phi[-1].diag() == 1).all()
    assert result.notes["phi_steps"][-1] == 32


def test_noise_is_fixed_and_small():
    result, validation = trained(form="noise", period=4)
    phi = torch.tensor(result.notes["phi"]).view(-1, 4, 4)
    assert torch.equal(phi[0], phi[-1])
    assert 0 < (phi[0] - torch.eye(4)).abs().max() <= 0.1
    assert torch.equal(phi[0], phi[0].T)
    assert validation.queries == 3
    assert "entropy" not in result.notes


@pytest.mark.parametrize("form", ["policy", "confusion"])
def test_a_class_that_is_not_observed_is_left_alone(form):
    images = ToyImages(seed=1)
    kept = images.targets != 2
    observe = Split(images.inputs[kept], images.targets[kept])
    result, _ = trained(period=2, form=form, observe=observe)
    phi = torch.tensor(result.notes["phi"]).view(-1, 4, 4)[-1]
    assert torch.equal(phi[2], torch.eye(4)[2])
    assert not torch.equal(phi[0], torch.eye(4)[0])


@pytest.fixture
def made(monkeypatch):
    """The policies of all trainings, with their weights at the beginning."""
    found = []

    class Noted(Controller):
        def begin(self, *, learns=True):
            super().begin(learns=learns)
            first = [weight.clone() for weight in self.policy.parameters()]
            found.append(SimpleNamespace(policy=self.policy, first=first))

    monkeypatch.setattr(ala, "Controller", Noted)
    return found


def moved_on(begun):
    """Whether a policy has changed since a training began."""
    return not all(map(torch.equal, begun.first, begun.policy.parameters()))


@pytest.mark.parametrize("second", ["reuse", "finetune"])
def test_a_second_run_begins_with_the_policy_of_the_first(made, second):
    first, _ = trained(LONGER, period=4)
    result, validation = trained(LONGER, period=4, second=second)
    assert result.gradient_steps == 2 * first.gradient_steps
    assert result.queries == validation.queries > first.queries
    alone, _, again = made
    assert moved_on(alone)
    assert all(map(torch.equal, again.first, alone.policy.parameters()))
    assert moved_on(again) == (second == "finetune")
    # What the first training noted is kept.
    assert result.notes["first_rewards"] == first.notes["rewards"]
    assert len(result.notes["rewards"]) == (6 if second == "finetune" else 0)


def test_a_metric_that_never_changes_teaches_nothing(made):
    constant = make_metric(lambda outputs, targets: 0.5, higher_is_better=True)
    result, _ = trained(LONGER, constant, period=4, updates=3)
    assert result.notes["rewards"] == [0.0] * 6
    assert set(result.notes["entropies"][1:]) != {0.0}
    assert not moved_on(made[0])


def test_a_memory_that_is_not_full_yet_is_learned_from():
    """Three pairs in memory are fewer than a sample of 256."""
    policy = Policy(FEATURES)
    before = [weight.clone() for weight in policy.parameters()]
    controller = Controller(policy, make_generator("c"))
    decision = controller.decide(
        torch.randn(1, 3, FEATURES), torch.ones(3, dtype=torch.bool)
    )
    controller.reward(decision, torch.tensor([1.0]))
    assert not all(map(torch.equal, before, policy.parameters()))
    assert all(bool(weight.isfinite().all()) for weight in policy.parameters())


def test_a_collapsed_policy_is_reported(monkeypatch):
    assert trained(period=2)[0].notes["collapsed"] == 0
    policy = Policy(FEATURES)
    with torch.no_grad():
        policy.layers[-1].bias.copy_(torch.tensor([0.0, 30.0, 0.0]))
    monkeypatch.setattr(ala, "Policy", lambda features: policy)
    result, _ = trained(period=2)
    assert result.notes["collapsed"] == 1
    assert result.notes["entropy"] < 0.01
    assert set(result.notes["raised"]) == {0}
    assert ACTIONS == (-1, 0, 1)


def test_a_period_holds_its_measurements():
    message = "a period of 10 steps is too short .* 4 times, 5 steps apart"
    with pytest.raises(ConfigError, match=message):
        AdaptiveLossAlignment(period=10)


@pytest.mark.parametrize(
    ("reward", "split", "made"),
    [
        ("metric", "observe", {"observe": 6}),
        ("metric", "train", {"train": 6}),
        ("loss", "observe", {}),
        ("loss", "train", {}),
    ],
)
def test_rewards_are_of_metric_or_loss_on_one_of_two_splits(reward, split, made):
    training = replace(LONGER, keep_best=False)
    result, validation = trained(training, period=5, reward=reward, rewarded_on=split)
    assert dict(validation.meter.made) == made
    # What is measured first is not compared with anything.
    assert len(result.notes["rewards"]) == 5
    assert set(result.notes["rewards"]) <= {-1.0, 0.0, 1.0}


def test_a_reward_by_a_loss_needs_classes():
    message = "reward 'loss' are of the loss of classes, got loss 'focal-weighting'"
    with pytest.raises(ConfigError, match=message):
        AdaptiveLossAlignment(loss="focal-weighting", reward="loss")


def test_what_a_policy_remembers_outlasts_a_training():
    controller = Controller(Policy(FEATURES), make_generator("c"))
    allowed = torch.ones(3, dtype=torch.bool)
    for _ in range(2):
        decision = controller.decide(torch.randn(1, 3, FEATURES), allowed)
        controller.reward(decision, torch.ones(1))
    before = controller.state()
    controller.begin()
    after = controller.state()
    assert len(after["memory"]) == 2
    assert after["baseline"] == before["baseline"] > 0
    assert after["optimizer"]["state"][0]["step"] == 2
    assert after["course"]["rewards"] == [] != before["course"]["rewards"]


def test_a_walk_draws_actions_evenly_and_asks_nothing():
    result, validation = trained(LONGER, form="walk", period=2, step=0.05)
    notes = result.notes
    assert notes["entropies"] == pytest.approx([math.log(3)] * 16)
    assert 0.1 < sum(notes["raised"]) / 16 < 0.6
    assert notes["phi"][:16] != notes["phi"][-16:]
    assert not notes["rewards"] and "rewarded" not in notes
    assert dict(validation.meter.made) == {"observe": 8}


def test_what_is_rewarded_is_noted_for_every_network():
    result, _ = trained(LONGER, period=4, children=2)
    rewarded = torch.tensor(result.notes["rewarded"]).view(-1, 2)
    better = (rewarded[:-1] - rewarded[1:]).sign().mean(1)
    assert result.notes["rewards"] == pytest.approx(better.tolist())


@pytest.mark.parametrize("literal", [False, True])
def test_slopes_are_noted_by_how_sure_a_network_is(literal):
    """Where nothing moves, they are 1 - p, or p / (1 + p)^2 times that and 4."""
    result, _ = trained(form="level", literal=literal)
    slopes = torch.tensor(result.notes["slopes"]).view(9, -1, 2)
    assert torch.allclose(slopes[..., 1].sum(1), torch.ones(9), atol=1e-3)
    bounds = [0.0, *SURENESS, 1.0]
    for part, (low, high) in enumerate(itertools.pairwise(bounds)):
        p = torch.linspace(low, high, 101)
        expected = (1 - p) * (4 * p / (1 + p) ** 2 if literal else 1)
        for slope, share in slopes[:, part].tolist():
            if share:
                assert expected.min() - 1e-3 <= slope <= expected.max() + 1e-3


def test_a_level_is_that_of_all_pairs_and_stays():
    result, validation = trained(form="level", level=-0.3)
    last = torch.tensor(result.notes["phi"]).view(-1, 4, 4)[-1]
    assert torch.equal(last.diagonal(), torch.ones(4))
    assert set(last[~torch.eye(4, dtype=torch.bool)].tolist()) == {last[0, 1].item()}
    assert last[0, 1].item() == pytest.approx(-0.3)
    assert dict(validation.meter.made) == {"observe": 3}

"""ALA on embeddings: what a training moves, counts and hands on."""

import pytest
import torch

from baselines.network_methods import ala
from baselines.network_methods.ala import AdaptiveLossAlignment
from baselines.training.optimization import Training
from metricopt.errors import ConfigError
from tests.baselines.toy_images import train_on_images

TRAINING = Training(8, 0.01, keep_best=False)
"""32 steps."""
MIXTURE, FOCAL = "distance-mixture", "focal-weighting"


def trained(loss=MIXTURE, **settings):
    method = AdaptiveLossAlignment(
        loss=loss, **{"measured": 1, "period": 4, "updates": 3} | settings
    )
    return train_on_images(method, TRAINING, metric="mean-recall")


def phi_of(result, size):
    return torch.tensor(result.notes["weights"]).view(-1, size)


@pytest.mark.parametrize("framework", ["triplet", "margin"])
@pytest.mark.parametrize(
    ("loss", "first"), [(MIXTURE, [1, 0, 0, 0, 0] * 2), (FOCAL, [1, 1])]
)
def test_a_policy_moves_the_loss_towards_the_metric(loss, first, framework):
    result, validation = trained(loss, framework=framework)
    phi = phi_of(result, len(first))
    assert phi[0].tolist() == first
    assert not torch.equal(phi[0], phi[-1])
    assert result.notes["weights_steps"] == [0, 4, 8, 12, 16, 20, 24, 28, 32]
    assert len(result.notes["rewards"]) == 6
    assert validation.queries == result.queries == 7
    assert result.gradient_steps == 32


def test_networks_share_the_controller():
    result, validation = trained(children=2)
    assert result.gradient_steps == 64
    assert validation.queries == 14
    assert all(weight.isfinite().all() for weight in result.network.parameters())


def test_noise_is_fixed_and_needs_no_queries():
    result, validation = trained(form="noise")
    phi = phi_of(result, 10)
    assert torch.equal(phi[0], phi[-1])
    assert 0 < (phi[0] - torch.tensor([1.0, 0, 0, 0, 0] * 2)).abs().max() <= 0.1
    assert validation.queries == 0


def test_equal_trainings_are_equal_and_sets_of_functions_differ():
    first, second = trained()[0], trained()[0]
    assert first.notes == second.notes
    assert first.learned == second.learned
    other = trained(functions="powers")[0]
    assert not torch.equal(first.network[0].weight, other.network[0].weight)


@pytest.fixture
def policies(monkeypatch):
    """The policies that trainings make."""
    found = []

    class Noted(ala.Policy):
        def __init__(self, features):
            super().__init__(features)
            found.append(self)

    monkeypatch.setattr(ala, "Policy", Noted)
    return found


def test_a_policy_that_other_data_taught_stays_as_it_is(policies):
    source, _ = trained()
    result, validation = trained(FOCAL, policy=source.learned)
    assert validation.queries == 0
    assert result.learned == source.learned
    given = torch.nn.utils.parameters_to_vector(policies[1].parameters())
    assert given.tolist() == pytest.approx(source.learned)
    assert not torch.equal(*phi_of(result, 2)[[0, -1]])


def test_a_policy_of_classes_does_not_fit_embeddings():
    classes, _ = train_on_images(AdaptiveLossAlignment(measured=1, period=4), TRAINING)
    with pytest.raises(ConfigError, match="needs 1603 weights, got 1955: one of ano"):
        trained(policy=classes.learned)


@pytest.mark.parametrize("wrong", [{"literal": True}, {"form": "confusion"}])
def test_settings_of_classes_are_refused(wrong):
    with pytest.raises(ConfigError, match="are of the loss of classes, got loss 'dis"):
        AdaptiveLossAlignment(loss=MIXTURE, **wrong)

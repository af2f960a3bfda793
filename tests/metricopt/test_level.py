"""How much evidence of a gain is asked for."""

import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.preprocessing import scale
from torch import nn

import metricopt
from tests.metricopt.drawn import seeded

INPUTS, LABELS = load_breast_cancer(return_X_y=True)
ODDS = (
    LogisticRegression()
    .fit(scale(INPUTS)[::2, :2], LABELS[::2])
    .decision_function(scale(INPUTS)[1::2, :2])
)
SAID = "phi is moved although this interval holds 0"


def tuned(**settings):
    return metricopt.tune(
        ODDS - 1.6, LABELS[1::2], "accuracy", progress=False, **settings
    )


def test_a_move_that_is_not_significant_is_said_and_can_be_refused():
    found = tuned()
    assert found.offsets.any()
    assert found.expected.low < 0 < found.expected.value
    assert SAID in found.summary()
    strict = tuned(level=1.96)
    assert not strict.offsets.any()
    assert strict.expected is None and SAID not in strict.summary()


def four_digits():
    """Zeros and ones, and a quarter of the twos and threes."""
    inputs, labels = map(torch.tensor, load_digits(return_X_y=True))
    kept = (labels < 2) | ((labels < 4) & (torch.arange(len(labels)) % 4 == 0))
    return inputs[kept].float() / 16, labels[kept]


def trained(seed, train, steps):
    """A small network, which seeds from 1 leave with little to gain."""
    torch.manual_seed(seed)
    twice = nn.Linear(64, 64)
    tied = nn.Sequential(twice, nn.ReLU(), twice, nn.ReLU(), nn.Linear(64, 4))
    small = nn.Sequential(nn.Linear(64, 16), nn.ReLU(), nn.Linear(16, 4))
    network = tied if seed % 2 else small
    optimizer = torch.optim.Adam(network.parameters(), 0.01)
    torch.manual_seed(0)
    for _ in range(steps):
        batch = torch.randint(0, len(train[1]), (128,))
        optimizer.zero_grad()
        outputs = network(train[0][batch])
        nn.functional.cross_entropy(outputs, train[1][batch]).backward()
        optimizer.step()
    return network


@pytest.mark.parametrize(("seed", "steps"), [(1, 40), (4, 60)])
def test_what_is_moved_at_a_level_claims_as_much(seed, steps):
    inputs, labels = four_digits()
    order = torch.randperm(len(labels), generator=seeded(seed))
    train, observe = ((inputs[part], labels[part]) for part in order.tensor_split(2))
    network = trained(seed, train, steps)
    for level in (1.96, 1e6):
        found = metricopt.finetune(
            network,
            train=train,
            observe=observe,
            loss=nn.CrossEntropyLoss(),
            metric=lambda outputs, targets: f1_score(
                targets, outputs.argmax(1), average="macro"
            ),
            higher_is_better=True,
            queries=16,
            level=level,
            progress=False,
        )
        evidence = found.evidence
        claims = evidence.gain is not None and evidence.gain > level * evidence.error
        assert not found.phi.any() or claims or evidence.seen is not None


def test_a_level_needs_a_method_that_asks_for_evidence():
    with pytest.raises(metricopt.ConfigError, match="how much evidence of a gain"):
        tuned(level=1.0, method="cma-es", no_harm=False)
    with pytest.raises(metricopt.ConfigError, match=r"finetune needs level in"):
        tuned(level=-1.0)

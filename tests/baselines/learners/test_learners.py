"""Every learner: MAML at first, its counted meta-parameters, and it learns."""

import re

import pytest
import torch
from torch import nn

from baselines.learners.contract import LEARNERS
from metricopt.errors import ConfigError
from metricopt.fewshot import MetaTraining, meta_train
from tests.metricopt.fewshot.drawn_episodes import blobs, perceptron

NAMES = list(LEARNERS)
CONV4 = {
    "block-diagonal": 9_934,
    "exact-potential": 526_751,
    "maml": 7_861,
    "maml-first-order": 7_861,
    "meta-curvature": 17_204,
    "meta-sgd": 15_722,
    "mirror-descent": 39_494,
    "mirror-descent-released": 39_494,
}
"""Meta-parameters with a network of four convolutions of 16 channels."""


def conv4(channels=16, ways=5, side=32):
    def block(before):
        norm = nn.BatchNorm2d(channels, track_running_stats=False)
        convolution = nn.Conv2d(before, channels, 3, padding=1)
        return [convolution, norm, nn.ReLU(), nn.MaxPool2d(2)]

    layers = [layer for before in (3, *[channels] * 3) for layer in block(before)]
    head = nn.Linear(channels * (side // 16) ** 2, ways)
    return nn.Sequential(*layers, nn.Flatten(), head)


def made(name, network, **settings):
    generator = torch.Generator().manual_seed(0)
    learner = LEARNERS.get(name)(**settings)
    return learner.make(network, nn.functional.cross_entropy, generator)


def test_the_learners_are_those_of_the_poster_and_ours():
    assert sorted(CONV4) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_meta_parameters_are_counted(name):
    assert made(name, conv4()).size == CONV4[name]


@pytest.mark.parametrize("name", NAMES)
def test_every_learner_is_maml_before_it_is_trained(name):
    network = conv4(4)
    own = torch.Generator().manual_seed(1)
    images = torch.rand(10, 3, 32, 32, generator=own)
    labels = torch.arange(10) % 5
    with torch.no_grad():
        found, maml = (
            made(each, network, steps=3, rate=0.1).adapt(images, labels).phi
            for each in (name, "maml")
        )
    assert len(found) == 4
    assert all(torch.equal(found[-1][n], w) for n, w in maml[-1].items())
    assert not torch.equal(found[-1]["0.weight"], found[0]["0.weight"])


@pytest.mark.parametrize("name", NAMES)
def test_every_learner_learns_and_so_does_its_geometry(name):
    learner = made(name, perceptron(4, 3), rate=0.05)
    before = {n: w.clone() for n, w in learner.state_dict().items()}
    settings = MetaTraining(iterations=25, episodes=8, rate=0.01, batching="vmap")
    found = meta_train(learner, blobs, settings)
    assert found.skipped == ()
    assert sum(found.losses[-5:]) < 0.9 * sum(found.losses[:5])
    still = {n for n, w in learner.state_dict().items() if torch.equal(before[n], w)}
    # Heads of two modes, and what feeds them: see `released_block_iaf`.
    stuck = {
        n for n in still if name == "mirror-descent-released" and ".decoders." in n
    }
    assert still == stuck


def test_the_learner_of_first_order_is_cheaper_by_its_graph_alone():
    full, first = LEARNERS.get("maml"), LEARNERS.get("maml-first-order")
    assert (full.order, first.order) == ("full", "first")
    assert full() == full(steps=5, rate=0.01)


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("maml", {"steps": 0}, "a learner needs steps >= 1, got steps=0"),
        ("maml", {"steps": 1.5}, "steps must be a whole number, got 1.5"),
        ("meta-sgd", {"rate": 0.0}, "a learner needs rate > 0, got rate=0.0"),
        ("meta-sgd", {"geometry_rate": 0}, "a learner needs geometry_rate > 0, got"),
        ("mirror-descent", {"scale": "sigmoid"}, "scale must be one of 'exp', "),
        ("exact-potential", {"rank": 0}, "exact-potential needs rank >= 1, got rank=0"),
    ],
)
def test_a_setting_out_of_its_range_is_named(name, settings, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        LEARNERS.get(name)(**settings)


def test_there_is_no_learner_of_another_name():
    with pytest.raises(ConfigError, match="unknown learner 'MAML'; known: block-"):
        LEARNERS.get("MAML")

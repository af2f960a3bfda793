"""Networks whose outputs depend on the batch or on chance are refused."""

import pytest
import torch
from torch import nn
from torch.nn.functional import dropout

from metricopt import ConfigError
from tests.robustness.heads import vectors
from tests.robustness.test_process_state import convolutions, images, improve


class Centred(nn.Module):
    """Subtracts the mean of the batch, as batch normalisation does."""

    def forward(self, inputs):
        return inputs - inputs.mean(0)


class Dropped(nn.Module):
    """Dropout that is on in evaluation mode, too."""

    def forward(self, inputs):
        return dropout(inputs, 0.5, training=True)


def unnormed(kind, size):
    """A batch normalisation without running statistics."""
    return kind(size, track_running_stats=False)


def dropping(place):
    model = convolutions()
    return model.insert(place, Dropped())


STATISTICS = r"layer '\d', BatchNorm\dd, has no running statistics"
CHANCE = "they depend on chance: is there a dropout"
REFUSED = {
    "before the site": (
        lambda: nn.Sequential(unnormed(nn.BatchNorm1d, 64), nn.Linear(64, 10)),
        STATISTICS,
    ),
    "after the site": (
        lambda: nn.Sequential(
            nn.Linear(64, 4), unnormed(nn.BatchNorm1d, 4), nn.Linear(4, 10)
        ),
        STATISTICS,
    ),
    "far before the site": (
        lambda: convolutions(unnormed(nn.BatchNorm2d, 4)),
        STATISTICS,
    ),
    "a layer of one's own": (
        lambda: convolutions(Centred()),
        "outputs depend on the other examples",
    ),
    "dropout first": (lambda: dropping(0), CHANCE),
    "dropout within": (lambda: dropping(1), CHANCE),
    "dropout behind": (lambda: dropping(5), CHANCE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_depends_on_more_than_the_example_is_refused(name):
    made, text = REFUSED[name]
    model = made()
    images_taken = any(isinstance(each, nn.Conv2d) for each in model)
    with pytest.raises(ConfigError, match=text):
        improve(model, images() if images_taken else vectors("digits"))


@pytest.mark.parametrize("statistics", [False, True])
def test_instance_norm_treats_examples_one_by_one(statistics):
    torch.manual_seed(0)
    layer = nn.InstanceNorm2d(4, affine=True, track_running_stats=statistics)
    model, (inputs, targets) = convolutions(layer), images()
    found = improve(model, (inputs, targets))
    found.apply()
    model.eval()
    with torch.no_grad():
        wrong = [model(inputs[[i]])[0].argmax() != targets[i] for i in range(60)]
    assert found.metric_after == pytest.approx(sum(map(float, wrong)) / 60)

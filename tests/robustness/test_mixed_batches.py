"""Networks whose outputs depend on the batch or on chance are refused."""

import pytest
import torch
from torch import nn
from torch.nn.functional import dropout

from metricopt import ConfigError
from tests.robustness.heads import vectors
from tests.robustness.test_process_state import convolutions, images, improve


@pytest.mark.parametrize(
    "made",
    [
        lambda: nn.Sequential(
            nn.BatchNorm1d(64, track_running_stats=False), nn.Linear(64, 10)
        ),
        lambda: nn.Sequential(
            nn.Linear(64, 4),
            nn.BatchNorm1d(4, track_running_stats=False),
            nn.Linear(4, 10),
        ),
        lambda: convolutions(nn.BatchNorm2d(4, track_running_stats=False)),
    ],
    ids=["before the site", "after the site", "far before the site"],
)
def test_batch_norm_without_running_statistics_is_refused(made):
    model = made()
    data = images() if isinstance(model[0], nn.Conv2d) else vectors("digits")
    message = r"layer '\d', BatchNorm\dd, has no running statistics"
    with pytest.raises(ConfigError, match=message):
        improve(model, data)


class Centred(nn.Module):
    """Subtracts the mean of the batch, as batch normalisation does."""

    def forward(self, inputs):
        return inputs - inputs.mean(0)


def test_a_layer_that_mixes_examples_before_the_site_is_refused():
    with pytest.raises(ConfigError, match="outputs depend on the other examples"):
        improve(convolutions(Centred()), images())


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


class Dropped(nn.Module):
    """Dropout that is on in evaluation mode, too."""

    def forward(self, inputs):
        return dropout(inputs, 0.5, training=True)


@pytest.mark.parametrize("place", [0, 1, 5])
def test_dropout_that_stays_on_is_refused(place):
    model = convolutions()
    model.insert(place, Dropped())
    with pytest.raises(ConfigError, match="they depend on chance: is there a dropout"):
        improve(model, images())

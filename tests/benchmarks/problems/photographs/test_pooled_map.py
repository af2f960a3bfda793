"""FiLM after the pooling is FiLM on the map that is pooled."""

import pytest
import torch
from torch import nn

from benchmarks.networks.contract import build_network
from benchmarks.problems.photographs.pipeline import PhotographThetaSpec
from metricopt.adapters.film import FiLM


@pytest.mark.parametrize("name", ["nasnet-a-tiny", "resnet18-slim"])
def test_film_commutes_with_the_pooling(name):
    images = torch.randn(3, 3, 64, 64)
    phi = 0.1 * torch.randn(2, 20)
    outputs, numbers = [], []
    network = build_network(name, lambda n: nn.Linear(n, 5), seed=1)
    (pooled,) = PhotographThetaSpec(None, None, 0).sites(network)
    for site in (pooled, str(int(pooled) - 1)):
        network = build_network(name, lambda n: nn.Linear(n, 5), seed=1).eval()
        film = FiLM(network, images, sites=(site,), form="shared", size=20)
        features = film.encode(images)
        outputs.append(film.predict(features, phi))
        numbers.append(sum(part.numel() for part in features))
    torch.testing.assert_close(*outputs)
    assert not torch.equal(outputs[0][0], outputs[0][1])
    assert numbers[0] < numbers[1]

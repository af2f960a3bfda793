"""Pose networks: sizes, sites, and what is refused."""

import pytest
import torch

from benchmarks.networks.poses.contract import (
    POSE_NETWORKS,
    STRIDE,
    build_pose_network,
    check_sides,
)
from metricopt.errors import ConfigError


@pytest.mark.parametrize("name", list(POSE_NETWORKS))
def test_maps_are_a_quarter_of_the_image(name):
    network = build_pose_network(name, 5, seed=1).eval()
    with torch.no_grad():
        maps = network(torch.zeros(1, 3, 64, 96))
    assert maps.shape == (1, 5, 64 // STRIDE, 96 // STRIDE)
    modules = dict(network.named_modules())
    assert all(isinstance(modules[s], torch.nn.BatchNorm2d) for s in network.sites)
    again = build_pose_network(name, 5, seed=1).state_dict()
    assert all(torch.equal(again[k], v) for k, v in network.state_dict().items())


def test_the_published_network_has_its_size():
    network = build_pose_network("resnet50", 17, seed=0)
    # 34.0 million weights: Xiao et al., Table 2.
    assert sum(w.numel() for w in network.parameters()) == pytest.approx(34e6, rel=0.01)


def test_what_is_no_network_is_refused():
    with pytest.raises(ConfigError, match="1 joint or more, got 0"):
        build_pose_network("tiny", 0, seed=0)
    with pytest.raises(ConfigError, match="unknown pose network"):
        build_pose_network("hrnet", 3, seed=0)
    with pytest.raises(ConfigError, match="multiples of 16, got 64 x 50"):
        check_sides(64, 50)

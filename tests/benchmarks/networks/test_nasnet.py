"""NASNet-A: the published sizes, and timm's wiring where both have the same cells."""

import pytest
import torch
from timm.models.nasnet import NASNetALarge

from baselines.training.batches import PermutedBatches
from baselines.training.checkpoint import Checkpoint
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from benchmarks.networks.contract import build_network
from benchmarks.networks.nasnet import nasnet_a
from benchmarks.problems.images.images import Images, channel_statistics
from metricopt.process.seeding import make_generator


def linear(classes):
    return lambda features: torch.nn.Linear(features, classes)


def weights(network):
    return sum(weight.numel() for weight in network.parameters())


@pytest.mark.parametrize(
    ("name", "side", "shape", "millions"),
    [
        ("nasnet-a-mobile", 64, (1, 1056, 2, 2), 4.2),
        ("nasnet-a-cifar", 32, (1, 768, 8, 8), 3.3),
    ],
)
def test_networks_have_the_published_sizes(name, side, shape, millions):
    """With 1,000 classes the mobile one has 5,289,978; see `test_image_networks`."""
    network = build_network(name, linear(10), 0).eval()
    assert round(weights(network) / 1e6, 1) == millions
    with torch.no_grad():
        assert network[:-3](torch.zeros(1, 3, side, side)).shape == shape


def test_every_stage_has_so_many_cells():
    network = nasnet_a(linear(10), cells=2, features=48, stem=6)
    # A stem, 3 x 2 cells and two reductions, then four layers.
    assert len(network) == 1 + 3 * 2 + 2 + 4
    assert network.eval()(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.parametrize("size", [64, 96])
def test_up_to_the_first_reduction_it_is_that_of_timm(size):
    torch.manual_seed(0)
    other = NASNetALarge(num_classes=10, stem_size=8, num_features=96).eval()
    own = nasnet_a(linear(10), cells=6, features=96, stem=8, imagenet=True).eval()
    assert weights(own) == weights(other)
    pairs = zip(own.state_dict().values(), _as_they_run(other, own), strict=True)
    for mine, theirs in pairs:
        mine.copy_(theirs)
    images = torch.randn(2, 3, size, size)
    with torch.no_grad():
        stages = other.forward_intermediates(
            images, indices=[2], intermediates_only=True
        )
        features, _ = own[:7](images)
    torch.testing.assert_close(features.relu(), stages[0])


def _as_they_run(other, own):
    """Values of timm's state in the order of ours, which is that of the layers."""
    names = [name for name in other.layer_names]
    state = other.state_dict()
    ordered = [
        value
        for layer in (*names, "last_linear")
        for name, value in state.items()
        if name.startswith(f"{layer}.")
    ]
    assert len(ordered) == len(own.state_dict())
    return ordered


class Stopped(Exception):  # noqa: N818 - stands for a kill
    """Ends a training between two epochs."""


def test_mobile_trains_and_goes_on_from_its_checkpoint_to_the_bit(tmp_path):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (4, 64, 64, 3), generator=generator).to(torch.uint8)
    images = Images(pixels, torch.arange(4), *channel_statistics(pixels))

    def made():
        return TrainingRun(
            build_network("nasnet-a-mobile", linear(4), seed=0),
            torch.nn.CrossEntropyLoss(),
            PermutedBatches(images, 4),
            Training(2, 0.01, optimizer="rmsprop", schedule="cosine", keep_best=False),
            generator=make_generator("mobile"),
        )

    def stop(epoch):
        if epoch.number == 2:
            raise Stopped

    whole = made()
    train(whole)
    with pytest.raises(Stopped):
        train(made(), hooks=Hooks(stop), checkpoint=Checkpoint(tmp_path / "mobile.pt"))
    resumed = made()
    train(resumed, checkpoint=Checkpoint(tmp_path / "mobile.pt"))
    assert whole.losses == resumed.losses
    assert whole.losses[1] != whole.losses[0]
    before = whole.network.state_dict()
    for name, value in resumed.network.state_dict().items():
        assert torch.equal(value, before[name])

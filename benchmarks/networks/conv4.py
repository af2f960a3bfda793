"""The network of few-shot learning on images: four convolutions and a linear head.

Source: Finn et al., ICML 2017, Sec. 5.2, after Vinyals et al., NeurIPS 2016.
"""

from torch import nn

from metricopt.errors import ConfigError
from metricopt.process.seeding import globally_seeded

LAYERS = 4
LEAST_SIDE = 2**LAYERS


def conv4(
    *, channels: int, inputs: int, side: int, outputs: int, shrink: int, seed: int
) -> nn.Sequential:
    """Return four blocks of convolution, batch norm, ReLU and pooling, then the head.

    Batch norm has the statistics of its batch alone, in training and afterwards: those
    of an episode are not those of another.

    Args:
        channels: of every block.
        inputs: channels of an image.
        side: pixels of a side of an image; every block halves it, rounded down.
        outputs: classes of an episode.
        shrink: images are first averaged over squares of so many pixels a side.
        seed: seed of the weights, which are torch's default ones.

    Returns:
        A network from [N, inputs, side, side] to [N, outputs].

    Raises:
        ConfigError: if nothing would be left of an image.
    """
    seen = side // shrink
    if seen < LEAST_SIDE:
        raise ConfigError(
            f"four halvings need images of {LEAST_SIDE} pixels or more, got {seen}"
        )
    layers: list[nn.Module] = [nn.AvgPool2d(shrink)] if shrink > 1 else []
    with globally_seeded(seed):
        for before in (inputs, *[channels] * (LAYERS - 1)):
            layers += [
                nn.Conv2d(before, channels, 3, padding=1),
                nn.BatchNorm2d(channels, track_running_stats=False),
                nn.ReLU(),
                nn.MaxPool2d(2),
            ]
        left = seen // LEAST_SIDE
        head = nn.Linear(channels * left * left, outputs)
    return nn.Sequential(*layers, nn.Flatten(), head)

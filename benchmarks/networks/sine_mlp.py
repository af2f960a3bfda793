"""The network of few-shot regression on sine waves.

Source: Finn et al., ICML 2017, Sec. 5.1.
"""

from torch import nn

from metricopt.process.seeding import globally_seeded

HIDDEN = 40


def sine_mlp(*, seed: int) -> nn.Sequential:
    """Return an MLP 1-40-40-1 with ReLU, 1,761 weights.

    Args:
        seed: seed of the weights, which are torch's default ones.

    Returns:
        A network from [N, 1] to [N, 1].
    """
    with globally_seeded(seed):
        return nn.Sequential(
            nn.Linear(1, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, 1),
        )

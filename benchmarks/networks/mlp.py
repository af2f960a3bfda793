"""Networks theta, and the form of them that is fast to evaluate."""

import copy

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_linear_bn_eval

from metricopt.process.seeding import globally_seeded

# Matrix products on CPU are up to three times as fast when the width is a multiple.
WIDTH_MULTIPLE = 16


def mlp(
    inputs: int, hidden: tuple[int, ...], *, slope: float, dropout: float, seed: int
) -> nn.Sequential:
    """Return an MLP with batch norm, leaky ReLU and dropout after each hidden layer.

    Args:
        inputs: number of input features.
        hidden: widths of the hidden layers; the paper's are 100, 30 and 10.
        slope: slope of the leaky ReLU.
        dropout: probability of dropping a unit.
        seed: seed of the weights, which are torch's default ones.

    Returns:
        A network from [N, inputs] to one logit [N, 1].

    Source: Huang et al., CVPR 2021, Sec. 4.2.
    """
    layers: list[nn.Module] = []
    before = inputs
    with globally_seeded(seed):
        for width in hidden:
            layers += [
                nn.Linear(before, width),
                nn.BatchNorm1d(width),
                nn.LeakyReLU(slope),
                nn.Dropout(dropout),
            ]
            before = width
        return nn.Sequential(*layers, nn.Linear(before, 1))


def deployed(network: nn.Sequential) -> nn.Sequential:
    """Return a frozen MLP in the form it is evaluated in, with the same outputs.

    Dropout is gone, batch norm is folded into the linear layer before it, and hidden
    widths are padded with dead units. The first layer keeps its batch norm, since phi
    enters between the two. Outputs agree up to rounding.
    """
    # A copy: freezing layers of the network itself would keep others from training it.
    first, norm, *rest = copy.deepcopy(network).eval()
    linear = [layer for layer in rest if isinstance(layer, nn.Linear)]
    norms = [layer for layer in rest if isinstance(layer, nn.BatchNorm1d)]
    slope = next(
        layer.negative_slope for layer in rest if isinstance(layer, nn.LeakyReLU)
    )
    layers: list[nn.Module] = [first, norm]
    width = first.out_features
    for layer, after in zip(linear[:-1], norms, strict=True):
        fused = fuse_linear_bn_eval(layer, after)
        layers += [nn.LeakyReLU(slope, inplace=True), padded(fused, width)]
        width = layers[-1].out_features
    last = _widened(linear[-1], width, 1)
    layers += [nn.LeakyReLU(slope, inplace=True), last]
    return nn.Sequential(*layers).eval().requires_grad_(False)


def padded(layer: nn.Linear, inputs: int) -> nn.Linear:
    """Return a layer with dead inputs up to `inputs`, and dead units to a multiple."""
    units = -(-layer.out_features // WIDTH_MULTIPLE) * WIDTH_MULTIPLE
    return _widened(layer, inputs, units)


@torch.no_grad()
def _widened(layer: nn.Linear, inputs: int, outputs: int) -> nn.Linear:
    wide = nn.Linear(inputs, outputs)
    wide.weight.zero_()
    wide.bias.zero_()
    wide.weight[: layer.out_features, : layer.in_features] = layer.weight
    wide.bias[: layer.out_features] = layer.bias
    return wide

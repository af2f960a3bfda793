"""A network for smoke runs of retrieval."""

from torch import nn

from benchmarks.networks.contract import (
    EMBEDDING_NETWORKS,
    EmbeddingNetwork,
    embedding_network,
)

WIDTHS = (16, 32, 64)


@EMBEDDING_NETWORKS.register("tiny")
def tiny(size: int) -> EmbeddingNetwork:
    """Return three 3x3 convolutions with batch norm, for images of 32 to 48 pixels."""
    stages: dict[str, nn.Module] = {}
    before = 3
    for number, width in enumerate(WIDTHS, start=1):
        convolution = nn.Conv2d(before, width, 3, stride=2, padding=1, bias=False)
        nn.init.kaiming_normal_(convolution.weight, mode="fan_out")
        stages[f"conv{number}"] = convolution
        stages[f"bn{number}"] = nn.BatchNorm2d(width)
        stages[f"relu{number}"] = nn.ReLU(inplace=True)
        before = width
    last = f"bn{len(WIDTHS)}"
    return embedding_network(stages, before, size, sites=(last,))

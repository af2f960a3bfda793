"""The small network of the AUCPR papers."""

from torch import nn

from benchmarks.networks.contract import IMAGE_NETWORKS, Head

SMALL_FEATURES = 192


@IMAGE_NETWORKS.register("small")
def small_network(head: Head) -> nn.Sequential:
    """Return two 5x5 convolutions and two dense layers, from [N, 3, 32, 32].

    Args:
        head: makes the last layer, on 192 features.

    Source: the CIFAR-10 tutorial network of TensorFlow, which the network of Eban et
        al., AISTATS 2017, is inferred to be. Differs: batch norm for response
        normalisation, whole images for crops of 24x24, and a third pooling.
    """

    def stage(inputs: int) -> list[nn.Module]:
        convolution = nn.Conv2d(inputs, 64, 5, padding=2)
        return [convolution, nn.ReLU(), nn.MaxPool2d(3, 2), nn.BatchNorm2d(64)]

    dense = [
        nn.Linear(64 * 3 * 3, 384),
        nn.ReLU(),
        nn.Linear(384, SMALL_FEATURES),
        nn.ReLU(),
    ]
    return nn.Sequential(
        *stage(3),
        *stage(64),
        nn.MaxPool2d(2),
        nn.Flatten(),
        *dense,
        head(SMALL_FEATURES),
    )

"""SqueezeNet of torchvision, embedding images: the network for a CPU."""

from benchmarks.networks.contract import (
    ADDED,
    EMBEDDING_NETWORKS,
    EmbeddingNetwork,
    Pretrained,
    embedding_network,
)

FEATURES = 512


@EMBEDDING_NETWORKS.register("squeezenet1_1")
def squeezenet1_1(size: int) -> EmbeddingNetwork:
    """Return a SqueezeNet 1.1, 0.7 million weights without batch norm.

    FiLM stands at both halves of the last feature map, before their activation.

    Source: Iandola et al., arXiv:1602.07360, 2016.
    """
    # Not above: a look-up of any image network imports this file, and torchvision
    # takes seconds to import.
    from torchvision.models import squeezenet1_1

    return embedding_network(
        {"features": squeezenet1_1(weights=None).features},
        FEATURES,
        size,
        sites=("features.12.expand1x1", "features.12.expand3x3"),
        pretrained=Pretrained(
            "SqueezeNet1_1_Weights.IMAGENET1K_V1", ("classifier",), ADDED
        ),
    )

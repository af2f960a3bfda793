"""Residual networks of torchvision, embedding images."""

from torch import nn

from benchmarks.networks.contract import (
    ADDED,
    EMBEDDING_NETWORKS,
    EmbeddingNetwork,
    Pretrained,
    embedding_network,
)


@EMBEDDING_NETWORKS.register("resnet50")
def resnet50(size: int) -> EmbeddingNetwork:
    """Return a ResNet-50, which embeds 2048 features; the paper's size is 512.

    Source: Huang et al., CVPR 2021, Sec. 4.4; He et al., CVPR 2016.
    """
    # Not above: a look-up of any image network imports this file, and torchvision
    # takes seconds to import.
    from torchvision.models import resnet50

    return _embedding(
        resnet50(weights=None),
        size,
        site="layer4.2.bn3",
        weights="ResNet50_Weights.IMAGENET1K_V1",
    )


@EMBEDDING_NETWORKS.register("resnet18")
def resnet18(size: int) -> EmbeddingNetwork:
    """Return a ResNet-18, which embeds 512 features.

    Source: He et al., CVPR 2016.
    """
    from torchvision.models import resnet18

    return _embedding(
        resnet18(weights=None),
        size,
        site="layer4.1.bn2",
        weights="ResNet18_Weights.IMAGENET1K_V1",
    )


def _embedding(
    classifier: nn.Module, size: int, *, site: str, weights: str
) -> EmbeddingNetwork:
    stages = dict(classifier.named_children())
    features = stages.pop("fc").in_features
    del stages["avgpool"]
    pretrained = Pretrained(weights, ("fc",), ADDED)
    return embedding_network(
        stages, features, size, sites=(site,), pretrained=pretrained
    )

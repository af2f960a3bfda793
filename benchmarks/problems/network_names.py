"""What pre-trained networks start from, and what a reader calls one."""

import hashlib

from benchmarks.problems.detection.settings import (
    DetectionProblem,
    DetectorBackbone,
)
from benchmarks.problems.images.settings import ImageBackbone, ImageProblem
from benchmarks.problems.photographs.settings import (
    ClassifierBackbone,
    PhotographProblem,
)
from benchmarks.problems.pretrained.base_weights import BaseWeights
from benchmarks.problems.retrieval.settings import EmbeddingBackbone, RetrievalProblem
from benchmarks.runs.codec import canonical, encode

SQUEEZENET = BaseWeights(
    "file",
    "squeezenet1_1.safetensors",
    "1fe8e164fc591d1e6445b4656eb4c55fa48d5f23ce05564d5f0c2404d4590b68",
)
"""SqueezeNet 1.1 of torchvision for ImageNet, rounded to half precision."""


def network_name(
    problem: ImageProblem | RetrievalProblem | DetectionProblem | PhotographProblem,
    backbone: ImageBackbone | EmbeddingBackbone | DetectorBackbone | ClassifierBackbone,
    replicate: int,
    *,
    trained_with: str,
) -> str:
    """Return a readable identity of a pre-trained network.

    Args:
        problem: what it is trained on.
        backbone: the network and its training.
        replicate: of both.
        trained_with: what tells it from others, such as its loss.
    """
    key = canonical([encode(problem), encode(backbone), replicate])
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    parts = (problem.dataset, backbone.network, trained_with)
    return f"{', '.join(parts)}, replicate {replicate} ({digest})"

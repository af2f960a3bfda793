"""What a reader calls the pre-trained network of a run."""

import hashlib

from benchmarks.pipelines.images.settings import Backbone, ImageProblem
from benchmarks.pipelines.retrieval.settings import EmbeddingBackbone, RetrievalProblem
from benchmarks.runs.codec import canonical, encode


def network_name(
    problem: ImageProblem | RetrievalProblem,
    backbone: Backbone | EmbeddingBackbone,
    replicate: int,
) -> str:
    """Return a readable identity of a pre-trained network."""
    key = canonical([encode(problem), encode(backbone), replicate])
    digest = hashlib.sha256(key.encode()).hexdigest()[:8]
    parts = (problem.dataset, backbone.network, backbone.loss)
    return f"{', '.join(parts)}, replicate {replicate} ({digest})"

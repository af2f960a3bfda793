"""Weights of examples from a linear score of what is known of them."""

import copy
from typing import Any

import torch
from sklearn.decomposition import PCA
from torch import Tensor, nn
from torch.nn import functional

from metricopt.errors import ShapeError
from metricopt.losses.contract import check_arguments

FEATURES = 10
"""Numbers of an embedding of features."""


def cross_entropies(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the cross-entropy of every example, shape [n], in nats.

    Args:
        outputs: one logit [n, 1] or class logits [n, C].
        targets: labels, shape [n].
    """
    check_arguments(outputs, targets)
    if outputs.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(
            outputs[:, 0], targets.to(outputs.dtype), reduction="none"
        )
    return functional.cross_entropy(outputs, targets, reduction="none")


def example_weights(scores: Tensor) -> Tensor:
    """Return weights of mean 1 for the scores of a mini-batch: sigmoid, normalised."""
    weights = scores.sigmoid()
    return weights / weights.mean()


class LabelEmbedding:
    """Embeds an example as its label, one-hot.

    Args:
        classes: number of classes C >= 2.
    """

    def __init__(self, classes: int) -> None:
        self.size = classes

    def __call__(self, inputs: Tensor | None, targets: Tensor) -> Tensor:
        """Return embeddings [n, C] for labels [n]; inputs are not looked at."""
        return functional.one_hot(targets.long(), self.size).float()


class FeatureEmbedding:
    """Embeds an example as principal components of a network's features and the label.

    The features are the inputs of the last linear layer. They are divided by the root
    of their whole variance, so that they do not drown the one-hot label, taken together
    with it, and reduced to components of unit deviation.

    Args:
        network: copied, and left as it is then.
        inputs: of examples that the components are those of, shape [n, ...].
        targets: their labels, shape [n].
        classes: number of classes C >= 2.

    Raises:
        ShapeError: if the network has no linear layer.
    """

    def __init__(
        self, network: nn.Module, inputs: Tensor, targets: Tensor, classes: int
    ) -> None:
        self._network = copy.deepcopy(network).to(inputs.device).eval()
        linear = [m for m in self._network.modules() if isinstance(m, nn.Linear)]
        if not linear:
            raise ShapeError(
                "an embedding of features needs a network with a linear layer, got "
                f"{type(network).__name__} without one"
            )
        self._seen: list[Tensor] = []
        linear[-1].register_forward_pre_hook(self._note)
        self._labels = LabelEmbedding(classes)
        self._scale = 1.0
        features = self._features(inputs)
        self._scale = max(1e-12, float(features.var(0).sum().sqrt()))
        known = self._beside(features / self._scale, targets)
        self.size = min(FEATURES, *known.shape)
        reduced = PCA(self.size, whiten=True, random_state=0).fit(known.cpu().numpy())
        scale = torch.from_numpy(reduced.explained_variance_).clamp(min=1e-12).sqrt()
        components = torch.from_numpy(reduced.components_) / scale[:, None]
        self._components = components.to(known)
        self._mean = torch.from_numpy(reduced.mean_).to(known)

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        """Return embeddings [n, 10] (fewer where less is known) of examples."""
        known = self._beside(self._features(inputs), targets)
        found: Tensor = (known - self._mean) @ self._components.T
        return found

    def _beside(self, features: Tensor, targets: Tensor) -> Tensor:
        return torch.cat([features, self._labels(None, targets).to(features)], 1)

    def _features(self, inputs: Tensor) -> Tensor:
        with torch.no_grad():
            self._network(inputs)
        return self._seen.pop().float().flatten(1) / self._scale

    def _note(self, layer: nn.Module, inputs: tuple[Any, ...]) -> None:
        self._seen.append(inputs[0])

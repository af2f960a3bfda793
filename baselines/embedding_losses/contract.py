"""The contract of a loss of embeddings, the registry, and how one is made."""

import inspect
from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn
from torch.linalg import vector_norm

from metricopt.errors import ConfigError, DataError, ShapeError, require_ranges
from metricopt.registry import Registry

Triplets = tuple[Tensor, Tensor, Tensor]
"""Places of anchors, positives and negatives in a mini-batch, each of shape [T]."""


class EmbeddingLoss(nn.Module, ABC):
    """A loss of the distances between the embeddings of one mini-batch.

    Only directions count: embeddings are brought to unit length first. What the loss
    learns itself are its parameters. A call leaves no trace unless a loss says so.

    Args:
        classes: number of training classes, for losses that learn something of each.
        size: length of an embedding, E.

    Raises:
        ConfigError: if either is less than 1.
    """

    def __init__(self, classes: int, size: int) -> None:
        super().__init__()
        self.classes, self.size = classes, size
        require_ranges("an embedding loss", vars(self), classes=">= 1", size=">= 1")

    def forward(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of one mini-batch, a scalar.

        Args:
            embeddings: embeddings of any length but 0, shape [n, E].
            targets: classes, shape [n], integers >= 0.

        Returns:
            The loss; 0 with gradient 0 where the mini-batch has no pairs to compare,
            and NaN where an embedding is not finite, so that one diverged row of many
            does not stop the others.

        Raises:
            ShapeError: if the shapes do not go together, or E is another size.
            DataError: if there is no example, a target is no class, or an embedding
                is zero.
        """
        self._check(embeddings, targets)
        lengths = vector_norm(embeddings, dim=1, keepdim=True)
        if not bool(lengths.isfinite().all()):
            return embeddings.sum() * torch.nan
        zeros = (lengths[:, 0] == 0).nonzero()[:, 0].tolist()
        if zeros:
            raise DataError(
                "an embedding loss needs embeddings of length above 0, got zeros for "
                f"example {zeros[0]} ({len(zeros)} of {len(lengths)} are zero)"
            )
        return self._loss(embeddings / lengths, targets.long())

    @abstractmethod
    def _loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of embeddings of unit length."""

    def _check(self, embeddings: Tensor, targets: Tensor) -> None:
        together = embeddings.ndim == 2 and tuple(targets.shape) == (len(embeddings),)
        if not together or embeddings.shape[1] != self.size:
            raise ShapeError(
                f"an embedding loss of size {self.size} needs embeddings [n, "
                f"{self.size}] and targets [n], got embeddings "
                f"{list(embeddings.shape)} and targets {list(targets.shape)}"
            )
        if len(embeddings) == 0:
            raise DataError("an embedding loss needs at least one example, got 0")
        if targets.is_floating_point() or targets.min() < 0:
            raise DataError(
                "an embedding loss needs integer targets >= 0, got "
                f"{targets.dtype} from {targets.min().item()}"
            )


EMBEDDING_LOSSES: Registry[type[EmbeddingLoss]] = Registry(
    "embedding loss", "baselines.embedding_losses"
)
"""Registered classes; `make_embedding_loss` makes one of them."""


def make_embedding_loss(
    name: str, *, classes: int, size: int, **settings: Any
) -> EmbeddingLoss:
    """Return the registered embedding loss called `name`.

    Args:
        name: a name in `EMBEDDING_LOSSES`.
        classes: number of training classes.
        size: length of an embedding, E.
        **settings: further keyword arguments of the loss.

    Raises:
        ConfigError: if there is no such loss, or it does not know a setting or its
            value.
    """
    kind = EMBEDDING_LOSSES.get(name)
    known = list(inspect.signature(kind).parameters)[2:]
    unknown = [setting for setting in settings if setting not in known]
    if unknown:
        raise ConfigError(
            f"embedding loss {name!r} has no setting {', '.join(unknown)}; "
            f"known: {', '.join(known) or 'none'}"
        )
    return kind(classes, size, **settings)

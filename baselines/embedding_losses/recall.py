"""Recall loss by black-box differentiation: every image is a query over the others."""

import torch
from torch import Tensor

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, EmbeddingLoss
from baselines.losses.blackbox_ranking import recall_loss
from metricopt.errors import ConfigError


@EMBEDDING_LOSSES.register("recall")
class Recall(EmbeddingLoss):
    """Mean weight of the number x of other classes' images ahead of a positive.

    The weight is log(1 + log(1 + x)). Images are ranked by their cosine with the query.
    The gallery of a query is the rest of the mini-batch, and earlier mini-batches if
    the loss has a memory.

    With a memory the loss is not the same at every call. It belongs to one training,
    and its state dictionary holds it. Only calls in training mode whose embeddings
    have gradients use it; `eval()` makes the loss one of its arguments alone.

    Args:
        classes: number of training classes; not used.
        size: of an embedding, E.
        lam: strength of the interpolation, above 0, see `blackbox_ranking.rank`.
        margin: in cosine, by how much a positive has to be ahead.
        memory: mini-batches that are remembered, at least 0. The source has 3.

    Raises:
        ConfigError: if a setting is out of its range.

    Source: Rolinek et al., CVPR 2020, sec. 4, with the values for Stanford Online
    Products. Differs: see `blackbox_ranking`; by default there is no memory.
    """

    def __init__(
        self,
        classes: int,
        size: int,
        *,
        lam: float = 4.0,
        margin: float = 0.02,
        memory: int = 0,
    ) -> None:
        super().__init__(classes, size)
        if lam <= 0 or memory < 0:
            raise ConfigError(
                f"recall needs lam > 0 and memory >= 0, got lam={lam} and "
                f"memory={memory}"
            )
        self.lam, self.margin, self.memory = lam, margin, memory
        kept = memory > 0
        self.register_buffer("past", torch.zeros(0, size), persistent=kept)
        past_targets = torch.zeros(0, dtype=torch.long)
        self.register_buffer("past_targets", past_targets, persistent=kept)

    def _loss(self, embeddings: Tensor, targets: Tensor) -> Tensor:
        scores = _without_self(embeddings @ embeddings.T)
        relevant = _without_self(targets[:, None] == targets)
        if self.memory and self.training and embeddings.requires_grad:
            past = self.past.to(embeddings)
            scores = torch.cat([scores, embeddings @ past.T], dim=1)
            earlier = targets[:, None] == self.past_targets.to(targets)
            relevant = torch.cat([relevant, earlier], dim=1)
            self._remember(embeddings.detach(), targets)
        return recall_loss(scores, relevant, margin=self.margin, lam=self.lam)

    def _remember(self, embeddings: Tensor, targets: Tensor) -> None:
        count = self.memory * len(targets)
        past, past_targets = self.past.to(embeddings), self.past_targets.to(targets)
        self.past = torch.cat([past, embeddings])[-count:]
        self.past_targets = torch.cat([past_targets, targets])[-count:]

    def _load_from_state_dict(self, state: dict, prefix: str, *more: object) -> None:
        # The memory grows at first, and torch loads only what has the same shape.
        for name in ("past", "past_targets"):
            if prefix + name in state:
                setattr(self, name, torch.empty_like(state[prefix + name]))
        super()._load_from_state_dict(state, prefix, *more)


def _without_self(pairs: Tensor) -> Tensor:
    """Return an n x n matrix without its diagonal, shape [n, n - 1]."""
    count = len(pairs)
    others = ~torch.eye(count, dtype=torch.bool, device=pairs.device)
    return pairs[others].view(count, count - 1)

"""The surrogate of translations, which reads the log-probabilities of right pieces.

Source: Huang et al., ICLR 2022, and its published code for text: a number of the right
piece at every place goes through two transformer layers with learned places; a
sentence's loss is the absolute value of their mean. Differs: the number is the
log-probability, where theirs is the score, which says nothing without those of other
pieces. Layers normalise first: with those that normalise last, a loss has hardly a
slope where networks begin. The loss of the length stays: no piece tells of it.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from baselines.learned_losses.surrogates.contract import (
    KINDS,
    Groups,
    Surrogate,
    SurrogateKind,
)
from metricopt.errors import DataError, ShapeError
from metricopt.losses.contract import Loss
from metricopt.losses.sentences import (
    LENGTH,
    SentenceLoss,
    length_loss,
    piece_log_probabilities,
    piece_loss,
)
from metricopt.structured.sentences import are_sentences, unpacked

LAYERS = 2


class SentenceSurrogate(Surrogate):
    """A loss: the mean of |v(l)| over sentences, l the log-probabilities of pieces.

    v is the mean over the places of a sentence. `anchored`, which is ours, is
    |v(l) - v(0)|, so that nothing has a smaller loss than a sentence that is right.

    Args:
        length: most places L.
        width: units at every place.
        heads: heads of attention.
        anchored: see `Surrogate`.
    """

    def __init__(
        self, length: int, width: int = 32, heads: int = 4, *, anchored: bool = False
    ) -> None:
        super().__init__(anchored=anchored)
        self.entry = nn.Linear(1, width)
        self.places = nn.Parameter(0.02 * torch.randn(length, width))
        self.layers = nn.ModuleList(
            nn.TransformerEncoderLayer(
                width,
                heads,
                2 * width,
                dropout=0.0,
                batch_first=True,
                # The other way round, nothing has a slope far from what is right.
                norm_first=True,
            )
            for _ in range(LAYERS)
        )
        self.last = nn.Linear(width, 1)

    def forward(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of every group, shape [...], not negative.

        Args:
            outputs: candidates, shape [..., n, 1 + L, 2, K + 8].
            targets: packed sentences, shape [..., n, L + A].

        Raises:
            ShapeError: if there are more or fewer places.
        """
        length = outputs.shape[-3] - 1
        if length != len(self.places):
            raise ShapeError(
                f"this surrogate is of sentences of {len(self.places)} places, got "
                f"{length}"
            )
        log_p, here = piece_log_probabilities(outputs, targets)
        values = self.values(log_p, here)
        if self.anchored:
            values = values - self.values(torch.zeros_like(log_p), here)
        losses: Tensor = self.scale * values.abs().mean(-1)
        return losses

    def values(self, log_p: Tensor, here: Tensor) -> Tensor:
        """Return the value of every sentence, shape [...].

        Args:
            log_p: log-probabilities of the right pieces, shape [..., L].
            here: which places have a piece, one at least of each sentence.
        """
        # Places behind the longest sentence are nothing to anyone.
        wide = int(here.flatten(0, -2).any(0).nonzero().max()) + 1
        own, there = (part[..., :wide].flatten(0, -2) for part in (log_p, here))
        hidden = self.entry(own[..., None]) + self.places[:wide]
        # Other kernels of attention have no second derivative, for the penalty.
        with sdpa_kernel(SDPBackend.MATH):
            for layer in self.layers:
                hidden = layer(hidden, src_key_padding_mask=~there)
        each = self.last(hidden)[..., 0] * there
        return (each.sum(-1) / there.sum(-1)).view(log_p.shape[:-1])


@KINDS.register("sentences")
class SentenceKind(SurrogateKind):
    """Candidates of pieces at every place, with the packed references.

    Candidates are recorded in single precision, which has room for their numbers.
    """

    loss = SentenceLoss()
    shape = "[1 + L, 2, K + 8]"
    dtype = torch.float32

    def check(self, outputs: Any, targets: Any) -> None:
        """Check that outputs are candidates of packed sentences."""
        if (
            not isinstance(outputs, Tensor)
            or outputs.ndim != 4
            or outputs.shape[2] != 2
        ):
            got = list(outputs.shape) if isinstance(outputs, Tensor) else "a tuple"
            raise ShapeError(
                "a surrogate of sentences needs outputs [N, 1 + L, 2, K + 8], got "
                f"{got}"
            )
        if not are_sentences(targets):
            raise DataError("a surrogate of sentences needs packed sentences")
        unpacked(targets, outputs.shape[1] - 1)

    def make(self, recorded: Groups, *, anchored: bool) -> SentenceSurrogate:
        """Return a surrogate with random weights for sentences of this length."""
        return SentenceSurrogate(recorded.outputs.shape[-3] - 1, anchored=anchored)

    def base_losses(self, groups: Groups) -> Tensor:
        """Return the loss of the pieces of every group."""
        return piece_loss(groups.outputs, groups.targets)

    def beside(self, surrogate: Surrogate) -> Loss:
        """Return the surrogate with the loss of the length, as in the usual loss."""

        def loss(outputs: Tensor, targets: Tensor) -> Tensor:
            return surrogate(outputs, targets) + LENGTH * length_loss(outputs, targets)

        return loss

"""A reader of gated convolutions, with attention between question and paragraph.

From random weights and few questions it learns far more than a transformer does.

Source: Dauphin et al., ICML 2017 (gated convolutions); Seo et al., ICLR 2017 (attention
both ways); Yu et al., ICLR 2018 (convolutions in the place of recurrences).
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from benchmarks.networks.reading.contract import (
    MATCHES,
    PARAGRAPH,
    QUESTION,
    SEGMENTS,
    Reader,
    with_ends,
)

NEVER = -1e4
"""Score of a place that is not looked at."""


@dataclass(frozen=True)
class ConvolutionalSize:
    """How large a reader is.

    Attributes:
        width: size E of the vector at every place.
        before: dilations of the convolutions that read question and paragraph alike.
        after: dilations of those that know of both.
        kernel: places that a convolution sees.
        dropout: share of numbers that are dropped in training.
    """

    width: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    kernel: int = 5
    dropout: float = 0.3


class GatedConvolution(nn.Module):
    """Adds a gated convolution of normalised vectors [N, L, E] to them."""

    def __init__(self, size: ConvolutionalSize, dilation: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size.width)
        self.dropout = nn.Dropout(size.dropout)
        self.convolution = nn.Conv1d(
            size.width,
            2 * size.width,
            size.kernel,
            padding="same",
            dilation=dilation,
        )

    def forward(self, hidden: Tensor, there: Tensor) -> Tensor:
        """Return vectors of the same shape; empty places, not `there`, are not read."""
        read = self.dropout(self.norm(hidden)) * there
        return hidden + nn.functional.glu(self.convolution(read.mT).mT, -1)


class Attention(nn.Module):
    """Attention of every place to the question, and of the question to the paragraph.

    Source: Seo et al., ICLR 2017. Differs: similarity is bilinear.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.similarity = nn.Linear(width, width, bias=False)
        self.joined = nn.Linear(4 * width, width)

    def forward(self, hidden: Tensor, segments: Tensor) -> Tensor:
        """Return vectors [N, L, E] from such vectors and int64 segments [N, L]."""
        asked = segments == QUESTION
        # The question comes first: what is behind the longest one is not compared.
        longest = max(1, int(asked.sum(1).max()))
        question = hidden[:, :longest]
        scores = self.similarity(hidden) @ question.mT / hidden.shape[-1] ** 0.5
        scores = scores.float().masked_fill(~asked[:, None, :longest], NEVER)
        of_question = scores.softmax(-1).to(question.dtype) @ question
        likeness = scores.amax(-1).masked_fill(segments != PARAGRAPH, NEVER)
        of_paragraph = likeness.softmax(-1).to(hidden.dtype)[:, None] @ hidden
        parts = [hidden, of_question, hidden * of_question, hidden * of_paragraph]
        joined: Tensor = self.joined(torch.cat(parts, -1))
        return joined


class ConvolutionalBody(nn.Module):
    """Convolutions, attention, convolutions: a vector of every place, [N, L, E].

    Inputs are int64 [N, 3, L]: characters by number, 0 where there is none; segments,
    the question first; and matches with the question.

    Args:
        vocabulary: numbers of characters.
        size: how large it is.
    """

    def __init__(self, vocabulary: int, size: ConvolutionalSize) -> None:
        super().__init__()
        self.characters = nn.Embedding(vocabulary, size.width, padding_idx=0)
        self.segments = nn.Embedding(len(SEGMENTS), size.width)
        self.matches = nn.Embedding(MATCHES, size.width)
        self.dropout = nn.Dropout(size.dropout)
        self.before, self.after = (
            nn.ModuleList(GatedConvolution(size, dilation) for dilation in dilations)
            for dilations in (size.before, size.after)
        )
        self.attention = Attention(size.width)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the vectors."""
        ids, segments, matches = inputs.unbind(1)
        there = (ids > 0)[..., None]
        hidden = self.dropout(self.characters(ids))
        hidden = hidden + self.segments(segments) + self.matches(matches)
        for layer in self.before:
            hidden = layer(hidden, there)
        hidden = self.attention(hidden, segments)
        for layer in self.after:
            hidden = layer(hidden, there)
        return hidden


def convolutional_reader(vocabulary: int, size: ConvolutionalSize) -> Reader:
    """Return a reader of a size, for inputs of any length."""
    return with_ends(ConvolutionalBody(vocabulary, size), size.width)

"""The contract of translators: from a source to candidates of pieces at all places."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from benchmarks.networks.translation.mask_predict import Passes, mask_predict
from metricopt.errors import ConfigError, DataError, ShapeError
from metricopt.process.seeding import globally_seeded
from metricopt.registry import Registry
from metricopt.structured.sentences import (
    LEAST,
    MASK,
    NONE,
    NOTHING,
    RESERVED,
    SPELLED,
    certain,
    coded,
    listed,
    spelled,
)

PERIOD = 10_000.0
"""Longest period of the sinusoids that tell places, in turns of 2 pi."""


@dataclass(frozen=True)
class TranslatorSize:
    """How large a translator is, and how it decides.

    Attributes:
        width: size of the vector at every place.
        layers: transformer layers of the encoder, and of the decoder.
        heads: heads of attention.
        hidden: units of the layer inside of every layer.
        passes: how a sentence is written.
        dropout: share of numbers that are dropped in training.
        listed: candidates K in the outputs at every place.
    """

    width: int
    layers: int
    heads: int
    hidden: int
    passes: Passes
    dropout: float = 0.1
    listed: int = 8


class TranslatorBody(nn.Module):
    """An encoder of the source, and a decoder of all places of the target at once.

    Inputs are int64 [N, 3, L]: pieces of the source; what is given of the target, MASK
    where a piece is hidden; and the hidden pieces, whose probabilities are asked for
    and which the network does not see. With no target given, the sentence is written
    by mask-predict, and nothing is asked for.

    Pieces have one embedding, for both languages and as the weights of their scores.

    Args:
        vocabulary: numbers of pieces.
        length: most places L.
        size: how large it is.

    Source: Gu et al., ICLR 2018; Ghazvininejad et al., EMNLP 2019. Differs: sinusoids
        instead of learned places, normalisation first.
    """

    places: Tensor

    def __init__(self, vocabulary: int, length: int, size: TranslatorSize) -> None:
        super().__init__()
        self.size = size
        self.pieces = nn.Embedding(vocabulary, size.width, padding_idx=NOTHING)
        self.lengths = nn.Embedding(length, size.width)
        for table in (self.pieces, self.lengths):
            nn.init.normal_(table.weight, std=size.width**-0.5)
        with torch.no_grad():
            self.pieces.weight[NOTHING].zero_()
        places = _sinusoids(length + 1, size.width)
        self.register_buffer("places", places, persistent=False)
        every: dict[str, Any] = {
            "dim_feedforward": size.hidden,
            "dropout": size.dropout,
            "batch_first": True,
            "norm_first": True,
        }
        shape = size.width, size.heads
        self.encoder = nn.ModuleList(
            nn.TransformerEncoderLayer(*shape, **every) for _ in range(size.layers)
        )
        self.read = nn.LayerNorm(size.width)
        self.decoder = nn.ModuleList(
            nn.TransformerDecoderLayer(*shape, **every) for _ in range(size.layers)
        )
        self.written = nn.LayerNorm(size.width)

    def forward(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return states of the length and of all places, and what is known of them.

        Returns:
            States [N, 1 + L, E]; and int64 [N, 2, 1 + L], the number that is certain at
            a place, NONE where the state decides, and the number that is asked for.
        """
        source, given, asked = inputs.unbind(1)
        memory, empty = self._encoded(_cut(source))
        is_given = (given != NOTHING).any(1)
        if bool(is_given.any() & ~is_given.all()):
            raise ShapeError("of a batch, every input must give a target, or none")
        if bool(is_given.any()):
            wide = _cut(given).shape[1]
            states = self._states(given[:, :wide], memory, empty)
            hidden = given == MASK
            sure = given.masked_fill(hidden, NONE)
            asked = asked.where(hidden & (asked >= RESERVED), NONE)
            length = (given != NOTHING).sum(1)
        else:
            states, sure = self._decoded(memory, empty, given.shape[1])
            asked, length = torch.full_like(sure, NONE), sure.new_full((1,), NONE)
        known = torch.stack([sure, asked], 1)
        own = torch.stack([length.new_full((1,), NONE).expand_as(length), length], 1)
        known = torch.cat([own[..., None].expand(len(inputs), -1, -1), known], 2)
        behind = inputs.shape[2] - states.shape[1]
        states = nn.functional.pad(states, (0, 0, 0, behind))
        return torch.cat([memory[:, :1], states], 1), known

    def _encoded(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """Return states of the length and of the source, and which are of nothing."""
        # The length is read at a place of its own, before the source.
        source = nn.functional.pad(source, (1, 0), value=MASK)
        empty = source == NOTHING
        hidden = self._embedded(source)
        for layer in self.encoder:
            hidden = layer(hidden, src_key_padding_mask=empty)
        return self.read(hidden), empty

    def _states(self, target: Tensor, memory: Tensor, empty: Tensor) -> Tensor:
        """Return the states of all places of a target [N, L'], shape [N, L', E]."""
        hidden = self._embedded(target)
        nothing = target == NOTHING
        for layer in self.decoder:
            hidden = layer(
                hidden,
                memory,
                tgt_key_padding_mask=nothing,
                memory_key_padding_mask=empty,
            )
        return self.written(hidden)

    def _decoded(
        self, memory: Tensor, empty: Tensor, length: int
    ) -> tuple[Tensor, Tensor]:
        """Return states of the sentences that are written, and what is certain."""
        log_p = length_log_probabilities(memory[:, 0], self.lengths.weight)
        count = self.size.passes.lengths
        lengths = 1 + log_p.topk(min(count, length)).indices
        count = lengths.shape[1]
        memory, empty = (part.repeat_interleave(count, 0) for part in (memory, empty))

        def scored(target: Tensor) -> tuple[Tensor, Tensor]:
            states = self._states(target, memory, empty)
            return states, piece_log_probabilities(states, self.pieces.weight)

        states, chosen = mask_predict(scored, lengths, self.size.passes)
        places = torch.arange(length, device=lengths.device)
        return states, torch.where(places < chosen[:, None], NONE, NOTHING)

    def _embedded(self, pieces: Tensor) -> Tensor:
        found = self.pieces(pieces) * math.sqrt(self.size.width)
        dropped = found + self.places[: pieces.shape[1]].to(found)
        return nn.functional.dropout(dropped, self.size.dropout, self.training)


class States(nn.Identity):
    """The states of all places as they are; FiLM stands here.

    Attributes:
        channel_dim: axis of the channels.
    """

    channel_dim = -1


class Candidates(nn.Module):
    """From states to the candidates of every place; see `structured.sentences`.

    Args:
        count: candidates K that are listed.
        vocabulary: numbers of pieces.

    Attributes:
        texts: code points of every piece, one after the other, 16 each. They are kept
            with the weights: a network is of its vocabulary.
    """

    texts: Tensor

    def __init__(self, count: int, vocabulary: int) -> None:
        super().__init__()
        self.count = count
        codes = torch.zeros(vocabulary * SPELLED, dtype=torch.int32)
        self.register_buffer("texts", codes)

    def forward(
        self, states: Tensor, known: Tensor, pieces: Tensor, lengths: Tensor
    ) -> Tensor:
        """Return outputs [N, 1 + L, 2, K + 8].

        Args:
            states: shape [N, 1 + L, E].
            known: what is certain, and what is asked for, int64, [N, 2, 1 + L].
            pieces: embedding of pieces, shape [V, E].
            lengths: weights of the scores of lengths, shape [L, E].
        """
        sure, asked = known.unbind(1)
        length_log_p = length_log_probabilities(states[:, 0], lengths)
        length = listed(length_log_p, asked[:, 0], self.count, 1)
        found = certain(sure[:, 1:], self.count)
        # Only where the states decide: most places of a batch may be behind the end.
        open_ = sure[:, 1:] == NONE
        log_p = piece_log_probabilities(states[:, 1:][open_], pieces)
        found[open_] = listed(log_p, asked[:, 1:][open_], self.count, RESERVED)
        texts = self.texts.view(-1, SPELLED)
        return torch.cat([spelled(length[:, None], None), spelled(found, texts)], 1)


class Translator(nn.Module):
    """A network from inputs [N, 3, L] to candidates [N, 1 + L, 2, K + 8].

    FiLM moves the states that decide in the end. What they were made from, the length
    and the pieces of earlier passes, stays.

    Attributes:
        sites: where FiLM stands by default.
        pretrained: there are no weights it may start from.
    """

    sites = ("states",)
    pretrained = None

    def __init__(self, vocabulary: int, length: int, size: TranslatorSize) -> None:
        super().__init__()
        self.body = TranslatorBody(vocabulary, length, size)
        self.states = States()
        most = 2 + min(length, vocabulary - RESERVED)
        self.candidates = Candidates(min(size.listed, most), vocabulary)

    def spell(self, texts: Sequence[str]) -> None:
        """Take the texts of all pieces, with their spaces.

        Raises:
            ConfigError: if they are of another number of pieces.
            DataError: if one is longer than a piece may be.
        """
        own = self.candidates.texts
        if len(texts) * SPELLED != len(own):
            raise ConfigError(
                f"this translator has {len(own) // SPELLED} pieces, got texts of "
                f"{len(texts)}"
            )
        longest = max(texts, key=len)
        if len(longest) > SPELLED:
            raise DataError(
                f"a piece has {SPELLED} characters or fewer, got {longest!r}"
            )
        own.copy_(coded(texts, SPELLED).flatten())

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the candidates of the length and of every place."""
        states, known = self.body(inputs)
        weights = self.body.pieces.weight, self.body.lengths.weight
        return self.candidates(self.states(states), known, *weights)


def piece_log_probabilities(states: Tensor, pieces: Tensor) -> Tensor:
    """Return log-probabilities of the pieces from `RESERVED` on, [..., V - RESERVED].

    Args:
        states: shape [..., E].
        pieces: embedding of all pieces, shape [V, E].
    """
    return linear(states, pieces[RESERVED:]).float().log_softmax(-1)


def length_log_probabilities(states: Tensor, lengths: Tensor) -> Tensor:
    """Return log-probabilities of the lengths from 1 on, shape [N, L]."""
    return linear(states, lengths).float().log_softmax(-1)


TRANSLATORS: Registry[Callable[[int, int], Translator]] = Registry(
    "translator", "benchmarks.networks.translation"
)
"""From numbers of pieces and places to a network."""


def build_translator(name: str, vocabulary: int, length: int, seed: int) -> Translator:
    """Return a translator with random weights, drawn from a seed of its own.

    Raises:
        ConfigError: if there is no such network, or there are too few pieces or places.
    """
    make = TRANSLATORS.get(name)
    least = RESERVED + LEAST
    if vocabulary < least or length < LEAST:
        raise ConfigError(
            f"a translator needs {least} pieces and {LEAST} places or more, got "
            f"{vocabulary} and {length}"
        )
    with globally_seeded(seed):
        return make(vocabulary, length)


def _cut(pieces: Tensor) -> Tensor:
    """Return pieces [N, L] without the places at the end where nobody has one."""
    used = (pieces != NOTHING).any(0).nonzero()
    return pieces[:, : int(used.max()) + 1 if len(used) else 1]


def _sinusoids(count: int, width: int) -> Tensor:
    """Return what tells places apart, shape [count, width].

    Source: Vaswani et al., NeurIPS 2017.
    """
    steps = torch.arange(0, width, 2) / width
    angles = torch.arange(count)[:, None] / PERIOD**steps
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(1)[:, :width]

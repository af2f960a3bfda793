"""Sentences: what a source says in another language."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from baselines.training.batches import Batches
from benchmarks.data.translation.contract import TEST, TRAIN, TRANSLATION, Pair
from benchmarks.networks.translation.contract import Translator, build_translator
from benchmarks.problems.splits import Splits
from benchmarks.problems.structured.contract import (
    MODALITIES,
    Modality,
    StructuredProblem,
    StructuredTraining,
)
from benchmarks.problems.structured.pairs import SentenceBatches, SentencePairs
from benchmarks.problems.structured.vocabulary import Vocabulary
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError, DataError
from metricopt.metrics.sentences import CorpusBleu
from metricopt.process.seeding import make_generator
from metricopt.structured.sentences import sentences_of

SHOWN = 6
"""Sentences of a picture."""


@MODALITIES.register("sentences")
class SentenceModality(Modality):
    """Sentences in pieces. The size of a problem is most pieces, and numbers of pieces.

    Sentences to learn from that have more pieces are left out. Others are cut for the
    network; references count whole.
    """

    kind = "sentences"
    usual = "ce"
    metrics = (Unit("bleu"),)
    labels = ("BLEU",)

    @property
    def measured(self) -> Mapping[str, str]:
        """The settings of sacrebleu, which records name."""
        return {"sacrebleu": CorpusBleu().signature}

    def splits(self, problem: StructuredProblem, replicate: int) -> Splits:
        """Return the splits for one replicate.

        The data set says which pairs are the test, for all replicates. Of the others a
        random share is `observe`; pairs that share a sentence stay together. The
        vocabulary is of `train` alone.
        """
        length, size = _size(problem)
        data = TRANSLATION.get(problem.dataset)().load(offline=True)
        train, observe = _divided(data.parts[TRAIN], problem, data.label, replicate)
        vocabulary = Vocabulary.of([text for pair in train for text in pair], size)
        return Splits(
            SentencePairs(train, vocabulary, length, learnable=True),
            SentencePairs(observe, vocabulary, length),
            SentencePairs(data.parts[TEST], vocabulary, length),
            data.label,
            data.digest,
        )

    def fresh(self, problem: StructuredProblem, network: str, seed: int) -> Translator:
        """Return a translator with random weights."""
        length, size = _size(problem)
        return build_translator(network, size, length, seed)

    def prepared(self, network: Translator, train: SentencePairs) -> None:
        """Give a translator the texts of its pieces."""
        network.spell(train.vocabulary.texts)

    def batches(self, train: SentencePairs, recipe: StructuredTraining) -> Batches:
        """Return mini-batches of pairs of about one length."""
        return SentenceBatches(train, recipe.batch_size)

    def example(self, problem: StructuredProblem) -> Tensor:
        """Return an input of a translator."""
        return torch.full((1, 3, problem.size[0]), 2, dtype=torch.int64)

    def counted(self, problem: StructuredProblem) -> tuple[int, int]:
        """Return the pairs to learn from, and all."""
        learned, tested = TRANSLATION.get(problem.dataset).expected
        return learned, learned + tested

    def pictured(self, test: SentencePairs, outputs: Tensor) -> Mapping[str, Any]:
        """Return notes with the translations of sentences drawn by a fixed seed.

        Args:
            test: the N pairs.
            outputs: candidates, shape [N, 1 + L, 2, K + 8].

        Returns:
            `translations`: of each the `source`, the `reference` and the `answer`.
        """
        order = torch.randperm(len(test), generator=make_generator("translations"))
        chosen = order[:SHOWN]
        answers = sentences_of(outputs.cpu()[chosen])
        pairs = [test.pairs[row] for row in chosen.tolist()]
        return {
            "translations": [
                {"source": one.source, "reference": one.target, "answer": answer}
                for one, answer in zip(pairs, answers, strict=True)
            ]
        }


def _size(problem: StructuredProblem) -> tuple[int, int]:
    if len(problem.size) != 2:
        raise ConfigError(
            "the size of a problem of sentences is most pieces and numbers of pieces, "
            f"got {problem.size}"
        )
    length, size = problem.size
    return length, size


def _divided(
    pairs: Sequence[Pair], problem: StructuredProblem, label: str, replicate: int
) -> tuple[list[Pair], list[Pair]]:
    """Return the pairs of train and observe, which share no sentence."""
    families = _families(pairs)
    order = list(dict.fromkeys(families))
    count = round(problem.observed * len(order))
    if not 0 < count < len(order):
        raise DataError(
            f"{label} has {len(order)} pairs to train on that share no sentence, of "
            f"which a share of {problem.observed} is observed: expected one or more in "
            "each part"
        )
    generator = make_generator("translation split", problem.dataset, replicate)
    drawn = torch.randperm(len(order), generator=generator).tolist()
    observed = {order[place] for place in drawn[:count]}
    owned = list(zip(families, pairs, strict=True))
    train = [pair for family, pair in owned if family not in observed]
    return train, [pair for family, pair in owned if family in observed]


def _families(pairs: Sequence[Pair]) -> list[int]:
    """Return a number for every pair, the same for pairs that share a sentence."""
    above = list(range(len(pairs)))

    def root(at: int) -> int:
        while above[at] != at:
            above[at] = at = above[above[at]]
        return at

    first: dict[tuple[int, str], int] = {}
    for at, pair in enumerate(pairs):
        for side in enumerate(pair):
            above[root(at)] = root(first.setdefault(side, at))
    return [root(at) for at in range(len(pairs))]

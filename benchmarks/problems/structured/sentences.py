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
from metricopt.metrics.sentences import CorpusBleu
from metricopt.process.seeding import make_generator
from metricopt.structured.sentences import sentences_of

SIZE = "most pieces and numbers of pieces"
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
    sources = TRANSLATION
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
        length, size = problem.two_sizes(SIZE)
        data = self.loaded(problem)
        learnable = data.parts[TRAIN]
        families = _families(learnable)
        observed = problem.observed_groups(
            families,
            "translation split",
            replicate,
            data.label,
            "pairs to train on that share no sentence",
        )
        owned = [*zip(families, learnable, strict=True)]
        train = [pair for family, pair in owned if family not in observed]
        observe = [pair for family, pair in owned if family in observed]
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
        length, size = problem.two_sizes(SIZE)
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

"""Spans: where the answer to a question stands in its paragraph."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from baselines.training.batches import Batches, PermutedBatches
from benchmarks.data.reading.contract import READING, TEST, TRAIN
from benchmarks.networks.reading.contract import Reader, build_reader
from benchmarks.problems.splits import Splits
from benchmarks.problems.structured.contract import (
    MODALITIES,
    Modality,
    StructuredProblem,
    StructuredTraining,
)
from benchmarks.problems.structured.texts import Texts, Vocabulary
from benchmarks.problems.structured.word_pieces import WordPieces
from benchmarks.runs.spec import Unit
from metricopt.process.seeding import make_generator
from metricopt.structured.spans import best_spans, text, unpacked

SIZE = "places and numbers of characters"
SHOWN = 6
"""Questions of a picture."""
AROUND = 12
"""Characters shown on either side of an answer."""


@MODALITIES.register("spans")
class SpanModality(Modality):
    """Spans of characters. The size of a problem is places and numbers of characters.

    Everything a method sees is a window of the paragraph, chosen by the question alone.
    Questions without an answer there are left out of training, and count in judging.
    """

    kind = "spans"
    usual = "ce"
    sources = READING
    metrics = (Unit("rouge-l"), Unit("bleu-4"), Unit("span-f1"))
    labels = ("ROUGE-L", "BLEU-4", "F1")

    def splits(self, problem: StructuredProblem, replicate: int) -> Splits:
        """Return the splits for one replicate.

        The data set says which questions are the test, for all replicates. Of the other
        paragraphs a random share is `observe`. A vocabulary that is not published is of
        `train` alone.
        """
        length, size = problem.two_sizes(SIZE)
        data = self.loaded(problem)
        learnable = data.parts[TRAIN]
        observed = problem.observed_groups(
            [one.paragraph for one in learnable],
            "reading split",
            replicate,
            data.label,
            "paragraphs to train on",
        )
        train = [one for one in learnable if one.paragraph not in observed]
        observe = [one for one in learnable if one.paragraph in observed]
        if problem.vocabulary:
            vocabulary: Vocabulary = WordPieces.named(problem.vocabulary)
        else:
            vocabulary = Vocabulary.of(train, size)
        return Splits(
            Texts(train, vocabulary, length, learnable=True),
            Texts(observe, vocabulary, length),
            Texts(data.parts[TEST], vocabulary, length),
            data.label,
            data.digest,
        )

    def fetch(self, problem: StructuredProblem) -> None:
        """Download the vocabulary if it is a published one."""
        if problem.vocabulary:
            WordPieces.named(problem.vocabulary, offline=False)

    def fresh(self, problem: StructuredProblem, network: str, seed: int) -> Reader:
        """Return a reader with random weights."""
        length, size = problem.two_sizes(SIZE)
        return build_reader(network, size, length, seed)

    def batches(self, train: Texts, recipe: StructuredTraining) -> Batches:
        """Return mini-batches of questions."""
        return PermutedBatches(train, recipe.batch_size)

    def example(self, problem: StructuredProblem) -> Tensor:
        """Return an input of a reader."""
        return torch.ones(1, 3, problem.size[0], dtype=torch.int64)

    def pictured(self, test: Texts, outputs: Tensor) -> Mapping[str, Any]:
        """Return notes with the answers to questions drawn by a fixed seed.

        Args:
            test: the N questions.
            outputs: scores, shape [N, 2, L].

        Returns:
            `questions`: of each the `question`, its `references`, and what stands
            `before`, in the `answer` and `after` it.
        """
        order = torch.randperm(len(test), generator=make_generator("questions"))
        targets = test.targets.cpu()
        places = best_spans(outputs.cpu(), targets)
        codes = unpacked(targets, outputs.shape[-1]).characters
        found = []
        for row in order[:SHOWN].tolist():
            first, last = places[row].tolist()
            parts = {
                "before": codes[row, max(first - AROUND, 0) : first],
                "answer": codes[row, first : last + 1],
                "after": codes[row, last + 1 : last + 1 + AROUND],
            }
            question = test.questions[row]
            found.append(
                {"question": question.text, "references": list(question.answers)}
                | {name: text(part) for name, part in parts.items()}
            )
        return {"questions": found}

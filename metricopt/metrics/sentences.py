"""Corpus BLEU of translations, by sacrebleu."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError
from metricopt.metrics.base import METRICS, Metric, check_outputs
from metricopt.structured.sentences import (
    are_sentences,
    sentences_of,
    texts_of,
    unpacked,
)

MISSING = "to compute BLEU, metricopt needs sacrebleu: pip install 'metricopt[bleu]'"


@METRICS.register("bleu")
class CorpusBleu(Metric):
    """BLEU of all sentences of outputs [N, 1 + L, 2, K + 8] against packed sentences.

    Counts of a sentence are sacrebleu's, and so is what it makes of their sums: the
    value is that of its `corpus_score`, as a fraction. Counts are remembered.

    Raises:
        ConfigError: by `value`, if sacrebleu is not installed.
        DataError: by `value`, if targets are not packed sentences.
        ShapeError: by `value`, if they are of outputs of another length.
        MetricError: by `value`, if an output is NaN.

    Source: Papineni et al., ACL 2002; Post, WMT 2018.
    """

    name = "bleu"
    higher_is_better = True
    reads = "sentences"
    shape = "[N, 1 + L, 2, K + 8]"

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[int]] = {}

    @property
    def signature(self) -> str:
        """What sacrebleu says of its settings."""
        self._scorer.corpus_score(["-"], [["-"]])
        return str(self._scorer.get_signature())

    @cached_property
    def _scorer(self) -> Any:
        try:
            from sacrebleu.metrics.bleu import BLEU
        except ModuleNotFoundError as error:
            raise ConfigError(MISSING) from error
        return BLEU()

    def _value(self, outputs: Tensor, targets: Any) -> float:
        if not are_sentences(targets):
            raise DataError(
                "metric 'bleu' needs sentences as `pack_sentences` gives them, int64 "
                f"[N, L + A], got {type(targets).__name__}"
            )
        check_outputs(self.name, outputs)
        codes = unpacked(targets, outputs.shape[1] - 1).codes
        return self.of_texts(sentences_of(outputs), texts_of(codes))

    def of_texts(self, sentences: list[str], references: list[str]) -> float:
        """Return BLEU of sentences, one reference each, as a fraction."""
        pairs = zip(sentences, references, strict=True)
        counts = torch.tensor([self._counts(*pair) for pair in pairs])
        length, nearest, *others = counts.sum(0).tolist()
        order = len(others) // 2
        score = self._scorer.compute_bleu(
            correct=others[:order],
            total=others[order:],
            sys_len=length,
            ref_len=nearest,
            smooth_method=self._scorer.smooth_method,
        )
        return float(score.score) / 100

    def _counts(self, sentence: str, reference: str) -> list[int]:
        """Return both lengths, common n-grams by order, and all n-grams by order."""
        pair = sentence, reference
        if pair not in self._known:
            one = self._scorer.corpus_score([sentence], [[reference]])
            numbers = [one.sys_len, one.ref_len, *one.counts, *one.totals]
            self._known[pair] = numbers
        return self._known[pair]

"""BLEU of packed sentences against sacrebleu, and what is refused."""

import random
import sys

import pytest
import torch
from sacrebleu.metrics.bleu import BLEU

from metricopt.errors import ConfigError, DataError, MetricError, ShapeError
from metricopt.metrics.sentences import CorpusBleu
from tests.metricopt.structured.test_sentences import WORDS, packed, said


def random_texts(count, seed=0, most=6):
    """Texts, and others that share most of their words."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        words = chance.choices(WORDS[:-1], k=chance.randint(1, most))
        other = [chance.choice([w, w, w, *WORDS[:-1]]) for w in words]
        found.append((" ".join(words), " ".join(other[: chance.randint(1, most)])))
    return found


@pytest.mark.parametrize(("count", "seed"), [(1, 1), (3, 2), (300, 3), (300, 4)])
def test_it_is_sacrebleus(count, seed):
    references, answers = zip(*random_texts(count, seed), strict=True)
    theirs = BLEU().corpus_score(list(answers), [list(references)]).score / 100
    metric = CorpusBleu()
    found = metric.value(said(*answers), packed(*references))
    assert found == pytest.approx(theirs, abs=1e-6)
    # A second time from what is remembered, and by rows.
    rows = torch.stack([said(*answers), said(*references)])
    values = metric.values(rows, packed(*references)).tolist()
    assert values == pytest.approx([found, 1.0 if count > 1 else values[1]], abs=1e-6)


def test_it_is_sacrebleus_on_real_text():
    references = ["Ein Mann, der 2.5 m groß ist, schläft.", "«Ja!» - sagte's Kind …"]
    answers = ["Ein Mann der 2,5 m groß ist schläft .", "Ja! sagte's Kind …"]
    theirs = BLEU().corpus_score(answers, [references]).score / 100
    found = CorpusBleu().of_texts(answers, references)
    assert 0.1 < found < 0.9 and found == pytest.approx(theirs, abs=1e-6)


def test_it_is_of_all_sentences_together():
    references = ("the cat sees a dog", "a big house")
    mean = sum(
        CorpusBleu().value(said(answer), packed(reference))
        for answer, reference in zip(
            ("the cat sees a", "a house"), references, strict=True
        )
    )
    found = CorpusBleu().value(said("the cat sees a", "a house"), packed(*references))
    assert found != pytest.approx(mean / 2, abs=0.01)


def test_nothing_said_is_worth_nothing():
    assert CorpusBleu().value(said("", ""), packed("the cat", "a dog")) == 0


def test_the_signature_says_how():
    assert CorpusBleu().signature.startswith(
        "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:"
    )


def test_wrong_input_is_refused(monkeypatch):
    outputs, targets = said("the cat", "a dog"), packed("the cat", "a dog")
    metric = CorpusBleu()
    with pytest.raises(DataError, match="sentences as `pack_sentences` gives them"):
        metric.value(outputs, torch.zeros(2))
    with pytest.raises(
        ShapeError, match=r"needs outputs \[N, 1 \+ L, 2, K \+ 8\], got \[7"
    ):
        metric.value(outputs[0], targets)
    with pytest.raises(MetricError, match="NaN"):
        metric.value(outputs * torch.nan, targets)
    with pytest.raises(ShapeError, match="not of outputs with 60 places"):
        metric.value(outputs[:, :1].expand(-1, 61, -1, -1), targets)
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(ConfigError, match="needs sacrebleu: pip install"):
        CorpusBleu().value(outputs, targets)

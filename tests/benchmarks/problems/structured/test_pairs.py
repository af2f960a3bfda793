"""Sentences as a translator sees them: pieces, what is hidden, batches, splits."""

import pytest
import torch

from benchmarks.data.translation.contract import Pair
from benchmarks.problems.structured.contract import StructuredProblem, modality_of
from benchmarks.problems.structured.pairs import SentenceBatches, SentencePairs
from benchmarks.problems.structured.sentences import SentenceModality
from benchmarks.problems.structured.vocabulary import Vocabulary
from metricopt.errors import ConfigError, DataError
from metricopt.process.seeding import make_generator
from metricopt.structured.sentences import (
    MASK,
    NOTHING,
    SPELLED,
    UNKNOWN,
    certain,
    coded,
    spelled,
    texts_of,
    unpacked,
)

PAIRS = [
    Pair("the cat sees the dog", "la gatto vede la cane"),
    Pair("the dog", "la cane"),
    Pair("the old dog sees the old cat", "la cane antica vede la gatto antica"),
    Pair("a cat", "una gatto"),
]
LENGTH = 12


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def vocabulary(own_cache):
    return Vocabulary.of([text for pair in PAIRS for text in pair], 50)


def joined(vocabulary, numbers):
    return "".join(vocabulary.texts[number] for number in numbers).strip()


def test_a_vocabulary_is_learned_once_and_keeps_every_text(vocabulary, tmp_path):
    sentences = [text for pair in PAIRS for text in pair]
    assert len(vocabulary) == len(vocabulary.texts) == 50
    again = Vocabulary.of(sentences, 50)
    assert again.texts == vocabulary.texts
    assert len(list(tmp_path.rglob("vocabularies/*.safetensors"))) == 1
    for own in (vocabulary, again):
        encoded = own.encoded(sentences)
        assert [joined(own, each) for each in encoded] == sentences
    assert len(Vocabulary.of(sentences, 40)) == 40
    with pytest.raises(DataError, match="8 sentences do not have a vocabulary of 900"):
        Vocabulary.of(sentences, 900)


def test_characters_outside_of_the_vocabulary_are_unknown(vocabulary):
    (found,) = vocabulary.encoded(["the 猫 cat"])
    assert found.count(UNKNOWN) == 1
    assert joined(vocabulary, found).split() == ["the", "⁇", "cat"]
    # The reference is what it says, not what the vocabulary knows of it.
    pairs = SentencePairs([Pair("a 猫", "una 猫")], vocabulary, LENGTH)
    assert texts_of(unpacked(pairs.targets, LENGTH).codes) == ["una 猫"]
    assert UNKNOWN in pairs.batch(slice(None))[0, 0]


def test_what_is_judged_is_given_nothing(vocabulary):
    pairs = SentencePairs(PAIRS, vocabulary, LENGTH)
    inputs = pairs.batch(torch.tensor([1, 0]))
    assert inputs.shape == (2, 3, LENGTH) and (inputs[:, 1:] == NOTHING).all()
    (own,) = vocabulary.encoded(["the dog"])
    assert inputs[0, 0].tolist() == own + [NOTHING] * (LENGTH - len(own))
    assert len(pairs.first(2)) == 2 and len(pairs.to(torch.device("cpu"))) == 4


def test_longer_sentences_train_nothing_and_are_judged(vocabulary):
    judged = SentencePairs(PAIRS, vocabulary, 6)
    assert len(judged) == 4 and judged.batch(slice(None)).shape == (4, 3, 6)
    learned = SentencePairs(PAIRS, vocabulary, 6, learnable=True)
    assert 0 < len(learned) < 4
    longest = [max(map(len, vocabulary.encoded(pair))) for pair in PAIRS]
    expected = [p for p, n in zip(PAIRS, longest, strict=True) if n <= 6]
    assert learned.pairs == expected
    with pytest.raises(DataError, match="no sentence of 4 has 1 pieces or fewer"):
        SentencePairs(PAIRS, vocabulary, 1, learnable=True)


def test_pieces_are_hidden_at_random_and_asked_for(vocabulary):
    pairs = SentencePairs(PAIRS, vocabulary, 20, learnable=True)
    pieces = unpacked(pairs.targets, 20).pieces
    whole = pairs.batch(slice(None))
    assert ((whole[:, 1] == MASK) == (pieces != NOTHING)).all()
    generator = make_generator("hidden")
    index, counts = torch.tensor([0, 2]), []
    for _ in range(300):
        inputs = pairs.augmented(index, generator)
        hidden = inputs[:, 1] == MASK
        assert torch.equal(
            torch.where(hidden, inputs[:, 2], inputs[:, 1]), pieces[index]
        )
        assert (inputs[:, 2][~hidden] == NOTHING).all()
        counts.append(hidden.sum(1))
    shares = torch.stack(counts) / (pieces[index] != NOTHING).sum(1)
    assert (torch.stack(counts) >= 1).all() and shares.amax() == 1
    # Uniform from 1 to n: the mean is (n + 1) / 2.
    lengths = (pieces[index] != NOTHING).sum(1)
    assert torch.allclose(shares.mean(0), (lengths + 1) / (2 * lengths), atol=0.05)
    part = [
        pairs.augmented(index, make_generator("same"), share)
        for share in (slice(None), slice(1, 2))
    ]
    assert torch.equal(part[0][1:], part[1])


def test_batches_hold_every_pair_once_and_sort_by_length(vocabulary):
    pairs = SentencePairs(PAIRS * 8, vocabulary, 20, learnable=True)
    batches = SentenceBatches(pairs, 4)
    seen = list(batches.epoch(make_generator("epoch")))
    assert len(seen) == batches.steps_per_epoch == 8
    targets = torch.cat([target for _, target in seen])
    assert sorted(map(tuple, targets.tolist())) == sorted(
        map(tuple, pairs.targets.tolist())
    )
    # One batch for each length here, and in no order.
    kinds = [{tuple(row) for row in target.tolist()} for _, target in seen]
    assert all(len(kind) == 1 for kind in kinds)
    assert any(a != b for a, b in zip(kinds, sorted(kinds, key=str), strict=True))
    for inputs, target in seen:
        pieces = unpacked(target, 20).pieces
        hidden = inputs[:, 1] == MASK
        assert torch.equal(torch.where(hidden, inputs[:, 2], inputs[:, 1]), pieces)


def test_pairs_that_share_a_sentence_stay_together():
    problem = StructuredProblem("sentences", "made-sentences", (16, 90), 0.25)
    splits = SentenceModality().splits(problem, 0)
    train, observe = (
        {text for pair in part.pairs for text in pair}
        for part in (splits.train, splits.observe)
    )
    assert not train & observe and len(splits.test) == 64


def test_translations_are_noted_beside_their_references(vocabulary):
    test = SentencePairs(PAIRS, vocabulary, 20)
    pieces = unpacked(test.targets, 20).pieces
    lengths = (pieces != NOTHING).sum(1, keepdim=True)
    texts = coded(vocabulary.texts, SPELLED)
    outputs = [spelled(certain(lengths, 5), None), spelled(certain(pieces, 5), texts)]
    notes = SentenceModality().pictured(test, torch.cat(outputs, 1))
    found = notes["translations"]
    assert sorted(one["source"] for one in found) == sorted(p.source for p in PAIRS)
    assert all(one["answer"] == one["reference"] for one in found)
    assert "tok:13a" in SentenceModality().measured["sacrebleu"]


def test_what_is_no_problem_is_refused():
    with pytest.raises(ConfigError, match="most pieces and numbers of pieces; got"):
        problem = StructuredProblem("sentences", "made-sentences", (16,), 0.2)
        modality_of(problem).splits(problem, 0)
    with pytest.raises(DataError, match="pairs to train on that share no sentence"):
        problem = StructuredProblem("sentences", "made-sentences", (16, 90), 1e-4)
        modality_of(problem).splits(problem, 0)

"""Packed sentences, candidates in outputs, and the loss: hand-worked and refused."""

import math

import pytest
import torch

from metricopt.errors import DataError, ShapeError
from metricopt.losses.sentences import SentenceLoss, length_loss, piece_loss
from metricopt.structured.sentences import (
    FAR,
    NONE,
    NOTHING,
    SPELLED,
    UNKNOWN,
    are_sentences,
    certain,
    coded,
    decided,
    listed,
    lists,
    log_probabilities,
    pack_sentences,
    sentences_of,
    spelled,
    texts_of,
    unpacked,
)

WORDS = ("the", "cat", "dog", "sees", "a", "big", "house", ".")
TEXTS = coded(["", " ⁇ ", "", *(f" {word}" for word in WORDS[:-1]), "."], SPELLED)
LENGTH = 6


def numbers(text):
    """The pieces of a text of known words."""
    return [3 + WORDS.index(word) for word in text.replace(".", " .").split()]


def packed(*references, length=LENGTH):
    return pack_sentences([numbers(r) for r in references], references, length)


def said(*answers, length=LENGTH, count=5):
    """Outputs that say some texts for certain, [N, 1 + L, 2, K + 8]."""
    rows = torch.full((len(answers), length), NOTHING)
    for row, text in zip(rows, answers, strict=True):
        own = torch.tensor(numbers(text), dtype=torch.int64)
        row[: len(own)] = own
    lengths = (rows != NOTHING).sum(1, keepdim=True)
    return outputs_of(certain(torch.cat([lengths, rows], 1), count))


def outputs_of(lists):
    """Outputs with lists [N, 1 + L, 2, K], place 0 the length."""
    return torch.cat([spelled(lists[:, :1], None), spelled(lists[:, 1:], TEXTS)], 1)


def test_what_is_packed_is_there():
    targets = packed("the cat sees a dog.", "a house")
    assert are_sentences(targets) and not are_sentences(targets.float())
    sentences = unpacked(targets, LENGTH)
    assert sentences.pieces[1].tolist() == [7, 9, 0, 0, 0, 0]
    assert texts_of(sentences.codes) == ["the cat sees a dog.", "a house"]
    # Pieces are cut, the text is not.
    short = packed("the cat sees a dog.", length=3)
    assert unpacked(short, 3).pieces.tolist() == [[3, 4, 6]]
    assert texts_of(unpacked(short, 3).codes) == ["the cat sees a dog."]


def test_outputs_spell_sentences():
    outputs = said("the cat.", "", "a big house")
    assert sentences_of(outputs) == ["the cat.", "", "a big house"]
    unknown = certain(torch.tensor([[3, 3, UNKNOWN, 4]]), 5)
    assert sentences_of(outputs_of(unknown)) == ["the ⁇ cat"]


def test_what_is_no_sentence_is_refused():
    with pytest.raises(DataError, match="must be a sentence, got an empty one"):
        pack_sentences([[3]], [" "], LENGTH)
    with pytest.raises(DataError, match=r"must be 1, or 3 or more, got \[2\]"):
        pack_sentences([[2]], ["the"], LENGTH)
    with pytest.raises(ShapeError, match="got 1 lists for 2"):
        pack_sentences([[3]], ["the", "the"], LENGTH)
    with pytest.raises(ShapeError, match="not of outputs with 30 places"):
        unpacked(packed("the cat"), 30)


def test_candidates_are_listed_with_what_is_asked_for():
    log_p = torch.tensor([0.5, 0.3, 0.15, 0.05]).log().expand(2, 4)
    found = listed(log_p, torch.tensor([NONE, 13]), count=4, first=10)
    assert found[0, 1].tolist() == [NONE, NONE, 10, 11]
    assert found[1, 1].tolist() == [NONE, 13, 10, 11]
    assert found[0, 0, 1] == FAR
    assert found[1, 0].exp().tolist()[1:] == pytest.approx([0.05, 0.5, 0.3])
    assert found[1, 0, 0] == pytest.approx(log_p[0].mean().item())
    assert decided(found).tolist() == [10, 10]
    # What is not listed counts as the last one that is.
    asked = log_probabilities(found, torch.tensor([12, 13])).exp()
    assert asked.tolist() == pytest.approx([0.3, 0.05])
    sure = certain(torch.tensor([12]), 4)
    assert decided(sure).tolist() == [12]
    assert log_probabilities(sure, torch.tensor([12])).item() == 0
    assert log_probabilities(sure, torch.tensor([11])).item() == FAR


def test_the_slope_is_in_one_place_of_a_list():
    log_p = torch.tensor([0.5, 0.3, 0.2]).log()
    # Number 10 is asked for, and the best one, too.
    found = listed(log_p, torch.tensor(10), count=4, first=10).requires_grad_()
    (slope,) = torch.autograd.grad(log_probabilities(found, torch.tensor(10)), found)
    assert slope[0].tolist() == [0, 1, 0, 0] and not slope[1].any()


def test_the_loss_is_worked_by_hand():
    found = lists(said("the cat"))
    log_p = torch.full((8,), math.log(0.1))
    log_p[1] = math.log(0.3)
    # The second piece was hidden: 0.3 for "cat", number 4 of 3 to 10.
    found[0, 2] = listed(log_p, torch.tensor(4), 5, 3)
    lengths = torch.tensor([0.2, 0.4, 0.1, 0.1, 0.1, 0.1]).log()
    found[0, 0] = listed(lengths, torch.tensor(2), 5, 1)
    outputs = outputs_of(found)
    targets = packed("the cat")
    piece = -0.9 * math.log(0.3) - 0.1 * log_p.mean().item()
    length = -0.9 * math.log(0.4) - 0.1 * lengths.mean().item()
    # The first piece was given, so that it costs nothing.
    assert piece_loss(outputs, targets).item() == pytest.approx(piece / 2)
    assert length_loss(outputs, targets).item() == pytest.approx(length)
    expected = piece / 2 + 0.1 * length
    assert SentenceLoss()(outputs, targets).item() == pytest.approx(expected)
    rows = SentenceLoss().row_losses(outputs.expand(3, 1, -1, -1, -1), targets[None])
    assert rows.tolist() == pytest.approx([expected] * 3)

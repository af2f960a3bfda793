"""Translators: mask-predict against a loop, what training sees, what is refused."""

import pytest
import torch

from benchmarks.networks.translation.contract import TRANSLATORS, build_translator
from benchmarks.networks.translation.mask_predict import Passes, mask_predict
from metricopt.adapters.film import FiLM
from metricopt.errors import ConfigError, DataError, ShapeError
from metricopt.structured.sentences import (
    MASK,
    NONE,
    NOTHING,
    RESERVED,
    decided,
    lists,
    log_probabilities,
    sentences_of,
)

VOCABULARY, LENGTH = 20, 8


def translator(seed=1):
    return build_translator("tiny", VOCABULARY, LENGTH, seed).eval()


def sources(*rows):
    found = torch.zeros(len(rows), 3, LENGTH, dtype=torch.int64)
    for row, own in zip(found, rows, strict=True):
        row[0, : len(own)] = torch.tensor(own)
    return found


def taught():
    """The target 5 6 7 with its second piece hidden, and 8 with it hidden."""
    inputs = sources([3, 4], [5, 3, 9])
    inputs[0, 1, :3], inputs[0, 2, 1] = torch.tensor([5, MASK, 7]), 6
    inputs[1, 1, 0], inputs[1, 2, 0] = MASK, 8
    return inputs


def test_hidden_pieces_are_asked_for_and_given_ones_are_certain():
    network = translator()
    with torch.no_grad():
        outputs = network(taught())
    assert outputs.shape == (2, 1 + LENGTH, 2, 8 + 8)
    outputs = lists(outputs)
    said = decided(outputs)
    assert said[0, [1, 3]].tolist() == [5, 7] and said[0, 4:].tolist() == [NOTHING] * 5
    assert said[0, 2] >= RESERVED and said[1, 1] >= RESERVED
    known = outputs[:, :, 1, 1]
    # Lengths 3 and 1, and the pieces that are hidden.
    assert known[:, 0].tolist() == [3, 1]
    assert known[0, 2] == 6 and known[1, 1] == 8
    # What is asked for is no input of what is said of it.
    other = taught()
    other[0, 2, 1] = 11
    with torch.no_grad():
        again = lists(network(other))
    assert torch.equal(again[:, :, :, 2:], outputs[:, :, :, 2:])


def test_the_probabilities_are_those_of_all_pieces():
    network = translator()
    inputs = taught()
    every = []
    with torch.no_grad():
        for piece in range(RESERVED, VOCABULARY):
            inputs[0, 2, 1] = piece
            outputs = lists(network(inputs))
            every.append(log_probabilities(outputs[0, 2], torch.tensor(piece)))
    found = torch.stack(every)
    assert found.exp().sum().item() == pytest.approx(1, abs=1e-5)
    assert outputs[0, 2, 0, 0].item() == pytest.approx(found.mean().item(), abs=1e-4)
    best = found.sort(descending=True)
    assert outputs[0, 2, 1, 2:].long().tolist() == (3 + best.indices[:6]).tolist()


def test_sentences_of_a_batch_do_not_see_each_other():
    network = translator()
    rows = ([3, 4], [5, 3, 9, 9, 9, 9, 9], [6])
    with torch.no_grad():
        together = network(sources(*rows))
        alone = torch.cat([network(sources(row)) for row in rows])
    assert torch.equal(*(decided(lists(one)) for one in (together, alone)))
    assert torch.allclose(together, alone, atol=1e-4)


def test_an_empty_source_has_a_translation():
    with torch.no_grad():
        outputs = lists(translator()(sources([])))
    assert outputs.isfinite().all() and (decided(outputs)[0, 1] >= RESERVED)


@pytest.mark.parametrize(("count", "lengths"), [(1, 1), (3, 2), (4, 3)])
def test_mask_predict_is_that_of_a_loop(count, lengths):
    generator = torch.Generator().manual_seed(count)
    tried = torch.randint(1, 7, (4, lengths), generator=generator)
    weights = torch.randn(6, VOCABULARY, 5, generator=generator)

    def scored(target):
        """States depend on all pieces of a sentence, and on the place."""
        wide = target.shape[1]
        seen = weights[0, target].sum(1, keepdim=True)
        states = seen + weights[1, :wide] + weights[2, target]
        scores = states @ weights[3].T
        return states, (2 * scores)[..., RESERVED:].log_softmax(-1)

    states, chosen = mask_predict(scored, tried, Passes(count, lengths))
    for row, own in enumerate(tried.tolist()):
        found = [looped(scored, length, count, int(tried.max())) for length in own]
        best = max(range(lengths), key=lambda at: found[at][0])
        assert chosen[row] == own[best]
        assert torch.allclose(states[row, : own[best]], found[best][1], atol=1e-5)


def looped(scored, length, count, wide):
    """The mean log-probability and the states of one sentence of a length."""
    pieces, sure, kept = [MASK] * length, [0.0] * length, [None] * length
    hidden = range(length)
    for step in range(1, count + 1):
        target = torch.tensor([pieces + [NOTHING] * (wide - length)])
        states, log_p = scored(target)
        for at in hidden:
            sure[at] = log_p[0, at].max().item()
            pieces[at] = RESERVED + int(log_p[0, at].argmax())
            kept[at] = states[0, at]
        again = length * (count - step) // count
        hidden = sorted(range(length), key=lambda at: sure[at])[:again]
        pieces = [MASK if at in hidden else p for at, p in enumerate(pieces)]
    return sum(sure) / length, torch.stack(kept)


def test_film_moves_the_last_decision_alone():
    network = translator()
    inputs = sources([3, 4], [5, 3, 9])
    film = FiLM(network, inputs, sites=network.sites, form="direct")
    assert film.is_cut and film.size == 2 * 32
    with torch.no_grad():
        whole = network(inputs)
        features = film.encode(inputs)
        outputs = film.predict(features, torch.zeros(2, film.size))
        assert torch.allclose(outputs[1], whole, atol=1e-5)
        moved = torch.randn(1, film.size, generator=torch.Generator().manual_seed(0))
        changed = film.predict(features, moved)[0]
    said, other = (decided(lists(one))[:, 1:] for one in (whole, changed))
    assert torch.equal(said == NOTHING, other == NOTHING)
    assert not torch.equal(said, other)


def test_weights_are_of_the_seed_and_shared():
    first, second = translator().state_dict(), translator().state_dict()
    assert all(torch.equal(second[name], value) for name, value in first.items())
    assert not torch.equal(
        translator(2).body.pieces.weight, first["body.pieces.weight"]
    )
    # One table of pieces, in and out; places are no weights.
    assert sum(VOCABULARY in value.shape for value in first.values()) == 1
    assert not any("places" in name for name in first)
    small = TRANSLATORS.get("small")(2_000, 48)
    assert 2 * sum(weight.numel() for weight in small.parameters()) < 4e6


def test_decoding_gives_no_candidate_that_is_asked_for():
    with torch.no_grad():
        outputs = lists(translator()(sources([3, 4])))
    assert (outputs[:, :, 1, 0] == NONE).all()
    length = decided(outputs)[0, 1:].ne(NOTHING).sum()
    assert (outputs[0, 1 : 1 + length, 1, 1] == NONE).all()


def test_a_translator_spells_its_pieces():
    network = translator()
    texts = ["", " ⁇ ", "", *(f" w{number}" for number in range(3, VOCABULARY))]
    network.spell(texts)
    inputs = taught()
    inputs[:, 1][inputs[:, 1] == MASK] = 9
    with torch.no_grad():
        assert sentences_of(network(inputs)) == ["w5 w9 w7", "w9"]
    # The vocabulary is kept with the weights, and not rounded with them.
    other = translator(2)
    other.load_state_dict(network.state_dict())
    with torch.no_grad():
        assert sentences_of(other(inputs)) == ["w5 w9 w7", "w9"]
    with pytest.raises(ConfigError, match="has 20 pieces, got texts of 3"):
        network.spell(texts[:3])
    with pytest.raises(DataError, match="16 characters or fewer, got 'xxx"):
        network.spell([*texts[:-1], 17 * "x"])


def test_what_is_no_translator_is_refused():
    mixed = taught()
    mixed[1, 1:] = NOTHING
    with pytest.raises(ShapeError, match="every input must give a target, or none"):
        translator()(mixed)
    with pytest.raises(ConfigError, match="6 pieces and 3 places or more, got 5 and 8"):
        build_translator("tiny", 5, 8, 0)
    with pytest.raises(ConfigError, match="unknown translator"):
        build_translator("levenshtein", 20, 8, 0)
    with pytest.raises(ConfigError, match="mask-predict"):
        Passes(0, 1)

"""Offsets of known outputs, without a network."""

import math
import pickle
import re
from functools import cache, partial

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import (
    balanced_accuracy_score,
    f1_score,
    mean_absolute_error,
    roc_auc_score,
)

import metricopt
from metricopt import (
    ConfigError,
    DataError,
    MetricOptError,
    ShapeError,
    at_least,
    tune,
)

QUICK = {"queries": 16, "progress": False}
macro_f1 = partial(f1_score, average="macro")


@cache
def rare_digits():
    """Logits and labels of digits on observe and test; half of the classes are rare."""
    pixels, labels = load_digits(return_X_y=True)
    pixels = pixels / 16
    order = np.random.default_rng(0).permutation(len(labels))
    kept, observed, tested = np.split(order, [700, 1250])
    kept = kept[(labels[kept] < 5) | (np.arange(len(kept)) % 16 == 0)]
    model = LogisticRegression(C=0.1, max_iter=1000).fit(pixels[kept], labels[kept])
    return [(model.decision_function(pixels[p]), labels[p]) for p in (observed, tested)]


@cache
def rare_tumours():
    """Log odds and labels of tumours, 1 for malignant, which are rare in training."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    inputs, labels = (inputs - inputs.mean(0)) / inputs.std(0), 1 - labels
    noisy = inputs + 3 * np.random.default_rng(0).normal(size=inputs.shape)
    order = np.random.default_rng(1).permutation(len(labels))
    kept, rest = np.split(order, [250])
    kept = kept[(labels[kept] == 0) | (np.arange(len(kept)) % 6 == 0)]
    model = LogisticRegression(C=0.1, max_iter=200).fit(noisy[kept], labels[kept])
    return model.decision_function(noisy[rest]), labels[rest]


def sigmoid(logits):
    return 1 / (1 + np.exp(-logits))


def test_what_was_found_is_kept_by_pickle_or_as_numbers():
    outputs, labels = rare_digits()[0]
    tuned = tune(outputs, labels, macro_f1, higher_is_better=True, **QUICK)
    assert tuned.offsets.any()
    kept = pickle.loads(pickle.dumps(tuned))
    assert np.array_equal(kept.shifted(outputs), tuned.shifted(outputs))
    by_hand = outputs * tuned.scales.numpy() + tuned.offsets.numpy()
    assert np.allclose(by_hand, tuned.shifted(outputs), atol=1e-5)


@cache
def tuned_digits():
    (logits, labels), _ = rare_digits()
    return tune(logits, labels, "f1_macro", **QUICK)


def test_decisions_gain_on_examples_that_chose_nothing():
    (logits, labels), (test, truth) = rare_digits()
    found = tuned_digits()
    before, after = (
        macro_f1(labels, logits.argmax(1)),
        macro_f1(labels, found.predict(logits)),
    )
    assert (found.metric_before, found.metric_after) == pytest.approx((before, after))
    plain, moved = (
        macro_f1(truth, decided) for decided in (test.argmax(1), found.predict(test))
    )
    assert moved > plain + 0.05
    assert found.expected.low > 0
    assert found.expected.value == pytest.approx(moved - plain, abs=0.1)
    assert found.spent.queries <= 16


def test_offsets_are_what_is_added():
    (logits, _), _ = rare_digits()
    found = tuned_digits()
    offsets = found.offsets.double().numpy()
    assert offsets.shape == (10,)
    moved = logits * found.scales.double().numpy() + offsets
    np.testing.assert_allclose(found.shifted(logits), moved)
    np.testing.assert_array_equal(found.predict(logits), moved.argmax(1))
    assert isinstance(found.predict(torch.tensor(logits)), torch.Tensor)


def test_the_summary_speaks_of_examples():
    lines = tuned_digits().summary().splitlines()
    assert lines[0].startswith("f1_macro on 550 examples: 0.")
    assert not any("network" in line or "observe split" in line for line in lines)
    assert "Outputs are read as logits, targets as class labels." in lines
    assert tuned_digits().warnings == ()


def test_every_form_of_two_classes_gives_the_same_decisions():
    odds, labels = rare_tumours()
    share = sigmoid(odds)
    forms = {
        "decision values": odds,
        "a column": odds[:, None],
        "probabilities": share,
        "of both classes": np.stack([1 - share, share], 1),
    }
    found = {
        name: tune(given, labels, "balanced_accuracy", **QUICK).predict(given)
        for name, given in forms.items()
    }
    best = balanced_accuracy_score(labels, found["decision values"])
    assert best > balanced_accuracy_score(labels, odds > 0) + 0.02
    for decided in found.values():
        assert decided.shape == labels.shape
        score = balanced_accuracy_score(labels, decided)
        assert score == pytest.approx(best, abs=0.015)


@pytest.mark.parametrize(("last", "kind"), [(3, "logits"), (1 + 1e-7, "probabilities")])
def test_all_outputs_say_whether_they_are_probabilities(last, kind):
    odds, labels = np.linspace(0, 1, 300), np.arange(300) % 2
    odds[-1] = last
    settings = QUICK | {"queries": 6, "check_direction": False}
    found = tune(odds, labels, "roc_auc", **settings)
    assert found.found.meaning.kind == kind
    assert found.metric_before == pytest.approx(roc_auc_score(labels, odds))
    share = odds.clip(0, 1)
    both = np.stack([1 - share, share], 1)
    both[-1] = [1 - last, last]
    assert tune(both, labels, "roc_auc", **settings).found.meaning.kind == kind


def test_probabilities_stay_probabilities():
    odds, labels = rare_tumours()
    share = sigmoid(odds)
    both = np.stack([1 - share, share], 1)
    found = tune(both, labels, "balanced_accuracy", **QUICK)
    assert found.found.meaning.link == "softmax"
    shifted = found.shifted(both)
    np.testing.assert_allclose(shifted.sum(1), 1)
    assert shifted[:, 1].mean() > share.mean()
    single = tune(share, labels, "balanced_accuracy", **QUICK)
    assert single.found.meaning.link == "sigmoid"
    assert single.shifted(share).shape == share.shape


def test_a_function_of_the_users_gets_outputs_in_their_own_form():
    odds, labels = rare_tumours()
    share, seen = sigmoid(odds), []

    def cost(y_true, y_prob):
        seen.append((float(y_prob.min()), float(y_prob.max()), y_prob.ndim))
        missed = ((y_prob < 0.5) & (y_true == 1)).mean()
        return missed * 5 + ((y_prob >= 0.5) & (y_true == 0)).mean()

    found = tune(share, labels, cost, higher_is_better=False, **QUICK)
    assert all(low >= 0 and high <= 1 and axes == 1 for low, high, axes in seen)
    assert len(seen) == found.spent.queries
    assert found.metric_after < found.metric_before


def test_columns_reach_the_metric():
    odds, labels = rare_tumours()
    weights = np.where(labels == 1, 9.0, 1.0)
    columns = {"sample_weight": weights}
    found = tune(odds, labels, "accuracy", columns=columns, **QUICK)
    hits = found.predict(odds) == labels
    assert found.metric_after == pytest.approx(np.average(hits, weights=weights))
    assert found.offsets.item() > 0


def test_several_labels_have_an_offset_each():
    (logits, labels), _ = rare_digits()
    sets = ((0, 2, 4, 6, 8), (5, 6, 7, 8, 9), (1, 9))
    targets = np.stack([np.isin(labels, each) for each in sets], 1).astype(int)
    shares = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    outputs = np.stack([shares[:, each].sum(1) for each in sets], 1)
    found = tune(outputs, targets, "f1_macro", **QUICK)
    decided = found.predict(outputs)
    assert decided.shape == targets.shape
    assert found.metric_after == pytest.approx(macro_f1(targets, decided))
    assert found.metric_after > macro_f1(targets, outputs > 0.5)


def test_values_are_scaled_and_shifted():
    inputs, targets = load_diabetes(return_X_y=True)
    predicted = Ridge().fit(inputs[:200], targets[:200]).predict(inputs)
    wrong = 0.7 * predicted + 10  # as of a model that shrinks and is biased
    found = tune(wrong[200:], targets[200:], "neg_mean_absolute_error", **QUICK)
    moved = found.shifted(wrong[200:])
    scale, shift = found.scales.item(), found.offsets.item()
    np.testing.assert_allclose(moved, scale * wrong[200:] + shift, rtol=1e-5)
    np.testing.assert_array_equal(found.predict(wrong[200:]), moved)
    whole = wrong[200:].round()
    found_of_whole = found.predict(whole.astype(int))
    np.testing.assert_array_equal(found_of_whole, found.predict(whole))
    error = mean_absolute_error(targets[200:], moved)
    assert found.metric_after == pytest.approx(-error, rel=1e-6)
    assert error < mean_absolute_error(targets[200:], wrong[200:])


def test_outputs_that_nothing_improves_stay_as_they_are():
    labels = torch.arange(120) % 3
    outputs = 4 * torch.nn.functional.one_hot(labels, 3).double()
    found = tune(outputs, labels, "accuracy", **QUICK)
    assert not found.offsets.any()
    assert found.expected is None
    assert torch.equal(found.shifted(outputs), outputs)
    assert found.metric_before == found.metric_after == 1


def test_answers_are_kept_in_a_file(tmp_path):
    odds, labels = rare_tumours()
    path = tmp_path / "queries.txt"
    first, again = (
        tune(odds, labels, "f1", checkpoint=path, **QUICK) for _ in range(2)
    )
    assert again.spent.replayed == again.spent.queries == first.spent.queries
    assert torch.equal(first.offsets, again.offsets)


ODDS = np.linspace(-2, 2, 60)
LABELS = (np.arange(60) % 3 == 0).astype(int)
REFUSED = {
    "lengths": (
        (ODDS[1:], LABELS),
        {},
        DataError,
        "outputs and targets must have the same length, got 59 outputs and 60 targets",
    ),
    "decided": ((LABELS, LABELS), {}, DataError, "labels that are decided cannot be s"),
    "names": (
        (ODDS, np.array(["a", "b"] * 30)),
        {},
        DataError,
        r"^targets must be one .* got an array of str32 \[60\]: numpy.unique\(names",
    ),
    "several": (
        ((ODDS, ODDS), LABELS),
        {},
        DataError,
        "^outputs must be one tensor or array of numbers, got a tuple of 2: ndarray, n",
    ),
    "lists": (
        (ODDS.tolist(), LABELS),
        {},
        DataError,
        "^outputs must be one .* got a list of 60: .*: pass those of all",
    ),
    "one target": ((ODDS, 3), {}, DataError, "^targets must be one .* got 3: pass"),
    "masked": (
        (np.ma.masked_greater(ODDS, 1), LABELS),
        {},
        DataError,
        "^outputs must hold numbers, got 15 masked values",
    ),
    "strange outputs": (
        (np.where(ODDS > 1.9, np.nan, ODDS), LABELS),
        {},
        DataError,
        "^outputs must be finite .*, got NaN or infinity for 2 of 60 examples, first f",
    ),
    "strange targets": (
        (ODDS, np.where(ODDS > 1.9, np.inf, ODDS)),
        {"outputs": "values"},
        DataError,
        "^targets must be finite .* for 2 of 60 examples, first for example 58",
    ),
    "columns": (
        (ODDS, LABELS),
        {"columns": {"sample_weight": ODDS[1:]}},
        DataError,
        "^column 'sample_weight' of these outputs needs one value .* 60 examp.*got 59",
    ),
    "nothing": (
        (ODDS[:0], LABELS[:0]),
        {},
        DataError,
        "^outputs and targets must have at least one example",
    ),
    "adapter": ((ODDS, LABELS), {"sites": "stages"}, ConfigError, "tune has none, and"),
    "option": ((ODDS, LABELS), {"query": 9}, ConfigError, "unknown option 'query'"),
    "embedded": (
        (np.stack([np.cos(ODDS), np.sin(ODDS)], 1), LABELS),
        {"outputs": "embeddings"},
        ConfigError,
        "these outputs are embeddings, and metric 'accuracy' reads scores: use fin",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_tuned_is_refused(name):
    given, settings, kind, text = REFUSED[name]
    with pytest.raises(kind, match=text):
        tune(*given, "accuracy", **settings)


def test_no_refusal_speaks_of_a_network_or_its_splits():
    for given, settings, _, _ in REFUSED.values():
        with pytest.raises(MetricOptError) as caught:
            tune(*given, "accuracy", **settings)
        text = str(caught.value)
        assert not re.search(r"\b(observe|train|inputs|split)\b", text), text


def test_a_column_that_a_metric_needs_is_asked_for():
    def paid(outputs, targets, amount):
        return float((amount * targets).sum())

    text = "'paid' also needs 'amount': give it as columns={'amount': values}"
    with pytest.raises(ConfigError, match=text):
        tune(ODDS, LABELS, paid, higher_is_better=True)
    bound = at_least(paid, 1)
    with pytest.raises(ConfigError, match=text):
        tune(ODDS, LABELS, "accuracy", constraints=[bound])


def test_outputs_of_another_form_are_refused():
    with pytest.raises(ShapeError, match=r"outputs must be \[N, 10\], got float64 \["):
        tuned_digits().predict(torch.zeros(4, 9, dtype=torch.float64))
    with pytest.raises(ShapeError, match=r"outputs must be \[N, 10\], got \[\["):
        tuned_digits().shifted([[1, 2]])


@cache
def tuned_shares():
    odds, labels = rare_tumours()
    share = sigmoid(odds)
    both = np.stack([1 - share, share], 1)
    return {
        given.ndim: tune(given, labels, "accuracy", queries=6, progress=False)
        for given in (share, both)
    }


STRANGE = {
    "missing": (
        [0.1, math.nan],
        "must be finite numbers, got NaN .* 1 of 2 examples",
    ),
    "infinite": ([math.inf, 0.1], "must be finite numbers, .* first for example 0$"),
    "logits": ([0.5, -3.0], r"must be probabilities in \[0, 1\].*, as .*, got -3 to "),
}


@pytest.mark.parametrize("axes", [1, 2])
@pytest.mark.parametrize("name", STRANGE)
def test_later_outputs_are_of_the_kind_that_chose_the_offsets(name, axes):
    numbers, text = STRANGE[name]
    share = np.array(numbers)
    given = share if axes == 1 else np.stack([1 - share, share], 1)
    found = tuned_shares()[axes]
    for use in (found.predict, found.shifted):
        with pytest.raises(DataError, match=f"^outputs {text}"):
            use(given)
    rounded = np.array([1 + 1e-7, 0.0])
    given = rounded if axes == 1 else np.stack([rounded, 1 - rounded], 1)
    assert len(found.predict(given)) == 2
    assert len(found.predict(given[:0])) == 0


def test_a_figure_shows_the_queries():
    pytest.importorskip("matplotlib")
    assert tuned_digits().plot().axes
    assert metricopt.Tuned is type(tuned_digits())


def test_too_few_queries_are_called_so():
    outputs, targets = rare_digits()[0]
    found = tune(outputs, targets, "f-macro", queries=12, progress=False)
    assert "queries were too few to tell" in found.evidence.reason
    assert repr(found) == found.summary()

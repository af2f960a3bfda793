"""What outputs and targets are read as where they are rounded, or of another form."""

from functools import cache

import numpy as np
import pytest
import torch
from sklearn.metrics import f1_score

from metricopt import ConfigError, DataError, tune
from metricopt.adapters.offsets_alone import shifted
from metricopt.reading.meaning import meaning_of
from metricopt.reading.outputs import Standard
from tests.metricopt.drawn import seeded

LABELS = torch.arange(200) % 4
SAID = {"outputs": "probabilities"}


@cache
def logits():
    """Logits of 4 classes, of which the first is too likely."""
    hits = 1.5 * torch.nn.functional.one_hot(LABELS, 4).double()
    drawn = hits + torch.randn(200, 4, generator=seeded(0)).double()
    return drawn + torch.tensor([1.5, 0, 0, 0])


FORMS = {
    "floats": (LABELS.double(), r"float64 \[200\], .* give targets.long\(\)\."),
    "column": (LABELS[:, None], r"int64 \[200, 1\], .* give targets\[:, 0\]\."),
    "both": (LABELS[:, None].float(), r"float32 .* targets\[:, 0\].long\(\)\."),
}


@pytest.mark.parametrize("name", FORMS)
def test_labels_of_another_form_are_doubted(name):
    targets, text = FORMS[name]

    def right(outputs, truth):
        return float((outputs.argmax(1) == truth.flatten()).double().mean())

    better = {"higher_is_better": True, "progress": False}
    found = tune(logits(), targets, right, queries=20, **better)
    assert found.found.meaning.truth == "other"
    (doubt,) = (each for each in found.warnings if each.startswith("targets are"))
    assert doubt == found.found.meaning.doubt
    for queries, kind, metric in ((6, ConfigError, right), (20, DataError, "f1_macro")):
        settings = better if metric is right else {"progress": False}
        said = f"targets are {text}"
        if queries == 6:
            said = f"^{said} As they are, no_harm takes 12 queries"
        with pytest.raises(kind, match=said):
            tune(logits(), targets, metric, queries=queries, **settings)


@pytest.mark.parametrize("targets", [LABELS + 0.5, LABELS.double() - 1])
def test_numbers_that_are_no_labels_are_not_doubted(targets):
    assert not meaning_of(logits(), targets, loss=None).doubt
    assert not meaning_of(logits(), targets[:, None], loss=None).doubt


def rounded(shares, how):
    return shares.bfloat16() if how == "bfloat16" else shares.mul(100).round() / 100


@pytest.mark.parametrize("how", ["bfloat16", "two digits"])
def test_rounded_probabilities_are_those_of_a_softmax_where_it_is_said(how):
    shares = rounded(logits().softmax(1), how)
    assert 0.002 < (shares.double().sum(1) - 1).abs().max() < 0.05
    settings = {"queries": 16, "progress": False}
    with pytest.raises(ConfigError, match="may be probabilities: say which"):
        tune(shares, LABELS, "f1_macro", **settings)
    found = tune(shares, LABELS, "f1_macro", **settings, **SAID)
    assert found.found.meaning.link == "softmax"
    before = f1_score(LABELS, shares.float().argmax(1), average="macro")
    assert found.metric_before == pytest.approx(before)
    assert found.metric_after > before + 0.05
    sums = found.shifted(shares).double().sum(1)
    torch.testing.assert_close(sums, torch.ones(200).double(), rtol=0, atol=0.01)


def test_other_outputs_in_the_unit_interval_are_those_of_sigmoids():
    found = meaning_of(logits().sigmoid(), LABELS, loss=None, given="probabilities")
    assert found.link == "sigmoid"


@cache
def tuned(form):
    outputs = getattr(torch, form)(logits(), 1)
    return tune(outputs, LABELS, "f1_macro", queries=16, progress=False)


LATER = {
    "softmax": {
        "halves": (lambda x: x.softmax(1) / 2, r"that sum to 1, .* sums 0.5 to 0.5$"),
        "sigmoids": (torch.sigmoid, r"^outputs must be probabilities in \[0, 1\] that"),
        "logits": (lambda x: x, r"^outputs must be probabilities in \[0, 1\] that sum"),
    },
    "log_softmax": {
        "logits": (lambda x: x, "^outputs must be logarithms of prob.* with the sums"),
        "shares": (lambda x: x.softmax(1), "^outputs must be logarithms of prob.*got "),
        "lower": (lambda x: x.log_softmax(1) - 1, "got .* sums 0.367879 to 0.367879$"),
    },
}
CASES = [(form, name) for form in LATER for name in LATER[form]]


@pytest.mark.parametrize(("form", "name"), CASES)
def test_later_outputs_that_cannot_be_what_was_tuned_are_refused(form, name):
    make, text = LATER[form][name]
    for use in (tuned(form).predict, tuned(form).shifted):
        with pytest.raises(DataError, match=text):
            use(make(logits()))


@pytest.mark.parametrize("form", LATER)
@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float32])
def test_later_outputs_may_be_rounded(form, kind):
    outputs = getattr(torch, form)(logits(), 1)
    found = tuned(form)
    same = found.predict(outputs.to(kind)) == found.predict(outputs)
    assert same.double().mean() > 0.95
    assert np.shape(found.shifted(outputs.to(kind))) == (200, 4)
    assert len(found.predict(outputs[:0])) == 0
    sure = torch.tensor([[1 + 1e-9, 1e-30, 1e-30, 1e-30]]).double()
    assert len(found.predict(sure if form == "softmax" else sure.log())) == 1


def test_values_near_zero_are_scaled_about_it_and_those_far_away_about_their_median():
    normal = torch.randn(2001, 2, generator=seeded(1)).double()
    amounts = (1.5 * normal).exp()
    for outputs, more in ((normal, 0), (normal, 100), (-normal, -100)):
        found = Standard.of(outputs + more, 4 * outputs)
        assert found.centre == pytest.approx([more] * 2, abs=0.1 if more else 0)
        assert found.unit == pytest.approx([4 * 0.6745] * 2, rel=0.1)
    assert Standard.of(amounts, amounts).centre == (0, 0)


@pytest.mark.parametrize(
    "targets",
    [
        torch.zeros(40),
        torch.full((40,), torch.inf),
        torch.arange(40) > 50,
        torch.tensor([-torch.inf, torch.inf]).repeat(20),
    ],
)
def test_a_unit_is_a_number_above_zero(targets):
    outputs = torch.tensor([torch.nan, *range(39)])
    assert Standard.of(outputs[:, None], targets) == Standard.plain(1)
    far = torch.tensor([-6e4, 6e4]).repeat(20).half()
    assert Standard.of(outputs[:, None], far).unit == (60_000.0,)


@pytest.mark.parametrize("count", [100, 99])
def test_several_outputs_for_one_value_have_no_standard(count):
    """Such as quantiles: which output is for which target only the metric knows."""
    values = torch.arange(count).double()
    quantiles = torch.stack([values - 5, values, values + 9], 1)
    meaning = meaning_of(quantiles, values, loss=None, given="values")
    assert meaning.standard is None
    assert meaning_of(values, values, loss=None).standard is not None


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_votes_of_0_and_1_stay_numbers(kind):
    """Their logits are far apart, and scales of them were searched without a limit."""
    drawn = np.random.default_rng(0)
    labels = drawn.integers(0, 4, 600)
    votes = np.eye(4, dtype=kind)[np.where(drawn.random(600) < 0.7, labels, 0)]
    seen = []

    def right(outputs, targets):
        seen.append(np.isfinite(outputs).all())
        return f1_score(targets, outputs.argmax(1), average="macro")

    tune(votes, labels, right, higher_is_better=True, queries=15)
    assert len(seen) == 15
    assert all(seen)


@pytest.mark.parametrize("standard", [None, Standard((0.0,), (1.0,), logarithms=True)])
@pytest.mark.parametrize("kind", [torch.float16, torch.float32, torch.float64])
def test_scales_without_a_limit_leave_numbers(kind, standard):
    outputs = torch.tensor([0.0, 1.0, 2.0], dtype=kind)[None, :, None]
    moved = shifted(outputs, torch.tensor([[0.0, 1e3], [0.0, -1e3]]), standard)
    assert not moved.isnan().any()


def test_targets_with_nan_are_called_so():
    targets = LABELS.double().where(LABELS != 3, torch.nan)
    with pytest.raises(ConfigError, match="targets hold NaN, 50 of 200: leave these"):
        tune(logits(), targets, "f1_macro", queries=6)

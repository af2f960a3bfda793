"""Clusters that a column names: how they are read, and what a call makes of them."""

import numpy as np
import pytest
import sklearn
import torch
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold
from torch import nn

import metricopt
from metricopt import ConfigError, DataError, Split
from metricopt.estimators import metric_tuned
from metricopt.sklearn import MetricTunedClassifier
from metricopt.tasks.clusters import clusters_of, require_clusters

PATIENTS, IMAGES = 40, 25
QUICK = {"queries": 20, "progress": False, "outputs": "logits"}


def patients(seed, count=PATIENTS, each=IMAGES):
    """Logits, labels and patients: the images of one are shifted alike."""
    drawn = np.random.default_rng(seed)
    sick, shift = drawn.random(count) < 0.3, drawn.normal(0.8, 1.5, count)
    name = np.repeat(np.arange(count), each)
    noise = drawn.normal(0, 0.7, count * each)
    logits = np.where(sick[name], 1.5, -1.5) + shift[name] + noise
    return np.stack([0 * logits, logits], 1), sick[name].astype(int), name


def tuned(seed, **settings):
    logits, labels, name = patients(seed)
    columns = {"patient": name}
    return metricopt.tune(logits, labels, "f1", columns=columns, **QUICK, **settings)


def test_a_gain_on_new_clusters_is_less_sure():
    shifted, labels, _ = patients(1_000, count=4_000, each=5)
    before = f1_score(labels, shifted.argmax(1))
    missed, wider = [0, 0], 0
    for seed in (0, 1, 2):
        alone, together = tuned(seed), tuned(seed, clusters="patient")
        errors = [found.evidence.error for found in (alone, together)]
        wider += errors[1] > 1.5 * errors[0]
        for place, found in enumerate((alone, together)):
            if found.expected is not None:
                gain = f1_score(labels, found.predict(shifted)) - before
                missed[place] += not found.expected.low <= gain <= found.expected.high
    assert wider == 3
    assert missed[1] <= missed[0]


def test_the_summary_says_that_clusters_are_new():
    found = tuned(1, clusters="patient", level=0.0)
    told = [line for line in found.summary().splitlines() if "new values" in line]
    assert "with new values of 'patient', f1 is expected" in told[0]
    assert not [text for text in found.warnings if "is not used" in text]
    assert [text for text in tuned(1).warnings if "is not used" in text]


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (["b", "a"] * 3 + list("cdefghij"), [0, 1] * 3 + [*range(2, 10)]),
        (np.arange(12) * 2.0, list(range(12))),
        (-torch.arange(20) % 10, [*range(10), *range(10)]),
    ],
)
def test_clusters_have_numbers(column, expected):
    split = Split(torch.randn(len(column), 2), torch.zeros(len(column)), {"a": column})
    found = clusters_of(split, None, "a")
    assert found.of.tolist() == expected
    assert clusters_of(split, None, None).of is None


@pytest.mark.parametrize(
    ("column", "name", "said"),
    [
        ([*range(12)], "b", r"'b' must name a column of observe, got the columns 'a'"),
        ([*range(11), np.nan], "a", "the cluster of every example, got nan"),
        ([*"abcdefghijk", None], "a", "the cluster of every example, got None"),
        (torch.zeros(12, 2), "a", r"one value for each example, .* shape \[12, 2\]"),
    ],
)
def test_what_names_no_clusters_is_refused(column, name, said):
    split = Split(torch.randn(len(column), 2), torch.zeros(len(column)), {"a": column})
    with pytest.raises(DataError, match=said):
        clusters_of(split, None, name)


def worst(outputs, targets, patient):
    """Accuracy of the patient where it is least."""
    right = (outputs.argmax(1) == targets).float()
    return min(right[patient == each].mean().item() for each in patient.unique())


def test_a_gain_on_new_clusters_needs_several_also_in_each_group():
    logits, labels, name = patients(0, count=9)
    with pytest.raises(DataError, match=r"at least 10 clusters, .* got 9"):
        metricopt.tune(logits, labels, "f1", columns={"a": name}, clusters="a", **QUICK)
    logits, labels, name = patients(0, count=10)
    settings = {"columns": {"patient": name}, "clusters": "patient"}
    with pytest.raises(
        DataError, match=r"5 clusters in every group of 'patient', .* 1"
    ):
        metricopt.tune(
            logits, labels, worst, higher_is_better=True, **settings, **QUICK
        )


def test_weights_of_few_values_are_no_groups():
    name = torch.arange(400) // 10
    rare = torch.where(name == 0, 2, 1)
    columns = {"patient": name, "sample_weight": rare, "amount": 1.0 * rare}
    require_clusters(columns, "patient", ["sample_weight", "amount"])
    with pytest.raises(DataError, match=r"every group of 'group', .* got 1 in 2; am"):
        require_clusters({**columns, "group": rare}, "patient", ["group"])


def test_a_sample_of_many_examples_may_lack_small_clusters():
    logits, labels, name = patients(0, count=30_000, each=1)
    large = np.where(name < 9, name, 9)
    found = metricopt.tune(
        logits, labels, "f1", columns={"a": large}, clusters="a", **QUICK
    )
    assert "clusters is too small to cross-fit, which needs 10" in found.summary()
    assert not found.offsets.any()


@pytest.mark.parametrize("method", ["auto", "cma-es"])
def test_a_few_examples_repeated_are_no_evidence(method):
    generator = torch.Generator().manual_seed(0)
    inputs, few = (torch.randn(n, 4, generator=generator) for n in (200, 4))
    labels = torch.arange(200) % 2
    network = nn.Linear(4, 2)
    with torch.no_grad():
        network.weight.copy_(torch.randn(2, 4, generator=generator))
        network.bias.zero_()
    found = metricopt.finetune(
        network,
        train=(inputs, labels),
        observe=(few.repeat(50, 1), labels),
        loss=nn.CrossEntropyLoss(),
        metric="f1",
        method=method,
        queries=30,
        progress=False,
    )
    said = "of 4 clusters is too small to cross-fit"
    assert said in found.evidence.reason and not found.phi.any()
    assert [text for text in found.warnings if "are copies of others" in text]


def test_groups_with_offsets_are_no_new_clusters():
    with pytest.raises(ConfigError, match="name two columns, or one of them"):
        tuned(0, clusters="patient", offsets_by="patient")


def test_classes_that_are_compared_stay_together_without():
    inputs, labels = torch.randn(60, 4), torch.arange(60) % 12
    with pytest.raises(ConfigError, match="leave it out: those of a class stay"):
        metricopt.finetune(
            nn.Linear(4, 3),
            train=(inputs, labels),
            observe=(inputs.clone(), labels, {"camera": labels}),
            loss=lambda outputs, _: outputs.square().mean(),
            metric="recall@1",
            clusters="camera",
            progress=False,
        )


class Known(ClassifierMixin, BaseEstimator):
    """A classifier whose inputs are its logits."""

    def fit(self, X, y):  # noqa: N803
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):  # noqa: N803
        return X[:, 1] - X[:, 0]

    def predict(self, X):  # noqa: N803
        return self.classes_[(self.decision_function(X) > 0).astype(int)]


@pytest.mark.parametrize(("count", "are_new"), [(40, True), (9, False)])
def test_groups_of_a_splitter_are_clusters(count, are_new):
    logits, labels, _ = patients(1)
    groups = np.arange(len(labels)) % count
    with sklearn.config_context(enable_metadata_routing=True):
        tuned = MetricTunedClassifier(Known(), "f1", cv=GroupKFold(3), queries=20)
        found = tuned.fit(logits, labels, groups=groups)
    assert found.offsets_.any()
    assert ("new values of 'groups of fit'" in found.report_) == are_new
    assert ("these groups: 9 are too few" in found.report_) == (not are_new)


def test_groups_of_a_splitter_stay_those_of_their_examples(monkeypatch):
    logits, labels, name = patients(1)
    given = []

    def recorded(outputs, targets, metric, /, **settings):
        own = settings["clusters"]
        given.append((outputs, settings["columns"][own], own))
        return metricopt.tune(outputs, targets, metric, **settings)

    monkeypatch.setattr(metric_tuned, "tune", recorded)
    with sklearn.config_context(enable_metadata_routing=True):
        tuned = MetricTunedClassifier(Known(), "f1", cv=GroupKFold(3), queries=8)
        tuned.fit(logits, labels, groups=name)
    ((outputs, groups, clusters),) = given
    owner = dict(zip((logits[:, 1] - logits[:, 0]).tolist(), name, strict=True))
    owners = [owner[each] for each in outputs.tolist()]
    pairs = {*zip(owners, groups.tolist(), strict=True)}
    assert len(pairs) == len({*owners}) == len({*groups.tolist()}) == PATIENTS
    assert len(outputs) == len(labels) and clusters == "groups of fit"

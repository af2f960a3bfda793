"""Metrics of embeddings against golden vectors, peers, and what they refuse."""

import warnings

import pytest
import torch
from sklearn.neighbors import NearestNeighbors
from torch.nn.functional import normalize

from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import ConfigError, DataError, MetricError
from metricopt.metrics import neighbours as neighbours_module
from metricopt.metrics.base import METRICS
from metricopt.reading.callables import make_metric
from tests.metricopt.metrics.test_neighbours import clustered
from tests.metricopt.watched import watch

NAMES = [name for name in METRICS if METRICS.get(name).reads == "embeddings"]


def values(names, outputs, targets):
    return {name: make_metric(name).value(outputs, targets) for name in names}


def test_the_walk_finds_those_that_read_embeddings():
    assert {"recall@1", "recall@1000", "mean-recall", "map@r"} < set(NAMES)
    assert "top-1" not in NAMES


@pytest.fixture(scope="module")
def large():
    """1,300 embeddings of 90 classes, hard enough that Recall@1000 is not 1."""
    embeddings, labels = clustered(1300, 90, size=3, seed=2)
    lonely = labels == 0
    labels[lonely] = 1
    apart = torch.tensor([0, 1])
    labels[apart] = 0  # two of one class, opposite to each other
    embeddings[1] = -embeddings[0]
    return embeddings, labels


def test_recalls_are_those_of_scikit_learn(large):
    embeddings, labels = large
    unit = normalize(embeddings, dim=1).numpy()
    search = NearestNeighbors(n_neighbors=1000, algorithm="brute").fit(unit)
    # Without arguments the query is left out of its own neighbours.
    hits = labels[torch.from_numpy(search.kneighbors()[1])] == labels[:, None]
    expected = {
        f"recall@{k}": float(hits[:, :k].any(1).double().mean())
        for k in (1, 10, 100, 1000)
    }
    assert 0 < expected["recall@1"] < expected["recall@1000"] < 1
    assert values(expected, *large) == pytest.approx(expected, abs=1e-12)
    mean = sum(expected.values()) / 4
    assert make_metric("mean-recall").value(*large) == pytest.approx(mean, abs=1e-12)


def test_precisions_are_those_of_pytorch_metric_learning(large):
    calculator, inference, distances = (
        pytest.importorskip(f"pytorch_metric_learning.{name}")
        for name in ("utils.accuracy_calculator", "utils.inference", "distances")
    )
    fields = {"recall@1": "precision_at_1", "map@r": "mean_average_precision_at_r"}
    peer = calculator.AccuracyCalculator(
        include=tuple(fields.values()),
        k="max_bin_count",
        device=torch.device("cpu"),
        knn_func=inference.CustomKNN(distances.CosineSimilarity()),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peer.get_accuracy(*large)
    expected = {name: theirs[field] for name, field in fields.items()}
    assert 0 < expected["map@r"] < expected["recall@1"] < 1
    assert values(fields, *large) == pytest.approx(expected, abs=1e-9)


def test_settings_by_name_and_by_unit():
    assert make_metric("recall", k=3).name == "recall@3"
    unit = Unit("recall", {"k": 3})
    assert unit.label == "recall(k=3)"
    assert metric_of(unit).name == "recall@3"
    assert make_metric("recall").name == "recall@1"
    with pytest.raises(ConfigError, match="recall needs k >= 1, got 0"):
        make_metric("recall", k=0)


def test_the_gallery_has_to_be_large_enough():
    embeddings, labels = clustered(30, 5)
    assert make_metric("recall", k=29).value(embeddings, labels) == 1.0
    message = r"metric 'recall@30' needs a gallery of 30 examples or more .*got 29"
    with pytest.raises(DataError, match=message):
        make_metric("recall", k=30).value(embeddings, labels)
    with pytest.raises(DataError, match="'recall@1000' needs a gallery of 1000 "):
        make_metric("recall@1000").values(embeddings[None], labels)
    with pytest.raises(DataError, match=r"'mean-recall' needs a gallery of 2 .*got 1"):
        make_metric("mean-recall").value(embeddings[:2], torch.tensor([0, 0]))
    with pytest.raises(DataError, match=r"'map@r' needs a gallery of 1 .*got 0"):
        make_metric("map@r").value(embeddings[:1], labels[:1])


@pytest.mark.parametrize(("examples", "cuts"), [(11, 1), (12, 2), (101, 2), (102, 3)])
def test_the_mean_is_over_cuts_below_the_gallery(examples, cuts):
    embeddings, labels = clustered(examples, 5, seed=examples)
    recalls = [
        make_metric("recall", k=k).value(embeddings, labels)
        for k in (1, 10, 100)[:cuts]
    ]
    found = make_metric("mean-recall").value(embeddings, labels)
    assert found == pytest.approx(sum(recalls) / cuts)


@pytest.mark.parametrize("name", ["recall@1", "recall@10", "map@r", "mean-recall"])
def test_what_is_wrong_is_said_with_the_name_of_the_metric(name):
    embeddings, labels = clustered(30, 5)
    metric = make_metric(name)
    lonely = torch.where(torch.arange(30) == 4, 77, labels)
    for evaluate, outputs in (
        (metric.value, embeddings),
        (metric.values, embeddings[None]),
    ):
        with pytest.raises(DataError, match=f"'{name}' needs .*one of class 77"):
            evaluate(outputs, lonely)
        with pytest.raises(DataError, match=f"'{name}' needs integer labels"):
            evaluate(outputs, labels.float())
        with pytest.raises(MetricError, match=f"'{name}' needs .*length 0 for ex"):
            evaluate(torch.zeros_like(outputs), labels)


def test_collapsed_embeddings_score_nothing():
    labels = torch.arange(60) % 6
    collapsed = torch.full((60, 33), 0.37)
    names = ["recall@1", "recall@10", "map@r"]
    assert values(names, collapsed, labels) == dict.fromkeys(names, 0.0)


def test_all_figures_of_the_same_outputs_cost_one_pass(monkeypatch):
    calls = watch(monkeypatch, neighbours_module, "neighbours")
    embeddings, labels = clustered(1200, 100)
    outputs = torch.stack([embeddings, -embeddings, embeddings.roll(1, 0)])
    found = {name: make_metric(name).values(outputs, labels) for name in NAMES}
    assert len(calls) == 3
    # The same as each of its own, and no mix-up of rows.
    for row, own in enumerate(outputs):
        alone = values(NAMES, own, labels)
        assert alone == {name: float(found[name][row]) for name in NAMES}
    assert len(calls) == 6
    assert found["recall@1"][2] < found["recall@1"][0]

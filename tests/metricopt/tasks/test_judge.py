"""The judge: outputs in passes of any size, several metrics of the same outputs."""

import pytest
import torch

from metricopt.adapters.dynamic_bias import DynamicBias
from metricopt.adapters.film import FiLM
from metricopt.metrics import neighbours
from metricopt.reading.callables import make_metric
from metricopt.tasks.encoding import EncodedSplit, encode
from metricopt.tasks.judge import Judge
from metricopt.tasks.sampling import Split
from tests.metricopt import adapter_networks as networks
from tests.metricopt.drawn import draw, labels
from tests.metricopt.watched import watch

OBSERVE = Split(draw(25, 6, seed=2), labels(25, seed=3))


@pytest.fixture
def adapter():
    return DynamicBias(networks.mlp(), size=5)


def judge_of(adapter, split):
    return Judge(adapter, encode(adapter, split))


def test_the_judge_is_the_same_however_many_rows_fit_in_a_pass(adapter, monkeypatch):
    phi = draw(7, 5)
    judge = judge_of(adapter, OBSERVE)
    expected = judge.values(make_metric("mcr"), phi)
    for examples in (1, 60, 175):
        monkeypatch.setattr("metricopt.tasks.encoding.EXAMPLES_PER_PASS", examples)
        assert torch.equal(judge.values(make_metric("mcr"), phi), expected)


class Recorder:
    """An adapter whose outputs are the first feature plus phi; it notes its passes."""

    def __init__(self):
        self.passes = []

    def predict(self, features, phi):
        examples = {len(part) for part in features}
        self.passes.append((len(phi), *examples))
        return features[0].flatten(1).sum(1)[None, :, None] + phi[:, None]


def passes_of(features, phi):
    recorder, targets = Recorder(), torch.zeros_like(features[0].flatten(1)[:, 0])
    outputs = Judge(recorder, EncodedSplit(features, targets)).outputs(phi)
    if outputs.device.type == "cpu":
        whole = Recorder().predict(features, phi)
        torch.testing.assert_close(outputs, whole)
    return recorder.passes


@pytest.mark.parametrize(
    ("rows", "limit", "expected"),
    [
        # The maps of an example have 4 * 3 * 3 + 2 * 2 = 40 numbers.
        (1, 10_000, [(1, 25)]),
        (1, 1_000, [(1, 25)]),
        (1, 999, [(1, 24), (1, 1)]),
        (3, 3_000, [(3, 25)]),
        (3, 2_200, [(2, 25), (1, 25)]),
        (2, 800, [(1, 20), (1, 20), (1, 5), (1, 5)]),
        (7, 40, [(1, 1)] * 175),
        (1, 1, [(1, 1)] * 25),
    ],
)
def test_feature_maps_are_judged_in_passes_of_so_many_numbers(
    monkeypatch, rows, limit, expected
):
    monkeypatch.setattr("metricopt.tasks.encoding.MAP_NUMBERS_PER_PASS", limit)
    features = (draw(25, 4, 3, 3), draw(25, 2, 2, seed=1), draw(25, 9, seed=2))
    assert passes_of(features, draw(rows, 2)) == expected


def test_vectors_and_small_maps_are_judged_in_passes_of_so_many_examples():
    features = (draw(9_000, 90), draw(9_000, 2, 3))
    assert passes_of(features, draw(1, 2)) == [(1, 9_000)]
    assert passes_of(features, draw(2, 2)) == [(1, 9_000), (1, 9_000)]
    assert passes_of(features[:1], draw(2, 2)) == [(2, 8_192), (2, 808)]


def test_an_accelerator_is_given_as_many_examples_however_large_their_maps():
    features = (torch.empty(100, 64, 32, 32, device="meta"),)
    assert passes_of(features, torch.empty(8, 2, device="meta")) == [(8, 100)]


def test_a_network_gives_the_same_outputs_in_passes_of_any_size(monkeypatch):
    network = networks.randomise(networks.ResNet())
    inputs, phi = draw(11, 3, 8, 8), 0.3 * draw(3, 6)
    adapter = FiLM(network, inputs, size=6)
    assert adapter.is_cut
    judge = judge_of(adapter, Split(inputs, labels(11)))
    expected = adapter.predict(judge.split.features, phi)
    assert not torch.equal(expected[0], expected[1])
    for numbers in (1, 5_000, 10**9):
        monkeypatch.setattr("metricopt.tasks.encoding.MAP_NUMBERS_PER_PASS", numbers)
        torch.testing.assert_close(judge.outputs(phi), expected)


def test_several_metrics_are_those_of_each_alone_and_outputs_are_computed_once(
    adapter, monkeypatch
):
    judge, phi = judge_of(adapter, OBSERVE), draw(7, 5)
    metrics = [make_metric(name) for name in ("mcr", "top-1", "g-mean")]
    alone = {metric.name: judge.values(metric, phi) for metric in metrics}
    calls = watch(monkeypatch, adapter, "predict")
    found = judge.evaluate(phi, {metric.name: metric for metric in metrics})
    assert [len(part) for _, part in calls] == [7]
    assert list(found) == ["mcr", "top-1", "g-mean"]
    assert all(torch.equal(found[name], alone[name]) for name in found)
    assert judge.evaluate(phi, {}) == {}


def test_one_metric_with_two_settings_is_two_metrics(adapter):
    judge, phi = judge_of(adapter, OBSERVE), draw(2, 5)
    metrics = {f"k={k}": make_metric("top-k", k=k) for k in (1, 2)}
    found = judge.evaluate(phi, metrics)
    assert list(found) == ["k=1", "k=2"]
    for name, metric in metrics.items():
        assert torch.equal(found[name], judge.values(metric, phi))
    assert bool((found["k=2"] >= found["k=1"]).all())


def test_metrics_of_embeddings_share_their_neighbours(adapter, monkeypatch):
    judge, phi = judge_of(adapter, OBSERVE), draw(4, 5)
    metrics = [make_metric(name) for name in ("recall@1", "mcr", "recall@10", "map@r")]
    alone = {metric.name: judge.values(metric, phi) for metric in metrics}
    calls = watch(monkeypatch, neighbours, "neighbours")
    found = judge.evaluate(phi, {metric.name: metric for metric in metrics})
    assert len(calls) == len(phi)
    assert all(torch.equal(found[name], alone[name]) for name in alone)
    # Of other outputs they are found anew.
    moved = judge.evaluate(-phi, {"recall@1": metrics[0]})
    assert len(calls) == 2 * len(phi)
    assert not torch.equal(moved["recall@1"], found["recall@1"])

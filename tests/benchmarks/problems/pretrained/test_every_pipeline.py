"""What all kinds of pipelines on a pre-trained network have in common."""

from dataclasses import replace
from functools import cache
from typing import NamedTuple

import pytest
import torch

from benchmarks.arms.contract import run_arm
from benchmarks.problems.contract import SealedError
from benchmarks.runs.spec import Unit
from metricopt.errors import ConfigError
from tests.benchmarks.problems.pipeline_cases import smoke_pipeline, smoke_spec


class Kind(NamedTuple):
    """A kind of pipeline at the smoke tier.

    Attributes:
        places: experiment, row and block of one of its specs.
        metric: metric that its network is judged by.
        file: name of its network among the released weights.
        told: facts that a table tells, by heading.
        size: number d of adapter parameters.
        statistics: what its metrics depend on.
        losses: some of its portfolio.
        frozen: module that can be frozen, the weight in it, and one elsewhere.
    """

    places: tuple
    metric: str
    file: str
    told: dict
    size: int
    statistics: tuple = ("decisions", "probabilities", "rankings")
    losses: frozenset = frozenset({"cross-entropy"})
    frozen: tuple = ()


ERROR = {"error on observe": "observe_mcr"}
KINDS = {
    "images": Kind(
        ("table1", "cross-entropy"), "mcr", "digits-digit-net-cross-entropy", ERROR, 64
    ),
    "photographs": Kind(
        ("table4", "rmsprop"), "mcr", "drawn-folders-nasnet-a-tiny-rmsprop", ERROR, 256
    ),
    "retrieval": Kind(
        ("table5", "untouched"),
        "recall@1",
        "drawn-shapes-tiny-fastap",
        {"recall@1 on observe": "observe_recall"},
        128,
        ("neighbours",),
        {"fastap", "recall", "multi-similarity", "triplet"},
        ("conv1", "conv1.weight", "conv2.weight"),
    ),
    "detection": Kind(
        ("table6", "untouched"),
        "ap50",
        "drawn-cells-tiny-cross-entropy",
        {
            "ap50 on observe": "observe_ap50",
            "proposal recall at 100": "observe_proposal_recall",
        },
        128,
        ("detections",),
        {"cross-entropy", "ap"},
        ("0", "network.backbone.0.weight", "network.backbone.2.weight"),
    ),
}
FREEZING = [kind for kind in KINDS.values() if kind.frozen]


@cache
def made(name):
    return smoke_pipeline(*KINDS[name].places)


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


@pytest.fixture
def pipeline(request, kind):
    """One pipeline of a kind for all tests, made in their cache."""
    return made(request.node.callspec.params["kind"])


@pytest.mark.parametrize("kind", ["images", "retrieval", "detection"], indirect=True)
def test_theta_costs_less_than_the_network_it_started_from(kind, pipeline):
    split, metric = pipeline.splits.observe, pipeline.metric(Unit(kind.metric))
    start = pipeline.network_start(from_theta=False).eval()
    with torch.no_grad():
        before = metric.value(start(split.batch(slice(None))), split.targets)
    after = metric.value(pipeline.outputs(), split.targets)
    assert after > before if metric.higher_is_better else after < before


def test_a_query_costs_what_the_metric_says(kind, pipeline):
    metric = pipeline.metric(Unit(kind.metric))
    task = pipeline.task(metric)
    cost = task.observe(torch.zeros(1, task.size)).item()
    value = metric.value(pipeline.outputs(), pipeline.splits.observe.targets)
    expected = 1 - value if metric.higher_is_better else value
    assert cost == pytest.approx(expected, abs=1e-6)
    assert task.queries == 1
    assert task.statistics.kind.names() == kind.statistics
    assert set(task.portfolio) >= kind.losses


def test_the_adapter_is_cut_and_has_its_size(kind, pipeline):
    assert pipeline.film.is_cut
    assert pipeline.adapter.size == kind.size


def test_the_test_split_is_sealed(pipeline):
    with pipeline.sealed(), pytest.raises(SealedError):
        pipeline.evaluate([], "test", {})


def test_what_is_made_on_a_pipeline_is_of_this_very_network(pipeline):
    weights = pipeline.theta_spec.trained_here().facts["weights"]
    assert pipeline.key["theta"] == pipeline.network_data["theta"] == weights


def test_a_released_network_comes_back(kind, pipeline, monkeypatch, tmp_path):
    spec = pipeline.theta_spec
    facts, line = spec.trained_here().facts, spec.release()
    # Two short epochs of a large network may learn next to nothing.
    assert facts["losses"][-1] < 1.01 * facts["losses"][0]
    assert len(facts["losses"]) == int(line["epochs"])
    assert (tmp_path / "weights" / f"{kind.file}-r0.safetensors").exists()
    assert line["network"] == spec.name == f"{kind.file}-r0"
    for head, name in kind.told.items():
        assert line[head] == f"{facts[name]:.4f}"
    # As on a machine on which nothing was trained, or can be.
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "elsewhere"))
    monkeypatch.setattr(type(spec), "train", None)
    assert spec.is_ready and not spec.is_made
    assert spec.find().digest == pipeline.pretrained.digest


def test_a_forecast_needs_no_data(pipeline, monkeypatch, tmp_path):
    monkeypatch.setenv("METRICOPT_DATA", str(tmp_path))
    told = type(pipeline)(pipeline.settings, 0).forecast()
    assert told.network == pipeline.theta_spec.digest
    parts = pipeline.splits.parts.values()
    images = sum(map(len, parts))
    first = pipeline.encoded("observe").first
    held = sum(part.numel() * part.element_size() for part in first)
    assert told.feature_bytes >= images * held > 0
    assert told.operations > 1e7


def test_another_number_of_classes_is_refused_before_training(pipeline, monkeypatch):
    spec = pipeline.theta_spec
    count = spec.classes
    monkeypatch.setattr(type(spec), "classes", count + 1)
    with pytest.raises(ConfigError, match=f"has {count} classes, and the network .* t"):
        spec.train()


@pytest.mark.parametrize("experiment", ["table5", "table6"])
def test_metricopt_on_outputs_runs_and_is_judged_by_all_metrics(experiment):
    spec = smoke_spec(experiment, "metricopt-outputs")
    pipeline = made("retrieval" if experiment == "table5" else "detection")
    chosen = run_arm(spec, pipeline)
    metrics = pipeline.metrics(spec.metrics)
    (values,) = pipeline.evaluate([chosen.choice], "test", metrics)
    assert list(values) == [unit.label for unit in spec.metrics]
    assert all(0 <= v <= 1 for row in values.values() for v in row.tolist())
    if experiment == "table5":
        assert values["recall@1"].item() <= values["recall@10"].item()
    else:
        by_class = (values["ap50(label=1)"] + values["ap50(label=2)"]) / 2
        torch.testing.assert_close(values["ap50"], by_class)


def briefly(spec, **changes):
    training = replace(spec.backbone.training, epochs=1, **changes)
    return replace(spec, backbone=replace(spec.backbone, training=training))


def spec_of(kind):
    return smoke_pipeline(*kind.places).theta_spec


@pytest.mark.parametrize("kind", FREEZING, ids=lambda kind: kind.metric)
def test_training_again_gives_the_same_network(kind, monkeypatch, tmp_path):
    """What a detector samples in training, too, depends on the seed alone."""
    spec = briefly(spec_of(kind))
    one = spec.trained_here()
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "elsewhere"))
    torch.manual_seed(123)
    assert spec.trained_here().facts["weights"] == one.facts["weights"]


@pytest.mark.parametrize("kind", FREEZING, ids=lambda kind: kind.metric)
def test_frozen_modules_keep_their_weights(kind):
    module, kept, moved = kind.frozen
    spec = briefly(spec_of(kind), frozen=(module,))
    start, trained = spec.fresh().state_dict(), spec.trained_here().tensors
    assert torch.equal(trained[kept], start[kept].half())
    assert not torch.equal(trained[moved], start[moved].half())


@pytest.mark.parametrize("kind", FREEZING, ids=lambda kind: kind.metric)
def test_an_unknown_frozen_module_is_named(kind):
    spec = briefly(spec_of(kind), frozen=("conv9",))
    with pytest.raises(ConfigError, match=r"must name modules of .*got 'conv9'"):
        spec.trained_here()

"""Planes through solutions: what is drawn of phi, of networks and of a quadratic."""

from dataclasses import replace

import pytest
import torch

from benchmarks.arms.contract import ARMS, run_arm
from benchmarks.arms.surfaces import Drawing, Space, drawn
from benchmarks.problems.choices import Adapted
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.pretrained.weight_space import WeightSpace
from benchmarks.runs.notes import SURFACE
from benchmarks.runs.spec import Unit, metric_of
from metricopt.errors import ConfigError
from tests.benchmarks.arms.arm_cases import record_of
from tests.benchmarks.problems.pipeline_cases import smoke_pipeline, smoke_spec

SIDE, ALONG = 3, 3
METRIC = "aucpr-macro-logits"


def plane_spec(row, *solutions):
    """The spec of a plane through some solutions alone."""
    spec = smoke_spec("figs2", row)
    found = [smoke_spec("figs2", solution).to_json() for solution in solutions]
    settings = {**spec.arm.settings, "solutions": found}
    return replace(spec, arm=replace(spec.arm, settings=settings))


def test_a_quadratic_loss_has_its_own_contours():
    slopes = torch.tensor([1.0, 4.0, 9.0])

    def levels(points):
        loss = (points.square() * slopes).sum(1)
        return loss, 1 / (1 + loss.double())

    ends = {
        "far": torch.tensor([2.0, 0.0, 0.0]),
        "near": torch.tensor([0.0, 0.0, 1.0]),
    }
    space = Space(torch.zeros(3), torch.ones(3), levels, lambda p: Adapted(p[None]))
    drawing = Drawing(side=5, along=3, margin=0.0)
    chosen = drawn(drawing, space, ends, metric_of(Unit("f1")))
    note = chosen.notes[SURFACE]
    assert note["x"] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert note["y"] == [0.0, 0.25, 0.5, 0.75, 1.0]
    # x is along the first weight, y along the third.
    expected = [[x**2 + 9 * y**2 for y in note["y"]] for x in note["x"]]
    assert note["loss"] == expected
    far, near = note["solutions"]
    assert (far["place"], near["place"]) == ([2.0, 0.0], [0.0, 1.0])
    assert far["off"] == near["off"] == 0.0
    assert note["paths"][1] == {
        "row": "near",
        "loss": [0.0, 9 / 4, 9.0],
        "metric": [1.0, round(4 / 13, 6), 0.1],
    }
    # The metric is best where the loss is least.
    assert chosen.choice.phi.tolist() == [[0.0, 0.0, 0.0]]
    assert chosen.evaluations == {"test": 25 + 1 + 2 * 2}


def test_a_plane_of_phi_leads_to_the_results_of_its_solutions():
    rows = ("loss-only", "phi-blackbox")
    record = record_of(plane_spec("phi-plane", *rows))
    note = record.notes[SURFACE]
    untouched = record_of(smoke_spec("figs2", "cross-entropy")).test[METRIC][0]
    for path, row in zip(note["paths"], rows, strict=True):
        first = record_of(smoke_spec("figs2", row)).test[METRIC][0]
        assert path["row"] == row
        assert path["metric"][0] == pytest.approx(untouched, abs=1e-6)
        assert path["metric"][-1] == pytest.approx(first, abs=1e-6)
    # Fine-tuning lowers the loss that it follows, of phi = 0.
    assert note["paths"][0]["loss"][-1] < note["paths"][0]["loss"][0]
    assert note["share"] == pytest.approx(1.0)
    best = max(value for line in note["metric"] for value in line)
    assert record.test[METRIC] == pytest.approx([best], abs=1e-6)
    made = SIDE * SIDE + 1 + 2 * (ALONG - 1)
    assert record.queried == {"test": made}
    assert record.queries == made


def test_a_plane_of_networks_leads_to_its_solutions():
    rows = ("longer", "loss-only")
    spec = plane_spec("network-plane", *rows)
    note = record_of(spec).notes[SURFACE]
    pipeline = make_pipeline(spec.pipeline, 0)
    metric = pipeline.metric(spec.metric)
    space = WeightSpace(pipeline, metric, train=100, test=200)
    longer = smoke_pipeline("figs2", "longer").theta
    tuned = run_arm(smoke_spec("figs2", "loss-only"), pipeline).choice.phi[0]
    networks = (longer, pipeline.adapter.merged(tuned))
    for path, network in zip(note["paths"], networks, strict=True):
        loss, value = space.levels(space.weights(network)[None])
        assert path["loss"][-1] == pytest.approx(float(loss), abs=1e-5)
        assert path["metric"][-1] == pytest.approx(float(value), abs=1e-5)
    assert set(note["halfway"]) == set(rows)
    assert [solution["off"] for solution in note["solutions"]] == [0.0, 0.0]


def test_solutions_of_another_network_are_refused_on_a_plane_of_phi():
    spec = plane_spec("phi-plane", "loss-only", "longer")
    with pytest.raises(ConfigError, match="share a network, 'longer' has another"):
        run_arm(spec, make_pipeline(spec.pipeline, 0))


def test_networks_of_solutions_are_there_before_a_plane_is_drawn():
    spec = plane_spec("network-plane", "longer", "blackbox")
    needed = {network.name for network in ARMS.get("network-plane").needs(spec)}
    # Both go on from the first.
    assert needed == {
        "digits-digit-net-cross-entropy-r0",
        "digits-digit-net-cross-entropy-longer-r0",
        "digits-digit-net-blackbox-ap-r0",
    }

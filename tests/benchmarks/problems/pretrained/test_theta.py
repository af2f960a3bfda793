"""Pre-trained networks: trained once, released, found, and refused if damaged."""

import json
import re
from dataclasses import replace

import pytest
import torch

from benchmarks.execution.networks import networks_of, prepare
from benchmarks.execution.runner import run_all
from benchmarks.problems.images.theta import ImageThetaSpec
from benchmarks.problems.pretrained import theta as pretrained
from benchmarks.problems.pretrained import weights as released
from benchmarks.problems.pretrained.weights import (
    half_weights,
    read_released,
    weights_digest,
)
from benchmarks.runs.artifacts import artifact_path
from benchmarks.runs.store import RunStore
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.problems.pipeline_cases import changed, smoke_pipeline, smoke_spec


@pytest.fixture
def spec():
    return smoke_pipeline("table1", "cross-entropy").theta_spec


@pytest.fixture
def elsewhere(monkeypatch, tmp_path):
    """Return what moves to a machine on which nothing was trained, or can be."""

    def fail(*arguments):
        raise AssertionError("a network was trained")

    def move():
        monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path / "elsewhere"))
        monkeypatch.setattr(ImageThetaSpec, "train", fail)

    return move


def test_theta_is_trained_once_and_stored_in_half(spec):
    artifact = spec.trained_here()
    assert spec.is_made and not spec.checkpoints.exists()
    assert artifact.tensors["0.weight"].dtype == torch.float16
    assert artifact.facts["weights"] == weights_digest(artifact.tensors)
    assert len(artifact.facts["losses"]) == 6
    theta = spec.find().network
    assert theta[0].weight.dtype == torch.float32
    assert torch.equal(theta[0].weight, artifact.tensors["0.weight"].float())


def test_every_epoch_is_reported(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("METRICOPT_CACHE", str(tmp_path))
    epochs = []
    spec.trained_here(epochs.append)
    assert [(epoch.number, epoch.epochs) for epoch in epochs] == [
        (number, 6) for number in range(1, 7)
    ]
    spec.trained_here(epochs.append)
    assert len(epochs) == 6


def test_a_released_network_has_its_record(spec):
    facts = spec.trained_here().facts
    record = json.loads(spec.write().with_suffix(".json").read_text())
    assert record["observe_mcr"] == facts["observe_mcr"]
    assert "commit" in record["environment"]
    assert record["spec"]["problem"]["dataset"] == "digits"


def test_a_training_under_way_takes_precedence_over_released_weights(spec, elsewhere):
    spec.trained_here()
    spec.write()
    elsewhere()
    spec.checkpoints.mkdir(parents=True)
    assert not spec.is_ready
    with pytest.raises(AssertionError, match="a network was trained"):
        spec.find()


def test_one_altered_bit_of_released_weights_is_found(spec, elsewhere):
    path = spec.write()
    assert released.released_problems(path.parent) == []
    elsewhere()
    intact = path.read_bytes()
    header = int.from_bytes(intact[:8], "little")
    # The identity of the recipe, the name of a tensor, the last weight.
    identity = intact.index(spec.digest.encode())
    name = intact.index(b'"0.weight"') + 1
    assert max(identity, name) < header
    for place in (identity, name, len(intact) - 1):
        flipped = bytes([intact[place] ^ 1])
        path.write_bytes(intact[:place] + flipped + intact[place + 1 :])
        with pytest.raises(DataError, match=f"{path.name} .*restore"):
            spec.find()
        (problem,) = released.released_problems(path.parent)
        assert problem.startswith(path.name)


def test_a_damaged_network_of_the_cache_gives_way_to_the_released_one(spec):
    artifact = spec.trained_here()
    spec.write()
    path = artifact_path(spec.kind, spec.content)
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.warns(UserWarning, match="is damaged and counts as not made"):
        found = spec.find().network.state_dict()
    assert torch.equal(found["0.weight"], artifact.tensors["0.weight"].float())
    assert not spec.is_made


def test_a_network_of_another_recipe_is_not_taken(spec):
    path = spec.write()
    longer = replace(spec.backbone.pretraining, epochs=7)
    other = replace(spec, backbone=replace(spec.backbone, pretraining=longer))
    assert other.name == spec.name and path.exists()
    assert read_released(other.name, other.digest) is None
    with pytest.raises(ConfigError, match="holds a network of another recipe"):
        released.release(other.name, other.digest, {}, spec.trained_here())


def record_of(path):
    return path.with_suffix(".json")


def rewritten(change):
    """Return what changes the record of a released network."""
    return lambda path: record_of(path).write_text(change(record_of(path).read_text()))


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        (
            rewritten(lambda text: json.dumps(json.loads(text) | {"weights": "00"})),
            "must hold the weights 00, got .*restore",
        ),
        (
            rewritten(lambda text: text.replace('"digits"', '"a9a"', 1)),
            r"must hold the network that .*json describes; restore both with git",
        ),
        (lambda path: record_of(path).unlink(), "needs its record"),
        (lambda path: path.write_bytes(b""), "is not a complete safetensors file; re"),
        (lambda path: path.write_bytes(b"version https://git-lfs"), "safetensors file"),
        (rewritten(lambda _: ""), "is not a record of a network; restore it"),
        (rewritten(lambda _: "[]"), "is not a record of a network; restore it"),
        (rewritten(lambda _: "{}"), "is not a record of a network; restore it"),
    ],
)
def test_a_damaged_released_network_is_refused(spec, elsewhere, damage, text):
    path = spec.write()
    damage(path)
    elsewhere()
    with pytest.raises(DataError, match=text):
        spec.find()
    (problem,) = released.released_problems(path.parent)
    assert re.search(text, problem)


def test_a_released_network_is_one_line_of_a_table(spec, tmp_path):
    spec.trained_here()
    (network,) = networks_of([smoke_spec("table1", "cross-entropy")])
    line = network.release()
    assert network == spec and network.is_ready and network.is_made
    assert list(line) == ["network", "epochs", "minutes", "error on observe", "MB"]
    assert float(line["MB"]) > 0 and 0 < float(line["error on observe"]) < 0.2
    assert len(list((tmp_path / "weights").iterdir())) == 2


def test_runs_of_a_diverging_network_are_recorded_as_such(tmp_path, monkeypatch):
    specs = []
    for row in ("cross-entropy", "loss-only"):
        spec = smoke_spec("table1", row)
        wild = spec.pipeline.settings["backbone"]["pretraining"] | {"rate": 1e30}
        specs.append(changed(spec, "backbone", pretraining=wild))
    trainings = []
    train = pretrained.train

    def counted(*arguments, **options):
        trainings.append(arguments)
        return train(*arguments, **options)

    monkeypatch.setattr(pretrained, "train", counted)
    store = RunStore(tmp_path / "store")
    prepare(specs)
    run_all(specs, store, workers=1)
    for record in map(store.get, specs):
        assert record.status == "diverged"
        assert "the loss became" in record.message
        assert set(record.data) == {"variant", "digest"}
        assert (record.queries, record.test, record.trace) == (0, {}, ())
    assert len(trainings) == 1


def test_a_warm_network_goes_on_from_cross_entropy(spec):
    warm = smoke_pipeline("table1", "blackbox").theta_spec
    assert warm.warm == [spec]
    start, end = (each.find().network[0].weight for each in (*warm.warm, warm))
    moved = (start - end).norm() / start.norm()
    assert 0 < moved < 0.5


def test_what_the_aucpr_loss_learned_is_kept_and_frozen():
    digits = smoke_pipeline("table2", "aucpr")
    assert digits.loss.multipliers.std() > 0
    assert not any(weight.requires_grad for weight in digits.loss.parameters())


def test_half_weights_round_matrices_alone():
    state = {"w": torch.tensor([[1.0001]]), "b": torch.tensor([1.0001])}
    found = half_weights(state)
    assert found["w"].dtype == torch.float16 and found["b"].dtype == torch.float32
    assert found["b"].item() == state["b"].item()


def test_the_digest_sees_every_weight():
    state = {"w": torch.zeros(2, 2), "b": torch.zeros(1)}
    other = {"w": torch.tensor([[0.0, 0.0], [0.0, 1e-7]]), "b": torch.zeros(1)}
    assert weights_digest(state) == weights_digest(dict(reversed(state.items())))
    assert weights_digest(state) != weights_digest(other)

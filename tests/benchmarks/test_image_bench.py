"""The image bench on digits: thetas trained, released and found; tasks and arms."""

import dataclasses
import json

import pytest
import torch

from benchmarks import thetas
from benchmarks.arms import run_arm
from benchmarks.experiments import mismatch, table1, table2
from benchmarks.image_bench import ImageBench, OnLogits
from benchmarks.images import SIZES
from benchmarks.networks import networks_of, prepare
from benchmarks.records import RunStore
from benchmarks.runner import run_all
from benchmarks.tasks import bench_of, kind_of, metric_of
from benchmarks.thetas import find_theta, is_ready, is_trained, release, trained_here
from metricopt.errors import ConfigError, DataError
from metricopt.metrics import make_metric


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("image-cache")


@pytest.fixture(autouse=True)
def own_places(cache, monkeypatch, tmp_path):
    monkeypatch.setenv("METRICOPT_CACHE", str(cache))
    monkeypatch.setattr(thetas, "RELEASED", tmp_path)
    torch.set_num_threads(1)


def spec_of(row, experiment=table1, column=None):
    found = [spec for spec in experiment.specs("smoke", 1, True) if spec.row == row]
    return next(spec for spec in found if column in (None, spec.column))


def bench(row="cross-entropy", **more) -> ImageBench:
    spec = spec_of(row, **more)
    found = bench_of(dict(spec.settings), 0)
    assert isinstance(found, ImageBench)
    return found


def test_the_smoke_network_learns_digits():
    judge = bench().judge(make_metric("mcr"))
    error = judge.values(torch.zeros(1, 64))
    assert error.item() < 0.2


def test_phi_zero_is_theta_and_features_are_cached():
    digits = bench()
    assert digits.adapter.is_cut and digits.adapter.size == 64
    outputs = digits.judge(make_metric("mcr")).outputs(torch.zeros(1, 64))[0]
    with torch.no_grad():
        expected = digits.theta(digits.splits.test.inputs)
    torch.testing.assert_close(outputs, expected, rtol=1e-5, atol=1e-5)
    one, other = (digits.task(make_metric("mcr")) for _ in range(2))
    assert one.observed.features[0] is other.observed.features[0]


def test_the_train_split_is_cut_to_what_fine_tuning_uses():
    digits = bench()
    assert len(digits.splits.train) == 500
    assert len(digits.problem.train.targets) == 1294


def test_theta_is_trained_once_and_stored_in_half():
    spec = bench().theta_spec
    artifact = trained_here(spec)
    assert is_trained(spec) and not spec.checkpoint.exists()
    assert artifact.tensors["0.weight"].dtype == torch.float16
    assert artifact.facts["weights"] == thetas.state_digest(artifact.tensors)
    assert len(artifact.facts["losses"]) == 6
    theta = find_theta(spec).network
    assert theta[0].weight.dtype == torch.float32
    assert torch.equal(theta[0].weight, artifact.tensors["0.weight"].float())


def test_released_weights_are_taken_where_nothing_was_trained(cache, monkeypatch):
    spec = bench().theta_spec
    artifact = trained_here(spec)
    path = release(spec, artifact)
    record = json.loads(path.with_suffix(".json").read_text())
    assert record["observe_mcr"] == artifact.facts["observe_mcr"]
    assert "commit" in record["environment"]
    monkeypatch.setenv("METRICOPT_CACHE", str(cache / "elsewhere"))

    def fail(*arguments):
        raise AssertionError("a network was trained")

    monkeypatch.setattr(thetas, "train_theta", fail)
    assert not is_trained(spec) and is_ready(spec)
    found = find_theta(spec).network.state_dict()
    assert torch.equal(found["0.weight"], artifact.tensors["0.weight"].float())


def test_released_weights_that_changed_are_refused(cache, monkeypatch):
    spec = bench().theta_spec
    artifact = trained_here(spec)
    wrong = artifact.facts | {"weights": "0" * 64}
    release(spec, artifact._replace(facts=wrong))
    monkeypatch.setenv("METRICOPT_CACHE", str(cache / "elsewhere"))
    with pytest.raises(DataError, match=r"must hold the weights 0000.*, got "):
        find_theta(spec)


def test_a_network_of_another_recipe_is_not_taken(tmp_path):
    spec = bench().theta_spec
    path = release(spec, trained_here(spec))
    longer = spec.backbone | {
        "pretraining": spec.backbone["pretraining"] | {"epochs": 7}
    }
    other = thetas.ThetaSpec(spec.problem, longer, 0)
    assert other.name == spec.name and path.exists()
    assert thetas.read_released(other) is None
    with pytest.raises(ConfigError, match="holds a network of another recipe"):
        release(other, trained_here(spec))


def test_released_weights_without_their_record_are_refused():
    spec = bench().theta_spec
    release(spec, trained_here(spec)).with_suffix(".json").unlink()
    with pytest.raises(DataError, match="needs its record"):
        thetas.read_released(spec)


@pytest.mark.parametrize("content", [b"", b"version https://git-lfs.github.com/spec"])
def test_damaged_weights_are_refused(content):
    spec = bench().theta_spec
    release(spec, trained_here(spec)).write_bytes(content)
    with pytest.raises(DataError, match="is no whole safetensors file; restore it"):
        thetas.read_released(spec)


@pytest.mark.parametrize("content", ["", "[]", "{}"])
def test_damaged_records_of_weights_are_refused(content):
    spec = bench().theta_spec
    release(spec, trained_here(spec)).with_suffix(".json").write_text(content)
    with pytest.raises(DataError, match="is no record of a network; restore it"):
        thetas.read_released(spec)


def changed(spec, part, **settings):
    """Return a spec with other settings of a part of its bench."""
    own = dict(spec.settings)
    return dataclasses.replace(spec, settings=own | {part: own[part] | settings})


def test_runs_of_a_diverging_network_are_recorded_as_such(tmp_path, monkeypatch):
    spec = spec_of("cross-entropy")
    wild = spec.settings["backbone"]["pretraining"] | {"rate": 1e30}
    specs = [
        changed(row, "backbone", pretraining=wild)
        for row in (spec, spec_of("loss-only"))
    ]
    trainings = []
    pretrain = thetas.pretrain

    def counted(*arguments, **options):
        trainings.append(arguments)
        pretrain(*arguments, **options)

    monkeypatch.setattr(thetas, "pretrain", counted)
    store = RunStore(tmp_path / "store")
    prepare(specs)
    run_all(specs, store, workers=1)
    for record in map(store.get, specs):
        assert record.status == "diverged"
        assert set(record.data) == {"variant", "digest"}
    assert len(trainings) == 1


def test_small_batches_are_refused_before_a_network_is_trained(monkeypatch):
    small = changed(spec_of("aucpr", experiment=table2), "finetune", batch_size=4)
    monkeypatch.setattr(thetas, "train_theta", None)
    with pytest.raises(ConfigError, match="at least 10 examples, one per class, got 4"):
        prepare([small])
    with pytest.raises(ConfigError, match="at least 10 examples, one per class, got 4"):
        run_arm(small)


def test_what_is_made_on_a_bench_is_of_this_very_network():
    digits = bench()
    weights = trained_here(digits.theta_spec).facts["weights"]
    assert digits.key["theta"] == digits.network_data["theta"] == weights


def test_the_rate_does_not_depend_on_who_asks_first():
    digits = bench()
    digits._rates.clear()
    task = digits.task(make_metric("mcr"))
    first = digits.rate(task, "sgd", 10)
    digits._rates.clear()
    digits.rate(task, "sgd", 50)
    assert digits.rate(task, "sgd", 10) == first


def test_losses_of_independent_outputs_are_ranked_by_raw_outputs():
    metric = make_metric("aucpr")
    assert bench().judged_by(metric) is metric
    judged = bench("aucpr", experiment=table2).judged_by(metric)
    assert judged.name == "aucpr-macro-logits"


def test_a_warm_network_goes_on_from_cross_entropy():
    warm = bench("blackbox").theta_spec
    assert warm.start == bench().theta_spec
    start, end = (find_theta(spec).network[0].weight for spec in (warm.start, warm))
    moved = (start - end).norm() / start.norm()
    assert 0 < moved < 0.5


def test_large_margin_outputs_are_twice_the_classes_but_judged_once():
    digits = bench("large-margin")
    metric = digits.judged_by(make_metric("mcr"))
    assert isinstance(metric, OnLogits) and metric.name == "mcr"
    outputs = digits.judge(make_metric("mcr")).outputs(torch.zeros(1, 64))
    assert outputs.shape[-1] == 20
    targets = digits.splits.test.targets
    expected = make_metric("mcr").values(outputs[..., :10], targets)
    assert torch.equal(metric.values(outputs, targets), expected)
    assert metric.value(outputs[0], targets) == expected.item()
    # Fine-tuning keeps the annealing the schedule ended with: 1000 * 1.12^-45.
    assert digits.loss.annealing == pytest.approx(6.1, abs=0.05)
    losses = digits.task(make_metric("mcr")).losses(
        torch.zeros(3, 64, requires_grad=True), torch.Generator()
    )
    assert losses.shape == (3,) and losses.requires_grad


def test_what_the_aucpr_loss_learned_is_kept_and_frozen():
    digits = bench("aucpr", experiment=table2)
    assert digits.loss.multipliers.std() > 0
    assert not any(weight.requires_grad for weight in digits.loss.parameters())


@pytest.mark.parametrize(
    "row",
    ["cross-entropy", "loss-only-dense", "cma-es", "oracle-test", "class-offsets"],
)
def test_arms_run(row):
    outcome = run_arm(spec_of(row))
    assert len(outcome.test) == spec_of(row).settings["meta_tests"]
    assert all(0 <= value <= 1 for value in outcome.test)


def test_the_cost_of_mistakes_is_asymmetric():
    metric = metric_of({"metric": "vehicle-animal-cost"})
    logits = torch.nn.functional.one_hot(torch.tensor([3, 0, 9, 4, 0]), 10).float()
    # A truck called a cat; a deer called an airplane; truck, deer and airplane right.
    targets = torch.tensor([9, 4, 9, 4, 0])
    assert metric.value(logits, targets) == pytest.approx((1 + 0.2) / 5)
    swapped = metric.value(logits, torch.tensor([4, 1, 9, 4, 0]))
    assert swapped == pytest.approx((0.1 + 0.1) / 5)


def test_metricopt_runs_with_its_diagnosis():
    outcome = run_arm(spec_of("metricopt"))
    assert outcome.shared_queries <= SIZES["smoke"].queries == 52
    names = {"spearman", "loss_spearman", "path_guided_cost", "embedding_x"}
    assert names <= set(outcome.notes)
    assert -1 <= outcome.notes["loss_spearman"] <= 1
    assert len(outcome.notes["path_steps"]) == 10


def test_the_oracle_on_test_is_at_least_as_good_on_test_as_the_start():
    oracle = run_arm(spec_of("oracle-test"))
    untouched = run_arm(spec_of("cross-entropy"))
    assert oracle.test[0] <= untouched.test[0]
    # What it observes is the test split itself.
    assert oracle.trace[-1]["observe"] == oracle.trace[-1]["test"]


@pytest.fixture
def cifar10_is_there(monkeypatch):
    for experiment in (table1, table2, mismatch):
        monkeypatch.setattr(experiment, "resolve_variant", lambda *a, **o: "full")


@pytest.mark.usefixtures("cifar10_is_there")
def test_networks_come_after_those_they_go_on_from():
    names = [theta.name for theta in networks_of(table2.specs("local", 1, True))]
    assert len(names) == len(set(names)) == 9
    for loss in ("blackbox-ap", "aucpr"):
        place = names.index(f"cifar10-resnet32-{loss}-r0")
        assert names.index("cifar10-resnet32-cross-entropy-r0") < place


@pytest.mark.usefixtures("cifar10_is_there")
@pytest.mark.parametrize("experiment", [table1, table2, mismatch])
def test_every_run_has_its_row_and_column(experiment):
    specs = experiment.specs("local", None, True)
    layout = experiment.layout("local")
    places = {(spec.row, spec.column) for spec in specs}
    assert len(places) == len(specs)
    assert {row for row, _ in places} <= set(layout.row_names)
    assert {column for _, column in places} == {c.name for c in layout.columns}
    assert all(kind_of(dict(spec.settings)) is ImageBench for spec in specs)

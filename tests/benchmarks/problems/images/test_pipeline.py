"""Image pipelines on digits: theta, features, metrics, losses, arms."""

from dataclasses import replace

import pytest
import torch

from baselines.network_methods.surrogate_loss import SurrogateLoss
from benchmarks.arms.contract import run_arm
from benchmarks.execution.networks import prepare
from benchmarks.execution.runner import judge
from benchmarks.problems.choices import Adapted, Trained
from benchmarks.problems.contract import make_pipeline
from benchmarks.problems.images.logit_metrics import OnLogits
from benchmarks.problems.images.pipeline import ImagePipeline
from benchmarks.problems.images.theta import ImageThetaSpec
from benchmarks.problems.images.tiers import SIZES
from benchmarks.problems.pretrained.settings import FilmSettings
from benchmarks.runs.spec import Arm, Spending, Unit
from metricopt.errors import ConfigError
from metricopt.reading.callables import make_metric
from metricopt.tasks.descent import loss_rate
from metricopt.tasks.judge import Judge
from tests.benchmarks.problems.pipeline_cases import changed, smoke_pipeline, smoke_spec


def spec_of(row, experiment="table1", **places):
    return smoke_spec(experiment, row, **places)


def pipeline_of(row="cross-entropy", experiment="table1", **places):
    return smoke_pipeline(experiment, row, **places)


def judged(spec):
    """Return what an arm chose and the fields of its record."""
    pipeline = make_pipeline(spec.pipeline, 0)
    chosen = run_arm(spec, pipeline)
    return chosen, judge(chosen, spec, pipeline)


def test_phi_zero_is_theta_and_features_are_cached():
    digits = pipeline_of()
    assert digits.adapter.is_cut and digits.adapter.size == 64
    outputs = Judge(digits.adapter, digits.encoded("test")).outputs(torch.zeros(1, 64))
    with torch.no_grad():
        expected = digits.theta(digits.splits.test.batch(slice(None)))
    torch.testing.assert_close(outputs[0], expected, rtol=1e-5, atol=1e-5)
    one, other = (digits.encoded("observe") for _ in range(2))
    assert one.features[0] is other.features[0]


def test_the_train_split_is_cut_to_what_fine_tuning_uses():
    digits = pipeline_of()
    assert len(digits.splits.train) == 500
    assert len(digits.whole.train.targets) == 1294
    # Whole networks are trained on all of it.
    assert len(digits.batches({}).targets) == 1294


def test_the_observe_split_is_cut_to_what_is_observed():
    whole = pipeline_of()
    settings = replace(whole.settings, observed=60)
    cut = ImagePipeline(settings, 0)
    assert len(cut.splits.observe) == 60
    assert torch.equal(cut.splits.observe.targets, whole.splits.observe.targets[:60])
    assert len(cut.splits.test) == len(whole.splits.test)
    assert cut.theta_spec == whole.theta_spec
    assert len(cut.outputs()) == 60
    assert "observed" in cut.key and "observed" not in whole.key


def test_training_shares_are_those_of_the_images_theta_was_trained_on():
    tail = pipeline_of(experiment="mismatch", column="tail/f-macro")
    counts = torch.bincount(tail.whole.train.targets)
    assert counts[0] >= 9 * counts[-1]
    expected = (counts / counts.sum()).double().tolist()
    assert tail.training_shares.tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("kind", "made"),
    [
        *(("class-offsets", 40), ("cma-offsets", 40), ("optuna-offsets", 40)),
        ("cw-plugin", 38),
    ],
)
def test_offsets_of_ten_classes_keep_a_budget(kind, made):
    spec = spec_of("cross-entropy", experiment="mismatch", column="tail/f-macro")
    _, found = judged(replace(spec, arm=Arm(kind), budget=Spending(40)))
    assert found["queries"] == made
    assert found["trace"][-1].observe["f-macro"] == found["observe"]["f-macro"]


def test_ten_thresholds_share_a_budget():
    spec = spec_of("cross-entropy", experiment="mismatch", column="tail/f-macro")
    _, found = judged(replace(spec, arm=Arm("one-vs-rest"), budget=Spending(45)))
    assert found["queried"] == {"observe": 40} and not found["trace"]
    assert len(found["notes"]["thresholds"]) == 10
    _, untouched = judged(spec)
    assert found["observe"]["f-macro"] > untouched["observe"]["f-macro"]


def test_probes_and_prior_correction_of_ten_classes():
    spec = spec_of("cross-entropy", experiment="mismatch", column="tail/f-macro")
    _, corrected = judged(replace(spec, arm=Arm("prior-correction")))
    _, untouched = judged(spec)
    assert corrected["observe"]["f-macro"] > untouched["observe"]["f-macro"]
    _, elicited = judged(replace(spec, arm=Arm("fw-eg"), budget=Spending(40)))
    assert elicited["queries"] == 1 + 3 * 11
    # Its first iterate is the corrected network, but decisions are all it returns.
    assert elicited["observe"]["f-macro"] >= corrected["observe"]["f-macro"]


def test_small_batches_are_refused_before_a_network_is_trained(monkeypatch):
    small = changed(spec_of("aucpr", experiment="table2"), "finetune", batch_size=4)
    monkeypatch.setattr(ImageThetaSpec, "train", None)
    with pytest.raises(ConfigError, match="at least 10 examples, one per class, got 4"):
        prepare([small])
    with pytest.raises(ConfigError, match="at least 10 examples, one per class, got 4"):
        run_arm(small, make_pipeline(small.pipeline, 0))


def test_the_rate_does_not_depend_on_who_asks_first():
    metric = make_metric("mcr")
    first = loss_rate(pipeline_of().task(metric), "sgd", 10)
    digits = pipeline_of()
    loss_rate(digits.task(metric), "sgd", 50)
    assert loss_rate(digits.task(metric), "sgd", 10) == first


def test_losses_of_independent_outputs_are_ranked_by_raw_outputs():
    unit = Unit("aucpr")
    assert pipeline_of().metric(unit).name == "aucpr"
    raw = pipeline_of("aucpr", experiment="table2")
    assert raw.metric(unit).name == "aucpr-macro-logits"
    # The label stays that of the run, by which records know it.
    assert list(raw.metrics([unit])) == ["aucpr"]
    assert raw.metric(Unit("mcr")).name == "mcr"


def test_large_margin_outputs_are_twice_the_classes_but_judged_once():
    digits = pipeline_of("large-margin")
    metric = digits.metric(Unit("mcr"))
    assert isinstance(metric, OnLogits) and metric.name == "mcr"
    outputs = Judge(digits.adapter, digits.encoded("test")).outputs(torch.zeros(1, 64))
    assert outputs.shape[-1] == 20
    targets = digits.splits.test.targets
    expected = make_metric("mcr").values(outputs[..., :10], targets)
    assert torch.equal(metric.values(outputs, targets), expected)
    assert metric.value(outputs[0], targets) == expected.item()
    # Post-hoc shifts see the outputs that say a class.
    assert digits.outputs().shape == (144, 10)
    # Fine-tuning keeps the annealing the schedule ended with: 1000 * 1.12^-45.
    assert digits.loss.annealing == pytest.approx(6.1, abs=0.05)
    losses = digits.task(make_metric("mcr")).losses(
        torch.zeros(3, 64, requires_grad=True), torch.Generator()
    )
    assert losses.shape == (3,) and losses.requires_grad


def assert_values(found, spec):
    values = found["test"][spec.metric.label]
    assert len(values) == spec.meta_tests
    assert all(0 <= value <= 1 for value in values)


@pytest.mark.parametrize("row", ["loss-only-dense", "cma-es", "class-offsets"])
def test_arms_run(row):
    spec = spec_of(row)
    chosen, found = judged(spec)
    assert_values(found, spec)
    assert chosen.queries <= spec.budget.queries or row == "class-offsets"


def test_metricopt_runs_with_its_diagnosis():
    chosen, found = judged(spec_of("metricopt"))
    assert chosen.shared_queries <= SIZES["smoke"].queries == 52
    names = {"spearman_guided", "loss_spearman", "path_guided_cost", "embedding_x"}
    assert names <= set(found["notes"])
    # One of each value function.
    ranks = found["notes"]["loss_spearman"]
    assert len(ranks) == 2 and all(-1 <= rank <= 1 for rank in ranks)
    assert len(found["notes"]["path_steps"]) == 10


def test_the_oracle_on_test_is_at_least_as_good_on_test_as_the_start():
    spec, start = spec_of("oracle-test"), spec_of("cross-entropy")
    label = spec.metric.label
    chosen, oracle = judged(spec)
    _, untouched = judged(start)
    assert_values(oracle, spec)
    assert_values(untouched, start)
    assert oracle["test"][label][0] <= untouched["test"][label][0]
    # What it observes is the test split itself, and it says so.
    assert oracle["trace"][-1].observe == oracle["trace"][-1].test
    assert chosen.evaluations == {"test": chosen.queries}


@pytest.mark.parametrize("from_theta", [True, False])
def test_a_network_method_trains_on_images(from_theta):
    digits = pipeline_of()
    metrics = digits.metrics([Unit("mcr")])
    validation = digits.validation(metrics["mcr"])
    epochs = []
    method = SurrogateLoss(loss="cross-entropy", on_epoch=epochs.append)
    result = digits.train(
        method,
        validation,
        generator=torch.Generator().manual_seed(0),
        changes={"epochs": 2, "batch_size": 64, "rate": 0.02},
        from_theta=from_theta,
    )
    assert (result.gradient_steps, result.queries) == (2 * (1294 // 64), 0)
    assert len(epochs) == 2
    trained, theta = Trained(result.predict), Adapted(torch.zeros(1, 64))
    values = [
        v["mcr"].item() for v in digits.evaluate([trained, theta], "test", metrics)
    ]
    assert values[0] < (values[1] + 0.05 if from_theta else 0.8)
    images = digits.splits.test.batch(slice(64))
    with torch.no_grad():
        assert not torch.equal(result.predict(images), digits.theta(images))
    # Theta itself is as it was.
    before = digits.pretrained.digest
    assert pipeline_of().pretrained.digest == before
    fresh = pipeline_of().theta.state_dict()
    assert all(torch.equal(fresh[k], v) for k, v in digits.theta.state_dict().items())


def test_output_offsets_may_stand_beside_film():
    digits = pipeline_of()
    settings = replace(digits.settings, adapter=FilmSettings(offsets=True))
    offered = ImagePipeline(settings, digits.replicate)
    assert offered.adapter.parts == {"adapter": slice(64), "offsets": slice(64, 74)}
    # What comes before the adapter is the same, and kept for both.
    one, other = digits.encoded("observe"), offered.encoded("observe")
    assert all(torch.equal(*pair) for pair in zip(one.first, other.first, strict=True))
    losses = offered.task(offered.metric(Unit("mcr"))).portfolio
    assert {"cross-entropy", "lovasz-softmax"} <= set(losses)
    assert "large-margin" not in losses

"""The pipeline of photographs: splits, networks, one generator, training, judging."""

from dataclasses import replace
from functools import cache, partial

import pytest
import torch
from torch import nn

from benchmarks.arms.contract import run_arm
from benchmarks.arms.phi_methods import learned
from benchmarks.data.contract import Dataset
from benchmarks.networks.contract import build_network
from benchmarks.problems.choices import Adapted
from benchmarks.problems.contract import SealedError, make_pipeline
from benchmarks.problems.photographs import pipeline as problems
from benchmarks.problems.photographs.pipeline import (
    PhotographProblem,
    PhotographThetaSpec,
    counted,
    load_splits,
)
from benchmarks.problems.photographs.tiers import (
    DRAWN,
    ELSEWHERE,
    NETWORKS,
    OWN,
    SMALLER,
)
from benchmarks.runs.spec import Unit
from metricopt.adapters.film import FiLM
from metricopt.errors import ConfigError, DataError
from tests.benchmarks.problems.pipeline_cases import smoke_pipeline, smoke_spec

spec_of = partial(smoke_spec, "table4")
pipeline_of = cache(partial(smoke_pipeline, "table4"))
ala_pipeline_of = cache(partial(smoke_pipeline, "ala-table4"))


def test_the_data_set_says_which_images_are_the_test():
    one, other = (load_splits(DRAWN, replicate) for replicate in (0, 1))
    sizes = [len(part) for part in (one.train, one.observe, one.test)]
    assert sizes == [240, 120, 120]
    assert counted(DRAWN) == (360, 120)
    assert torch.equal(one.test.batch(slice(3)), other.test.batch(slice(3)))
    assert not torch.equal(one.observe.targets, other.observe.targets)
    shown = {tuple(image.flatten().tolist()) for image in one.observe.batch(slice(9))}
    learned = one.train.batch(slice(None)).flatten(1).tolist()
    assert not shown & {tuple(image) for image in learned}


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"observed": 360}, DataError, "has 360 training images: expected fewer to"),
        ({"observed": 357}, DataError, "the train split of drawn-folders must hold"),
        ({"observed": 1}, DataError, "must hold every class, got none of"),
        (
            {"dataset": "digits", "variant": "full"},
            ConfigError,
            "digits-.* must hold colour|digits must hold colour",
        ),
    ],
)
def test_a_problem_that_cannot_be_split_is_refused(changes, error, message):
    with pytest.raises(error, match=message):
        load_splits(replace(DRAWN, **changes), 0)


@pytest.mark.parametrize("settings", [{"side": 0}, {"observed": 0}])
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(ConfigError, match=r"a problem needs \w+ >= 1, got"):
        PhotographProblem(
            **({"dataset": "imagenet", "side": 8, "observed": 1} | settings)
        )


def test_images_of_one_size_go_through_the_same_code(monkeypatch):
    """CIFAR-10, say: bytes of 32 x 32 pixels, and an official test part."""
    made = torch.Generator().manual_seed(0)
    inputs = torch.randint(256, (60, 32, 32, 3), generator=made, dtype=torch.uint8)
    targets = torch.arange(60) % 10
    names = tuple(map(str, range(10)))
    data = Dataset("cifar10", "full", "0" * 64, inputs, targets, names, "", 50)
    monkeypatch.setattr(problems, "load_dataset", lambda *_, **__: data)
    cifar = PhotographProblem("cifar10", 32, 20, "full")
    splits = load_splits(cifar, 0)
    assert [len(part) for part in (splits.train, splits.observe, splits.test)] == [
        *(30, 20, 10)
    ]
    assert splits.test.batch(slice(None)).shape == (10, 3, 32, 32)
    assert torch.equal(splits.test.pixels(0), inputs[50])
    assert counted(cifar) == (50_000, 10_000)
    with pytest.raises(
        ConfigError, match=r"of 48 x 48 pixels.*got torch.uint8 of \(32, 32, 3"
    ):
        load_splits(replace(cifar, side=48), 0)


def test_networks_share_the_generator_and_replicates_do_not():
    def described(row, replicate=0):
        """The adapter, on a network that is not trained yet."""
        pipeline = pipeline_of(row, replicate)
        return pipeline.film_of(pipeline.theta_spec.fresh().eval()).describe()

    own, slim = described("rmsprop"), described("powersign")
    assert own["form"] == "shared"
    assert own["seed"] == slim["seed"] != described("rmsprop", 1)["seed"]


def test_a_value_function_is_learned_elsewhere_and_costs_nothing_here():
    spec = spec_of("metricopt-resnet18")
    source = make_pipeline(spec.arm.source, 0)
    assert source.settings.backbone.network == "resnet18-slim"
    known = learned(spec, source)
    assert known.adapter["size"] == "256"
    pipeline = pipeline_of("rmsprop")
    chosen = run_arm(spec, pipeline)
    own = run_arm(spec_of("metricopt"), pipeline)
    # What is left are the trials of the step length.
    assert chosen.queried == {"observe": 15} and not chosen.prepared
    assert own.queries > chosen.queries
    assert isinstance(chosen.choice, Adapted)


def test_a_value_function_of_another_size_of_phi_is_refused():
    spec = spec_of("metricopt-resnet18")
    other = dict(spec.pipeline.settings)
    other["adapter"] = other["adapter"] | {"size": 128}
    pipeline = make_pipeline(Unit("imagenet", other), 0)
    with pytest.raises(ConfigError, match="size d of phi: expected 128, got 256"):
        run_arm(spec, pipeline)


def test_theta_is_trained_on_with_phi_in_it():
    pipeline = pipeline_of("rmsprop")
    phi = torch.randn(256, generator=torch.Generator().manual_seed(0))
    changes = {"epochs": 1, "rate": 1e-3, "schedule": "constant"}
    moved = pipeline.continued(phi, changes, generator=torch.Generator().manual_seed(0))
    assert moved.pretrained.digest != pipeline.pretrained.digest
    images = pipeline.splits.observe.batch(slice(4))
    # Its own phi = 0 is the trained network without what was in it.
    with torch.no_grad():
        plain = moved.theta(images)
    torch.testing.assert_close(moved.predict(images, torch.zeros(256)), plain)
    assert not torch.allclose(moved.predict(images, phi), plain, atol=1e-3)
    assert moved.adapter_settings == pipeline.adapter_settings
    with pytest.raises(SealedError):
        moved.oracle_task(moved.metric(Unit("mcr")))
    # The network it started from is as it was.
    assert not any(weight.requires_grad for weight in pipeline.theta.parameters())


def test_a_second_run_pays_for_both_and_starts_where_the_first_ended():
    spec, pipeline = spec_of("second-run"), pipeline_of("rmsprop")
    chosen = run_arm(spec, pipeline)
    own = run_arm(spec_of("metricopt"), pipeline)
    assert chosen.queries == own.queries + 15
    assert chosen.gradient_steps == 2 * own.gradient_steps
    images = pipeline.splits.observe.batch(slice(4))
    assert chosen.choice.predict(images).shape == (4, 6)
    with pytest.raises(ConfigError, match="needs one meta-test, as it trains a"):
        run_arm(replace(spec, meta_tests=2), pipeline)


def test_every_tier_has_a_network_for_each_source():
    for networks in NETWORKS.values():
        assert set(networks) == {OWN, SMALLER, ELSEWHERE}


@pytest.mark.parametrize("name", ["nasnet-a-tiny", "resnet18-slim"])
def test_film_commutes_with_the_pooling(name):
    images = torch.randn(3, 3, 64, 64)
    phi = 0.1 * torch.randn(2, 20)
    outputs, numbers = [], []
    network = build_network(name, lambda n: nn.Linear(n, 5), seed=1)
    (pooled,) = PhotographThetaSpec(None, None, 0).sites(network)
    for site in (pooled, str(int(pooled) - 1)):
        network = build_network(name, lambda n: nn.Linear(n, 5), seed=1).eval()
        film = FiLM(network, images, sites=(site,), form="shared", size=20)
        features = film.encode(images)
        outputs.append(film.predict(features, phi))
        numbers.append(sum(part.numel() for part in features))
    torch.testing.assert_close(*outputs)
    assert not torch.equal(outputs[0][0], outputs[0][1])
    assert numbers[0] < numbers[1]


def test_ala_begins_where_cross_entropy_does_and_keeps_its_policy():
    plain, taught = (ala_pipeline_of(row).theta_spec for row in ("rmsprop", "ala"))
    assert taught.name == plain.name.replace("rmsprop", "rmsprop-ala")
    first, second = plain.fresh().state_dict(), taught.fresh().state_dict()
    assert all(torch.equal(second[name], value) for name, value in first.items())
    facts = taught.trained_here().facts
    # 30 steps, a decision every 5, each after a measurement but the first.
    assert facts["queries"] == {"observe": 5}
    assert len(facts["notes"]["course_mcr"]) == 2
    assert facts["learned"]


def test_a_policy_of_other_images_is_used_as_it_is():
    teacher, taught = ala_pipeline_of("ala-cifar10").prerequisites
    assert teacher.problem.dataset == "digits"
    assert taught.warm == [teacher]
    facts = taught.trained_here().facts
    assert facts["learned"] == teacher.kept().facts["learned"]
    assert facts["queries"] == {}
    run = run_arm(
        smoke_spec("ala-table4", "ala-cifar10"), ala_pipeline_of("ala-cifar10")
    )
    assert run.queries == 0

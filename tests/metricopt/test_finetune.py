"""The one call: what it gains, what it may spend, what it leaves as it was."""

import copy
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
import torch
from sklearn.metrics import f1_score
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import metricopt
import metricopt.methods
from metricopt import (
    METHODS,
    Budget,
    ConfigError,
    DataError,
    FiLM,
    Finetuned,
    FinetuneOptions,
    Method,
    MetricError,
    finetune,
    make_metric,
)
from metricopt.errors import BudgetExceededError, DivergedError
from metricopt.finetune import resolve_method, suited
from metricopt.registry import import_units
from metricopt.result import FinetuneResult, last_step
from tests.metricopt import adapter_networks
from tests.metricopt.counted_metric import Counted
from tests.metricopt.digits_network import pretrained, splits

import_units(metricopt.methods)

TRAIN, OBSERVE, TEST = splits()
MACRO_F1 = partial(f1_score, average="macro")
QUICK = FinetuneOptions("random-search", queries=12, steps=4, progress=False)


@pytest.fixture(scope="module")
def theta() -> nn.Module:
    return pretrained(TRAIN)


@pytest.fixture
def model(theta: nn.Module) -> nn.Module:
    return copy.deepcopy(theta)


def improve(model: nn.Module, options: FinetuneOptions = QUICK, **other) -> Finetuned:
    given = {
        "train": TRAIN,
        "observe": OBSERVE,
        "loss": nn.CrossEntropyLoss(),
        "metric": MACRO_F1,
    }
    return finetune(model, **(given | other), options=options)


@torch.no_grad()
def macro_f1(model: nn.Module, split: tuple[Tensor, Tensor]) -> float:
    return f1_score(split[1], model(split[0]).argmax(1), average="macro")


# `check_metric` also tries the metric on outputs that are perfect, and inverted.
TRIED = 2


@pytest.mark.parametrize(
    ("method", "queries", "gain"), [("metricopt", 600, 0.02), ("guided-cma", 120, 0.05)]
)
def test_the_metric_improves_on_other_data(
    model: nn.Module, method: str, queries: int, gain: float
) -> None:
    before = macro_f1(model, TEST)
    found = metricopt.finetune(
        model,
        train=TRAIN,
        observe=OBSERVE,
        loss=nn.CrossEntropyLoss(),
        metric=partial(f1_score, average="macro"),
        options=metricopt.FinetuneOptions(method=method, queries=queries),
    )
    found.apply()
    assert macro_f1(model, TEST) > before + gain
    assert macro_f1(model, OBSERVE) == pytest.approx(found.metric_after)
    assert found.metric_after > found.metric_before + gain
    assert (found.health is not None) == (method == "metricopt")


@pytest.mark.parametrize("method", list(METHODS))
def test_no_method_exceeds_the_queries(model: nn.Module, method: str) -> None:
    metric = Counted()
    found = improve(
        model,
        replace(QUICK, method=method, queries=32),
        metric=make_metric(metric, higher_is_better=True),
    )
    assert len(metric.values) == found.spent.queries + TRIED
    assert 2 <= found.spent.queries <= 32
    assert found.method == method
    assert found.metric_before == metric.values[0]
    assert found.metric_after == max(found.metric_before, metric.values[-1])
    assert found.spent.gradient_steps <= 4
    assert found.history


def test_the_network_is_changed_by_apply_alone(model: nn.Module) -> None:
    weights = {name: value.clone() for name, value in model.state_dict().items()}
    before = model(TEST[0])
    generator = torch.get_rng_state()
    found = improve(model)
    assert torch.equal(torch.get_rng_state(), generator)
    assert torch.equal(model(TEST[0]), before)
    assert found.phi.any()
    assert found.apply() is model
    applied = model(TEST[0])
    features = found.adapter.encode(TEST[0])
    expected = found.adapter.predict(features, found.phi[None])[0]
    torch.testing.assert_close(applied, expected)
    assert not torch.equal(applied, before)
    assert found.remove() is model
    assert torch.equal(model(TEST[0]), before)
    assert all(torch.equal(weights[n], value) for n, value in weights.items())
    assert all(torch.equal(weights[n], v) for n, v in model.state_dict().items())


def test_a_saved_phi_gives_the_same_network_elsewhere(
    model: nn.Module, tmp_path: Path
) -> None:
    elsewhere = copy.deepcopy(model)
    found = improve(model)
    found.save(tmp_path / "phi.safetensors")
    adapter = metricopt.auto_adapter(elsewhere, TEST[0][:1])
    phi = metricopt.load_phi(tmp_path / "phi.safetensors", adapter)
    assert torch.equal(phi, found.phi)
    with adapter.attach(phi):
        assert torch.equal(elsewhere(TEST[0]), found.apply()(TEST[0]))


def test_loaders_and_data_sets_give_what_tensors_give(model: nn.Module) -> None:
    train, observe = TensorDataset(*TRAIN), TensorDataset(*OBSERVE)
    expected = improve(model)
    for other in (
        {"train": train, "observe": observe},
        {"train": DataLoader(train, 100), "observe": DataLoader(observe, 7)},
    ):
        found = improve(model, **other)
        assert torch.equal(found.phi, expected.phi)
        assert found.metric_after == expected.metric_after


def test_the_seed_decides(model: nn.Module) -> None:
    options = replace(QUICK, method="metricopt", queries=30)
    first, same, other = (
        improve(model, replace(options, seed=seed)).history[-1].phi
        for seed in (0, 0, 1)
    )
    assert torch.equal(first, same)
    assert not torch.equal(first, other)


@dataclass(frozen=True)
class Proposes(Method):
    """Proposes one number everywhere, after a number of queries of its own."""

    value: float
    queries: int = 0

    def run(self, task, budget: Budget, generator, *, rows: int = 1) -> FinetuneResult:
        phi = torch.full((rows, 1, task.size), self.value)
        for _ in range(self.queries):
            task.observe(phi[:, 0])
        return last_step(phi, shared_queries=self.queries)


def test_a_worse_proposal_is_turned_down(model: nn.Module) -> None:
    found = improve(model, replace(QUICK, method=Proposes(-1.0)))
    assert found.turned_down
    assert found.metric_proposed < found.metric_before == found.metric_after
    assert found.spent.queries == 2
    assert not found.phi.any()
    assert "The proposal of Proposes scored " in found.summary()
    assert "worse than the untouched network, which was kept: phi = 0." in (
        found.summary()
    )


def test_lower_may_be_better(model: nn.Module) -> None:
    options = replace(QUICK, method=Proposes(-1.0))
    found = improve(model, options, metric="mcr")
    assert found.turned_down
    assert found.metric_proposed > found.metric_before == found.metric_after
    assert "(lower is better)" in found.summary()


def test_the_summary_says_what_was_gained_and_spent(model: nn.Module) -> None:
    found = improve(model)
    first, last = found.summary().splitlines()
    assert re.fullmatch(
        rf"f1_score on the observe split: {found.metric_before:.4g} -> "
        rf"{found.metric_after:.4g} \(higher is better\) with 12 metric queries and 0 "
        r"gradient steps in \d+\.\d s \(random-search\)\.",
        first,
    )
    assert last == "phi was chosen on the observe split: judge it on other data."
    nothing = improve(model, replace(QUICK, method="untouched")).summary()
    assert "Nothing was gained on this split." in nothing


def test_an_error_keeps_the_best_phi(model: nn.Module) -> None:
    metric = Counted(fails_at=TRIED + 9)
    with pytest.raises(MetricError, match="raised OSError: no judge today") as caught:
        improve(model, metric=make_metric(metric, higher_is_better=True))
    partial_result = caught.value.partial
    assert partial_result.spent.queries == 8
    assert partial_result.metric_before == metric.values[0]
    best = max(metric.values[TRIED + 1 :])
    assert partial_result.metric_after == pytest.approx(max(best, metric.values[0]))
    assert "best so far, in `partial`: Counted on the" in caught.value.__notes__[-1]
    partial_result.apply()
    accuracy = (model(OBSERVE[0]).argmax(1) == OBSERVE[1]).double().mean().item()
    assert accuracy == pytest.approx(partial_result.metric_after)


def test_a_diverging_loss_keeps_the_untouched_network(model: nn.Module) -> None:
    def diverging(outputs: Tensor, targets: Tensor) -> Tensor:
        return outputs.sum() * float("inf")

    options = replace(QUICK, method="loss-only")
    with pytest.raises(DivergedError, match="the loss of row 0 is") as caught:
        improve(model, options, loss=diverging)
    assert not caught.value.partial.phi.any()


def test_a_greedy_method_is_stopped(model: nn.Module) -> None:
    options = replace(QUICK, method=Proposes(0.1, queries=11))
    message = "1 more metric queries after 11 exceed the limit of 11"
    with pytest.raises(BudgetExceededError, match=message) as caught:
        improve(model, options)
    assert caught.value.partial.spent.queries == 11
    assert improve(model, replace(options, queries=13)).spent.queries == 13


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"queries": 1}, "queries must be at least 2, .*, got 1"),
        ({"steps": 0}, "steps must be at least 1, got 0"),
        ({"adapter": "film"}, "adapter must be 'auto' or an adapter, got 'film'"),
        ({"adapter": object()}, "adapter must be 'auto' or an adapter, got <object"),
        ({"method": 3}, "method must be a name or a Method, got 3"),
    ],
)
def test_impossible_options_are_refused(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        FinetuneOptions(**settings)


def test_an_unknown_method_is_refused_before_the_model_is_touched() -> None:
    model = adapter_networks.mlp().train()
    known = "known: cma-es, guided-cma, .*, untouched"
    with pytest.raises(ConfigError, match=f"unknown method 'sorcery'; {known}"):
        improve(model, replace(QUICK, method="sorcery"))
    assert model.training


def test_an_adapter_is_taken_if_it_is_the_models(model: nn.Module) -> None:
    adapter = FiLM(model, TRAIN[0][:1], size=5, sites=["1"])
    assert improve(model, replace(QUICK, adapter=adapter)).adapter is adapter
    with pytest.raises(ConfigError, match="size and sites belong to adapter='auto'"):
        replace(QUICK, adapter=adapter, size=5)
    with pytest.raises(ConfigError, match="the adapter must be one of the model"):
        improve(copy.deepcopy(model), replace(QUICK, adapter=adapter))


def test_bad_data_and_metrics_are_refused(model: nn.Module) -> None:
    with pytest.raises(DataError, match="the train split is empty"):
        improve(model, train=(TRAIN[0][:0], TRAIN[1][:0]))
    one_class = OBSERVE[1] == 3
    with pytest.raises(DataError, match="'f-macro' needs targets of two classes"):
        improve(model, observe=[part[one_class] for part in OBSERVE], metric="f-macro")
    with pytest.raises(ConfigError, match="does not say which direction is better"):
        improve(model, metric=Counted())
    with pytest.raises(MetricError, match="but perfect predictions score 1") as caught:
        improve(
            model, replace(QUICK, higher_is_better=False), metric=Counted().__call__
        )
    assert caught.value.partial is None


@pytest.mark.parametrize(("size", "steps"), [(32, 50), (33, 100)])
def test_small_adapters_take_fewer_steps(
    model: nn.Module, size: int, steps: int
) -> None:
    options = replace(QUICK, method="loss-only", steps=None, size=size)
    assert improve(model, options).spent.gradient_steps == steps


@pytest.mark.parametrize(
    ("budget", "rollout", "health_tasks"),
    [
        (Budget(598, 50), (50, 3), 9),
        (Budget(598, 100), (100, 5), 5),
        (Budget(100, 2), (2, 2), 0),
    ],
)
def test_metricopt_is_suited_to_the_budget(
    budget: Budget, rollout: tuple[int, int], health_tasks: int
) -> None:
    method = suited(resolve_method("metricopt"), budget)
    made = method.recipe.rollout
    assert (made.steps, made.observations) == rollout
    assert method.health_tasks == health_tasks
    literal = suited(resolve_method("metricopt-literal"), budget).recipe.rollout
    assert (literal.steps, literal.observations) == rollout
    other = resolve_method("cma-es")
    assert suited(other, budget) is other


def test_the_public_names_exist_and_are_imported_late() -> None:
    assert all(getattr(metricopt, name) for name in metricopt.__all__)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        metricopt.Nothing  # noqa: B018
    assert isinstance(metricopt.finetune, Callable)
    program = (
        "import sys, metricopt; from metricopt import finetune; assert callable("
        "finetune); print([name for name in ('gpytorch', 'sklearn', 'scipy', "
        "'matplotlib', 'cma') if name in sys.modules])"
    )
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=Path(metricopt.__file__).parent.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.strip() == "[]"

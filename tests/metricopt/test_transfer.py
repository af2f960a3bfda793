"""What is learned of a metric on one network, used on another."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from metricopt import (
    ConfigError,
    FiLM,
    FinetuneOptions,
    KnownStatistics,
    KnownValueFunction,
    finetune,
    load_known,
    save_known,
    tune,
)
from metricopt.methods.result import Budget
from metricopt.on_outputs.cross_fitting import CrossFitting
from metricopt.on_outputs.metricopt_outputs import MetricOptOutputs
from tests.metricopt.digits_network import pretrained
from tests.metricopt.drawn import seeded
from tests.metricopt.improving import TEST, TRAIN, improve, macro_f1
from tests.metricopt.on_outputs.outputs_task import digits_task

OUTPUTS = FinetuneOptions("metricopt-outputs", queries=18, progress=False)
SHORT = CrossFitting(steps=10, samples=10)
"""Where only what the search learned matters."""
GUIDED = FinetuneOptions("metricopt", queries=200, no_harm=False, progress=False)


@pytest.fixture(scope="module")
def known():
    """What 15 queries on one network teach of the macro F."""
    method = MetricOptOutputs(cross_fitting=SHORT).fitted(Budget(15, 0))
    found = improve(pretrained(2), replace(OUTPUTS, method=method)).known
    assert isinstance(found, KnownStatistics)
    return found


def test_statistics_of_one_network_predict_the_metric_of_another(known):
    model = pretrained(1)
    before = macro_f1(model, TEST)
    alone = improve(model, replace(OUTPUTS, queries=10))
    told = improve(model, replace(OUTPUTS, queries=10, known=known))
    assert alone.evidence.identified is None
    assert told.evidence.identified <= 5
    predicted, first = told.evidence.trials[0]
    assert predicted == pytest.approx(first, abs=0.1)
    told.apply()
    assert macro_f1(model, TEST) > before + 0.05


@pytest.mark.parametrize("sign", [1, -1])
def test_costs_are_read_on_the_scale_of_the_call(sign, tmp_path):
    labels = (torch.rand(800, generator=seeded(0)) < 0.3).long()
    scores = 2 * labels - 1.6 + torch.randn(800, generator=seeded(1))

    def price(outputs, targets):
        alarms = (outputs > 0).long()
        missed, false = targets * (1 - alarms), (1 - targets) * alarms
        return sign * (60 * missed + 20 * false).double().mean().item()

    def priced(outputs, **settings):
        given = {"outputs": "logits", "progress": False, "higher_is_better": sign < 0}
        return tune(outputs, labels, price, **(given | settings)).found

    first = priced(scores, queries=20)
    path = tmp_path / "known.safetensors"
    save_known(path, first.known)
    known = load_known(path)
    assert known.scale == first.known.scale
    told = priced(scores - 0.5, queries=8, known=known)
    # Values of 9 and 11 have scales that end at 10 and at 100.
    metric = told.metric
    assert (metric.low, metric.high) != (known.scale.low, known.scale.high)
    for predicted, observed in told.evidence.trials:
        assert predicted == pytest.approx(observed, abs=0.02)
    # Nothing is known of the scale in a file of an earlier version.
    old = replace(known, scale=None)
    assert old.on(told.known.scale) is old
    assert known.on(known.scale) is known


def test_what_does_not_predict_is_forgotten(known):
    wrong = KnownStatistics(known.groups, 1 - known.costs)
    task = digits_task("f-macro")
    told = MetricOptOutputs(known=wrong, cross_fitting=SHORT)
    found = told.run(task, Budget(20, 0), seeded(0))
    assert found.notes["identified"] == 1
    assert found.evidence[0].identified > 3
    # The first predictions, of what was told, are no longer held against the search.
    assert len(found.evidence[0].trials) < found.queries - 4


def test_another_number_of_classes_is_refused_before_a_query(known):
    images = TRAIN[0]
    made = seeded(0)
    few = (images[:200], torch.randint(4, (200,), generator=made))
    asked = []

    def metric(outputs, targets):
        asked.append(1)
        return 0.5

    with pytest.raises(ConfigError, match=r"same number of classes: expected \d+ num"):
        finetune(
            nn.Sequential(nn.Flatten(), nn.Linear(images[0].numel(), 4)),
            train=few,
            observe=few,
            loss=nn.CrossEntropyLoss(),
            metric=metric,
            options=replace(OUTPUTS, known=known, higher_is_better=True),
        )
    assert not asked


def film(model: nn.Module, **settings) -> FiLM:
    made = {"sites": ["2"], "form": "shared", "size": 8}
    return FiLM(model, TRAIN[0][:4], **(made | settings))


def wide(width: int) -> nn.Module:
    torch.manual_seed(width)
    pixels = TRAIN[0][0].numel()
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(pixels, width), nn.ReLU(), nn.Linear(width, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(TRAIN[0]), TRAIN[1]).backward()
        optimizer.step()
    return model


@pytest.fixture(scope="module")
def value_function():
    model = wide(24)
    found = improve(model, replace(GUIDED, adapter=film(model))).known
    assert isinstance(found, KnownValueFunction)
    assert found.adapter["form"] == "shared"
    return found


def test_a_value_function_of_phi_goes_to_a_network_of_another_width(value_function):
    model = wide(32)
    options = replace(GUIDED, adapter=film(model), queries=20)
    found = improve(model, replace(options, known=value_function))
    # Step lengths are tried, and nothing is learned: 20 queries would not allow it.
    assert found.spent.queries <= 20
    asked = []
    few = replace(options, queries=14, callback=lambda *each: asked.append(each))
    with pytest.raises(ConfigError, match="metricopt needs queries=18 or more, got 14"):
        improve(model, few)
    assert not asked
    assert improve(model, replace(few, queries=18)).spent.queries <= 18


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"size": 9}, "size d of phi: expected 9, got 8"),
        ({"seed": 1}, "seed of the generator: expected 1, got 0"),
        ({"form": "generator"}, "form of FiLM: expected generator, got shared"),
        ({"form": "direct", "size": None}, "size d of phi: expected 64, got 8"),
    ],
)
def test_phi_that_means_something_else_is_refused(value_function, settings, message):
    model = wide(32)
    options = replace(GUIDED, adapter=film(model, **settings), known=value_function)
    with pytest.raises(ConfigError) as caught:
        improve(model, options)
    assert message in str(caught.value)
    assert caught.value.partial is None


def test_networks_of_different_width_share_the_first_rows_of_the_generator():
    narrow, broad = film(wide(24)), film(wide(32))
    phi = torch.randn(2, 8, generator=seeded(0))
    one, two = (each._modulation(phi) for each in (narrow, broad))
    assert torch.equal(one.shifts[0], two.shifts[0][:, :24])
    assert torch.equal(one.factors[0], two.factors[0][:, :24])
    alone = film(wide(24), form="generator")._modulation(phi)
    assert not torch.equal(one.shifts[0], alone.shifts[0])


@pytest.mark.parametrize("kind", ["known", "value_function"])
def test_it_is_saved_and_loaded(tmp_path, request, kind):
    known = request.getfixturevalue(kind)
    save_known(tmp_path / "known.safetensors", known)
    loaded = load_known(tmp_path / "known.safetensors")
    assert type(loaded) is type(known)
    name = "groups" if kind == "known" else "tensors"
    for key, tensor in getattr(known, name).items():
        assert torch.equal(getattr(loaded, name)[key], tensor)
    if kind == "known":
        assert torch.equal(loaded.costs, known.costs)
    else:
        assert loaded.facts == known.facts
        assert dict(loaded.adapter) == dict(known.adapter)


def test_other_files_are_refused(tmp_path):
    with pytest.raises(ConfigError, match="there is no file"):
        load_known(tmp_path / "none")
    model = pretrained(1)
    found = improve(model, replace(OUTPUTS, queries=6))
    found.save(tmp_path / "phi")
    with pytest.raises(ConfigError, match="must hold what save_known writes"):
        load_known(tmp_path / "phi")
    # What is not known is not written.
    with pytest.raises(ConfigError, match="known must be what a result has in"):
        save_known(tmp_path / "known", None)
    assert not (tmp_path / "known").exists()


def test_methods_say_what_they_have_no_use_for(known, value_function):
    model = pretrained(1)
    for method in ("cma-es", "metricopt"):
        with pytest.raises(ConfigError, match=f"{method} has no use for a KnownStat"):
            improve(model, FinetuneOptions(method, queries=200, known=known))
    with pytest.raises(ConfigError, match="no use for a KnownValueFunction"):
        improve(model, replace(OUTPUTS, known=value_function))
    with pytest.raises(ConfigError, match="known must be what load_known"):
        FinetuneOptions(known="known.safetensors")

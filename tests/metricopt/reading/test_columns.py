"""What stands beside the labels is cut with them and reaches the metric by name."""

from functools import cache, partial

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.metrics import f1_score, roc_auc_score
from torch import nn
from torch.utils.data import DataLoader, Dataset

from metricopt import (
    ConfigError,
    DataError,
    LazySplit,
    Metric,
    NetworkTask,
    Split,
    auto_adapter,
    make_metric,
)
from metricopt.reading.columns import columns_of, groups_of
from metricopt.reading.meaning import PLAIN
from metricopt.tasks.examples import as_split
from metricopt.tasks.judge import bound_metric
from tests.metricopt.drawn import seeded
from tests.metricopt.reading.grouped import improved, network, splits

CPU = torch.device("cpu")
TRAIN, OBSERVE = splits()
GROUP, AMOUNT = OBSERVE.columns["group"], OBSERVE.columns["amount"]


class Triples(Dataset):
    """Examples with a dict of what stands beside them."""

    def __len__(self):
        return len(OBSERVE)

    def __getitem__(self, at):
        beside = {name: part[at] for name, part in OBSERVE.columns.items()}
        return OBSERVE.inputs[at], OBSERVE.targets[at], beside


def with_columns(columns):
    return OBSERVE.inputs, OBSERVE.targets, columns


def worst_group(outputs, targets, group):
    hit = (outputs.argmax(1) == targets).numpy()
    return min(hit[group == each].mean() for each in ("rough", "fine"))


FORMS = {
    "arrays": with_columns({"group": GROUP, "amount": AMOUNT.numpy()}),
    "lists": with_columns({"group": [*GROUP], "amount": AMOUNT.tolist()}),
    "series": with_columns(dict(pd.DataFrame({"group": GROUP, "amount": AMOUNT}))),
    "frame": with_columns(pd.DataFrame({"group": GROUP, "amount": AMOUNT})),
    "Split": OBSERVE,
    "LazySplit": LazySplit(
        [*zip(OBSERVE.inputs, OBSERVE.targets, strict=True)], columns=OBSERVE.columns
    ),
    "data set": Triples(),
    "loader": DataLoader(Triples(), 50),
}


@pytest.mark.parametrize("given", FORMS.values(), ids=FORMS)
def test_columns_come_in_every_form(given):
    read = columns_of(as_split(given, name="observe", device=CPU))
    assert list(read["group"]) == list(GROUP)
    assert isinstance(read["group"], np.ndarray)
    assert torch.equal(read["amount"].double(), AMOUNT)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"amount": AMOUNT[1:]}, r"'amount' of the observe split needs one value for"),
        ({"amount": 3.0}, r"each of the 369 examples, got one"),
        (
            {"amount": [[1], [1, 2]]},
            r"'amount' of the observe split needs values of one",
        ),
        ({4: AMOUNT}, r"name of a column must be a text, got 4"),
    ],
)
def test_other_columns_are_refused(columns, message):
    with pytest.raises(DataError, match=message):
        as_split(with_columns(columns), name="observe", device=CPU)


def test_a_tensor_beside_the_targets_has_no_name():
    given = OBSERVE.inputs, OBSERVE.targets, AMOUNT
    with pytest.raises(DataError, match=r"\(inputs, targets, \{'name': values\}\)"):
        as_split(given, name="observe", device=CPU)


def test_no_columns_but_a_dict_of_them():
    with pytest.raises(DataError, match=r"must be a dict from names to values, got"):
        Split(OBSERVE.inputs, OBSERVE.targets, [AMOUNT])


def test_columns_follow_the_examples_in_every_query():
    def share(outputs, targets, place, group):
        assert torch.equal(OBSERVE.targets[place], targets)
        assert (GROUP[place.numpy()] == group).all()
        place.zero_()  # what a metric changes is its own copy
        return (outputs.argmax(1) == targets).double().mean().item()

    found = improved(share, higher_is_better=True, queries=8)
    assert found.spent.queries > 3
    assert not [each for each in found.warnings if "failed" in each]


@cache
def found_for(metric):
    """What a call finds for a metric of columns."""
    return improved(metric, higher_is_better=True, queries=30)


def test_a_metric_of_groups_is_the_one_computed_by_hand():
    found = found_for(worst_group)
    with torch.no_grad():
        outputs = network()(OBSERVE.inputs)
        after = found.merge()(OBSERVE.inputs)
    before = worst_group(outputs, OBSERVE.targets, GROUP)
    assert found.metric_before == pytest.approx(before)
    gained = worst_group(after, OBSERVE.targets, GROUP)
    assert found.metric_after == pytest.approx(gained)


@pytest.mark.parametrize(
    "function",
    [partial(f1_score, average="macro"), "f1_macro", roc_auc_score],
    ids=["labels", "scorer", "scores"],
)
def test_functions_of_scikit_learn_take_sample_weight(function):
    model = network()
    weighted = with_columns({"sample_weight": AMOUNT})
    found = improved(function, model=model, observe=weighted, queries=5)
    with torch.no_grad():
        outputs = model(OBSERVE.inputs)
    if function == "f1_macro":
        function = partial(f1_score, average="macro")
    seen = outputs.softmax(1)[:, 1] if function is roc_auc_score else outputs.argmax(1)
    alike, other = (
        function(OBSERVE.targets, seen, sample_weight=w) for w in (AMOUNT, None)
    )
    assert found.metric_before == pytest.approx(alike)
    assert alike != pytest.approx(other)


def test_of_scikit_learn_no_other_column_is_taken():
    found = improved(f1_score, observe=with_columns({"average": GROUP}), queries=5)
    assert any("no parameter named 'average'" in each for each in found.warnings)


@pytest.mark.parametrize("name", ["outputs", "targets", "meaning", "metric", "self"])
def test_a_column_may_have_any_name(name):
    columns = with_columns({name: AMOUNT})
    seen = []

    def first(y_true, y_pred, **columns):
        seen.append(set(columns))
        return float((y_pred.argmax(1) == y_true).double().mean())

    def second(outputs, targets, **columns):
        return first(targets, outputs, **columns)

    improved(first, observe=columns, higher_is_better=True, queries=6)
    assert {name} in seen
    seen.clear()
    cheap = {"method": "random-search", "no_harm": False}
    improved(second, observe=columns, higher_is_better=True, queries=6, **cheap)
    taken = set() if name in ("outputs", "targets") else {name}
    assert taken in seen


class WeightedHits:
    """An object that accumulates, with a column of its own."""

    higher_is_better = True

    def reset(self):
        self.hits = self.whole = 0.0

    def update(self, predictions, targets, amount):
        self.hits += ((predictions > 0.5) == targets).double() @ amount
        self.whole += amount.sum()

    def compute(self):
        return self.hits / self.whole


class MoneySaved(Metric):
    """A metric of its own class, which says what it takes."""

    name = "money saved"
    higher_is_better = True
    columns = ("amount",)

    def _value(self, outputs, targets):
        hit = outputs.argmax(1) == targets.targets
        return (hit.double() @ targets.columns["amount"]) / len(targets) / 1000


@pytest.mark.parametrize("metric", [WeightedHits(), MoneySaved()])
def test_objects_take_columns(metric):
    found = improved(metric, queries=5)
    with torch.no_grad():
        hit = network()(OBSERVE.inputs).argmax(1) == OBSERVE.targets
    money = (hit.double() @ AMOUNT).item()
    whole = AMOUNT.sum() if isinstance(metric, WeightedHits) else 1000 * len(hit)
    assert found.metric_before == pytest.approx(money / float(whole), abs=1e-4)


@pytest.mark.parametrize("metric", [worst_group, MoneySaved()])
def test_what_a_metric_needs_and_nobody_gives_is_refused_before_a_query(metric):
    metric = make_metric(metric, higher_is_better=True)
    needed = r"'group'.*observe=\(inputs|lacks amount"
    with pytest.raises(ConfigError, match=needed) as caught:
        improved(metric, observe=with_columns({"place": AMOUNT}))
    assert caught.value.partial is None


def test_what_a_partial_gives_is_not_needed():
    metric = partial(worst_group, group=GROUP)
    found = improved(metric, higher_is_better=True, queries=6)
    assert not [each for each in found.warnings if "failed" in each]


def task_on(train):
    metric = make_metric(worst_group, higher_is_better=True)
    return NetworkTask(
        auto_adapter(network(), TRAIN.inputs[:4]),
        nn.CrossEntropyLoss(),
        bound_metric(metric, PLAIN, OBSERVE.columns),
        train=train,
        observe=OBSERVE,
    )


def untouched_worst_group(split, places):
    with torch.no_grad():
        outputs = network()(split.inputs[places])
    group = split.columns["group"][places.numpy()]
    return worst_group(outputs, split.targets[places], group)


def test_columns_are_cut_with_parts_of_both_splits():
    task, places = task_on(TRAIN), torch.arange(0, len(OBSERVE), 3).flip(0)
    phi = torch.zeros(1, task.size)
    cost = task.observe_part(phi, places).item()
    assert cost == pytest.approx(1 - untouched_worst_group(OBSERVE, places))
    cost = task.observe_train(phi, seeded(0)).item()
    every = torch.arange(len(TRAIN))
    assert cost == pytest.approx(1 - untouched_worst_group(TRAIN, every))


def test_a_query_on_train_needs_its_columns():
    task = task_on(Split(TRAIN.inputs, TRAIN.targets))
    with pytest.raises(DataError, match=r"column 'group', which these examples"):
        task.observe_train(torch.zeros(1, task.size), seeded(0))


def test_a_checkpoint_of_other_columns_is_refused(tmp_path):
    given = {"higher_is_better": True, "queries": 8, "checkpoint": tmp_path / "kept"}
    first = improved(worst_group, **given)
    again = improved(worst_group, **given)
    assert again.spent.replayed == first.spent.queries
    assert torch.equal(again.phi, first.phi)
    with pytest.raises(ConfigError, match=r"its observe split was"):
        improved(worst_group, observe=with_columns({"group": GROUP[::-1]}), **given)


def equalized_odds(outputs, targets, group):
    """Balanced accuracy less the greatest gap of a rate between groups."""
    decided, labels = outputs.argmax(1).numpy(), targets.numpy()
    rates = np.array(
        [
            [decided[(group == each) & (labels == label)].mean() for label in (0, 1)]
            for each in ("rough", "fine")
        ]
    )
    balanced = (1 + rates[:, 1] - rates[:, 0]).mean() / 2
    return balanced - np.abs(rates[0] - rates[1]).max()


def earned(outputs, targets, amount):
    """What is earned where a find brings its amount, and a look costs 500."""
    looked = outputs.argmax(1) == 1
    return (looked * (targets * amount - 500)).mean().item()


@pytest.mark.parametrize("metric", [equalized_odds, earned, worst_group])
def test_a_metric_of_columns_is_identified_like_any_other(metric):
    found = found_for(metric)
    assert found.evidence.identified is not None
    assert found.evidence.identified <= 14
    assert found.spent.queries <= 22
    assert found.metric_after >= found.metric_before


@pytest.mark.parametrize(
    ("values", "maybe", "surely"),
    [
        (np.array(["a", "b", None], dtype=object), 3, 3),
        (torch.tensor([True, False]), 2, 2),
        (torch.tensor([3, 1, 3]), 2, 2),
        (torch.tensor([1.0, 2.0, torch.nan]), 3, 0),
        (torch.tensor([0.5, 2.0]), 2, 0),
        (torch.arange(10), 10, 10),
        (torch.arange(11), 0, 0),
        (torch.ones(4), 0, 0),
        (torch.tensor([[1, 2], [3, 4]]), 0, 0),
    ],
)
def test_few_values_name_groups(values, maybe, surely):
    columns = {"which": values, "sample_weight": values}
    for amounts, count in ((True, maybe), (False, surely)):
        found = groups_of(columns, amounts=amounts)
        assert [*found] == (["which"] if count else [])
        for places, names in found.values():
            assert len(names) == count == len(places.unique())


LONELY = {
    "x of 'group' has 1 of the examples: what is measured": np.array(
        ["x"] + ["y"] * 368
    ),
    "well of 'group' has no example of class 1": np.where(
        OBSERVE.targets == 1, "ill", "well"
    ),
}


@pytest.mark.parametrize("text", LONELY)
def test_a_group_that_says_little_is_warned_of(text):
    def worst(outputs, targets, group):
        hit = (outputs.argmax(1) == targets).numpy()
        return min(hit[group == each].mean() for each in np.unique(group))

    observe = with_columns({"group": LONELY[text]})
    found = improved(worst, observe=observe, higher_is_better=True, queries=6)
    assert any(text in each for each in found.warnings)
    usual = improved(worst, higher_is_better=True, queries=6)
    assert not [each for each in usual.warnings if "the group" in each]

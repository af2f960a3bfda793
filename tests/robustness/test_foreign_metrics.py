"""Metrics of other packages: each is the number of a direct call, or is refused."""

import inspect
import warnings
from functools import partial

import numpy as np
import pytest
import sklearn.metrics as sk
import torch
import torchmetrics.classification as tc
import torchmetrics.functional.classification as tfc
import torchmetrics.functional.regression as tfr
import torchmetrics.regression as tr

from metricopt import MetricOptError
from metricopt.reading.callables import make_metric
from tests.robustness import foreign_tables as tables
from tests.robustness.foreign_tables import (
    BY_KIND,
    CASES,
    every_class,
    measured,
    prepared,
)

pytestmark = pytest.mark.filterwarnings("ignore:Metric .* will save all targets")
EXACT = {"rel": 1e-9, "abs": 1e-9}
REFUSALS = (
    r"expects [\w -]+ as targets, but here|is for \d+ classes, but the outputs have|"
    r"must return (a|one) number, got|also needs|takes \(p, q\)|compares several|"
    r"gives several numbers|"
    r"^metric .\w+. raised ValueError: "
)
TASKS = {"Binary": "binary", "Multiclass": "multiclass", "Multilabel": "multilabel"}
CLASSES = {"b": 2, "c": 10}


def assert_right_or_refused(spec, case, right, direct):
    """Require the number of a direct call where it is right, else a refusal."""
    if not right:
        with pytest.raises(MetricOptError, match=REFUSALS) as caught:
            measured(spec, case)
        assert "\n" not in str(caught.value)
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = direct()
    value = found[0] if isinstance(found, tuple) else found
    expected = float(np.asarray(value).item())
    assert measured(spec, case) == pytest.approx(expected, **EXACT)


ROWS = [(name, {}, right) for name, (_, right) in tables.SKLEARN.items()]
ROWS = [row for row in (*ROWS, *tables.SKLEARN_WITH) if hasattr(sk, row[0])]


@pytest.mark.parametrize(("name", "given", "right"), ROWS, ids=str)
def test_functions_of_scikit_learn(name, given, right):
    """Regressions were given labels, several labels a softmax, and hinge nothing."""
    function = partial(getattr(sk, name), **given) if given else getattr(sk, name)
    expects = tables.SKLEARN[name][0]

    def direct(case):
        read, truth = prepared(expects, case)
        return function(truth.numpy(), read.numpy())

    for kind, case in BY_KIND:
        assert_right_or_refused(function, case, kind in right, partial(direct, case))


KNOWN = tables.TORCH | tables.TORCH_FIXED | tables.TORCH_NO_NUMBER


def settings(task, suffix, kind):
    """Arguments of a class or function of torchmetrics."""
    size = {
        "Binary": {},
        "Multiclass": {"num_classes": CLASSES.get(kind, 10)},
        "Multilabel": {"num_labels": 4},
    }
    found = tables.TORCH_WITH.get(suffix, {}) | size[task]
    return found | tables.TORCH_WITH.get(f"{task}{suffix}", {})


def of_task(suffixes, package, named):
    """Every task and suffix that torchmetrics has."""
    return [
        (task, suffix)
        for suffix in suffixes
        for task in TASKS
        if hasattr(package, named(task, suffix))
    ]


def class_name(task, suffix):
    return f"{task}{suffix}"


def function_name(task, suffix):
    return f"{TASKS[task]}_{KNOWN[suffix]}"


def right_for(task, suffix):
    if suffix in tables.TORCH_NO_NUMBER:
        return ""
    if suffix in tables.TORCH_FIXED and task != "Binary":
        return ""
    default = tables.TORCH_RIGHT[task]
    return tables.TORCH_RIGHT_EXCEPT.get(f"{task}{suffix}", default)


def prepared_for(task, case):
    return every_class(case) if task == "Multiclass" else prepared("scores", case)


def accumulated(metric, given, truth):
    metric.update(given, truth)
    return metric.compute()


OF_CLASSES = [(*row, "class") for row in of_task(KNOWN, tc, class_name)]
OF_FUNCTIONS = [(*row, "function") for row in of_task(KNOWN, tfc, function_name)]


@pytest.mark.parametrize(("task", "suffix", "form"), OF_CLASSES + OF_FUNCTIONS)
def test_classification_of_torchmetrics(task, suffix, form):
    """Matrices of two classes and several labels were given in one form for all.

    Functions were called with (outputs, targets) as the network returns them.
    """
    for kind, case in BY_KIND:
        given, data = settings(task, suffix, kind), prepared_for(task, case)
        if form == "class":
            make = partial(getattr(tc, class_name(task, suffix)), **given)
            spec, direct = make(), partial(accumulated, make(), *data)
        else:
            spec = partial(getattr(tfc, function_name(task, suffix)), **given)
            direct = partial(spec, *data)
        assert_right_or_refused(spec, case, kind in right_for(task, suffix), direct)


@pytest.mark.parametrize("suffix", tables.TORCH)
def test_wrappers_that_take_a_task(suffix):
    """`Accuracy(task=...)` and `accuracy` with a task are those of the task."""
    name, checked = tables.TORCH[suffix], 0
    for task, short in TASKS.items():
        if not hasattr(tc, suffix) or not hasattr(tc, class_name(task, suffix)):
            continue
        case = {"Binary": "two logits", "Multiclass": "logits"}.get(
            task, "several logits"
        )
        if not right_for(task, suffix):
            continue
        given = {"task": short} | settings(task, suffix, "c")
        make = partial(getattr(tc, suffix), **given)
        function = partial(getattr(tfc, name), **given)
        data = prepared_for(task, case)
        assert_right_or_refused(make(), case, True, partial(accumulated, make(), *data))
        assert_right_or_refused(function, case, True, partial(function, *data))
        checked += 1
    assert checked or not hasattr(tc, suffix)


@pytest.mark.parametrize("name", tables.TORCH_REGRESSION)
def test_regression_of_torchmetrics(name):
    """Values were read as logits: a mean absolute error of .0162 came out as .4905."""
    function, given, right = tables.TORCH_REGRESSION[name]
    call = partial(getattr(tfr, function), **given)
    for kind, case in BY_KIND:
        sizes = tables.TORCH_NUM_OUTPUTS.get(name, {})
        size = {"num_outputs": sizes[kind]} if kind in sizes else {}
        make = partial(getattr(tr, name), **given, **size)
        data = prepared("scores", case)
        fresh = make()
        assert_right_or_refused(
            make(), case, kind in right, partial(accumulated, fresh, *data)
        )
        assert_right_or_refused(call, case, kind in right, partial(call, *data))


def test_the_tables_name_every_function_of_scikit_learn():
    functions = {
        name: [*inspect.signature(getattr(sk, name)).parameters]
        for name in sk.__all__
        if inspect.isfunction(getattr(sk, name))
    }
    compares = {
        name for name, given in functions.items() if {"y_true", "y1"} & {*given}
    }
    assert compares <= set(tables.SKLEARN)
    assert set(functions) - compares <= tables.SKLEARN_OTHERS
    right = {name for name, (_, right) in tables.SKLEARN.items() if right}
    assert right >= tables.SKLEARN_LOWER


def test_the_tables_name_every_metric_of_torchmetrics():
    of_tasks = {f"{task}{suffix}" for task in ("", *TASKS) for suffix in KNOWN}
    assert set(tc.__all__) <= of_tasks | set(tables.TORCH_GROUPS)
    assert set(tr.__all__) <= set(tables.TORCH_REGRESSION)
    prefixes = ("", *(f"{task}_" for task in TASKS.values()))
    functions = {f"{prefix}{name}" for prefix in prefixes for name in KNOWN.values()}
    functions |= {*tables.TORCH_GROUPS.values(), *tables.TORCH_GROUP_FUNCTIONS}
    assert set(tfc.__all__) <= functions
    assert set(tfr.__all__) <= {row[0] for row in tables.TORCH_REGRESSION.values()}


@pytest.mark.parametrize("name", [n for n in tables.SKLEARN if tables.SKLEARN[n][1]])
def test_directions_of_scikit_learn(name):
    if not hasattr(sk, name):
        pytest.skip("not in this release of scikit-learn")
    metric = make_metric(getattr(sk, name))
    assert metric.higher_is_better is (name not in tables.SKLEARN_LOWER)
    assert metric.name == name
    assert not metric.direction_declared


@pytest.mark.parametrize(("task", "suffix"), of_task(tables.TORCH, tfc, function_name))
def test_directions_of_functions_of_torchmetrics(task, suffix):
    """It is that of the class of the same name."""
    known = getattr(tc, class_name(task, suffix)).higher_is_better
    call = partial(
        getattr(tfc, function_name(task, suffix)), **settings(task, suffix, "c")
    )
    if known is None:
        with pytest.raises(MetricOptError, match="which direction is better"):
            make_metric(call)
    else:
        assert make_metric(call).higher_is_better is known


@pytest.mark.parametrize("suffix", tables.TORCH_FIXED)
def test_more_is_better_of_a_value_at_a_fixed_other(suffix):
    """torchmetrics does not say so."""
    given = settings("Binary", suffix, "b")
    assert getattr(tc, class_name("Binary", suffix)).higher_is_better is None
    for package, name in ((tc, class_name), (tfc, function_name)):
        spec = partial(getattr(package, name("Binary", suffix)), **given)
        metric = make_metric(spec() if package is tc else spec)
        assert metric.higher_is_better
        assert not metric.direction_declared


SIGNED = {
    "matthews_corrcoef": lambda: sk.matthews_corrcoef,
    "cohen_kappa_score": lambda: sk.cohen_kappa_score,
    "BinaryCohenKappa": tc.BinaryCohenKappa,
    "MulticlassMatthewsCorrCoef": partial(tc.MulticlassMatthewsCorrCoef, num_classes=3),
    "binary_matthews_corrcoef": lambda: tfc.binary_matthews_corrcoef,
    "cohen_kappa": lambda: partial(tfc.cohen_kappa, task="binary"),
    "SpearmanCorrCoef": tr.SpearmanCorrCoef,
    "PearsonCorrCoef": tr.PearsonCorrCoef,
    "concordance_corrcoef": lambda: tfr.concordance_corrcoef,
    "CosineSimilarity": partial(tr.CosineSimilarity, reduction="mean"),
}


@pytest.mark.parametrize("name", SIGNED)
def test_coefficients_may_be_negative(name):
    """Only those of scikit-learn were known to be."""
    assert make_metric(SIGNED[name](), higher_is_better=True).low == -1.0


def test_every_case_is_of_the_kind_that_it_is_listed_under():
    assert {case for _, case in BY_KIND} == set(CASES)
    assert all(torch.isfinite(prepared("scores", case)[0]).all() for case in CASES)

"""Metrics of labels as scikit-learn has them: of (y_true, y_pred), labels as given.

Inside, labels are whole numbers from 0. A metric that people hand to scikit-learn reads
the labels they know, so it gets these.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.metrics.base import Metric
from metricopt.metrics.retrieval import meant_for_labels
from metricopt.reading.argument_order import names_outputs_first
from metricopt.reading.callables import CallableMetric, make_metric
from metricopt.reading.expected import (
    ANY,
    Limits,
    Predictions,
    limits_of,
    negated,
    unwrapped,
)
from metricopt.reading.other_packages import (
    expected_by_sklearn,
    from_sklearn,
    is_accumulator,
    is_sklearn,
    is_torchmetrics,
)
from metricopt.reading.outputs import STRUCTURED
from metricopt.reading.scorers import (
    is_scorer,
    predictions_of,
    scorer_name,
    scorer_named,
    scorer_names,
)
from metricopt.reading.taking import Takes

Array = np.ndarray[Any, Any]
Make = Callable[[bool | None, Mapping[str, str]], Metric]
"""Makes a metric of outputs, given its direction if nobody else says it, and the column
that each further parameter gets."""


@dataclass(frozen=True)
class LabelMetric:
    """A function of targets and predictions, with what it is given.

    Attributes:
        name: name of the metric.
        function: from labels [N] and predictions to a number.
        reads: what predictions are: labels, probabilities ([N] of the second of two
            classes, else [N, C]), or decision values.
        higher_is_better: direction of the value; None if nobody says.
        sign: what the value is multiplied by.
        limits: least and greatest value, with its sign; infinite where not known.
        scorer: the scorer it is from, which may request metadata; None if it is a
            function.
        swapped: whether the function takes predictions first, as the names of its
            parameters say.
    """

    name: str
    function: Callable[..., Any]
    reads: Predictions
    higher_is_better: bool | None
    sign: int = 1
    limits: Limits = ANY
    scorer: Any = None
    swapped: bool = False

    @classmethod
    def of(cls, metric: Any) -> Self | None:
        """Return what a user passed as one; None if `make_metric` reads it itself.

        Raises:
            ConfigError: if it is a scorer that scores an estimator by itself.
        """
        name = metric if isinstance(metric, str) else None
        if name is not None and name in scorer_names():
            metric = scorer_named(name, {})
        if is_scorer(metric):
            return cls._of_scorer(metric, name or scorer_name(metric))
        finished = isinstance(metric, str | Metric | type) or not callable(metric)
        if finished or is_accumulator(metric) or is_torchmetrics(metric):
            return None
        inner = unwrapped(metric)
        name = str(getattr(inner, "__name__", type(inner).__name__))
        if is_sklearn(metric):
            known = from_sklearn(metric)
            better, limits = known.higher_is_better, known.limits
            reads = expected_by_sklearn(inner).predictions
            return cls(name, metric, reads, better, limits=limits)
        swapped = names_outputs_first(metric)
        return cls(name, metric, "labels", None, swapped=swapped)

    @classmethod
    def _of_scorer(cls, scorer: Any, name: str) -> Self:
        reads, inner = predictions_of(scorer), scorer._score_func
        known, limits = is_sklearn(inner), ANY
        if reads is None:
            reads = expected_by_sklearn(inner).predictions if known else "scores"
        function = partial(inner, **scorer._kwargs)
        if known:
            limits = limits_of(inner.__name__, scorer._kwargs)
            limits = limits if scorer._sign > 0 else negated(limits)
        return cls(name, function, reads, True, scorer._sign, limits, scorer)

    def of_codes(
        self,
        classes: Array,
        higher_is_better: bool | None,
        columns: Mapping[str, str],
    ) -> Metric:
        """Return the metric of logits and of labels that are places in `classes` [C].

        Its parameters get the columns that `columns` names for them.

        Raises:
            ConfigError: if nobody says which direction is better.
        """

        def read(outputs: Tensor, targets: Any) -> tuple[Array, Array]:
            return classes[_array(targets)], self._read(outputs, classes)

        return self._made(read, higher_is_better, columns)

    def of_values(
        self,
        higher_is_better: bool | None,
        columns: Mapping[str, str],
    ) -> Metric:
        """Return the metric of predicted values [N] and of true ones; see `of_codes`.

        Raises:
            ConfigError: if nobody says which direction is better.
        """

        def read(outputs: Tensor, targets: Any) -> tuple[Array, Array]:
            return _array(targets), _array(outputs)

        return self._made(read, higher_is_better, columns)

    def _made(
        self,
        read: Callable[[Tensor, Any], tuple[Array, Array]],
        higher_is_better: bool | None,
        columns: Mapping[str, str],
    ) -> Metric:
        """Return the metric of what is read of outputs and targets, truth first."""
        better = self.higher_is_better
        if better is None and higher_is_better is None:
            raise ConfigError(
                f"metric {self.name!r} does not say which direction is better: pass "
                "options={'higher_is_better': True} or False, or a scorer made by "
                "make_scorer"
            )
        better = higher_is_better if better is None else better

        def called(outputs: Any, targets: Any, **more: Any) -> object:
            given = {name: _array(more[column]) for name, column in columns.items()}
            with warnings.catch_warnings():
                # A metric that is not defined gives no number, which is refused.
                warnings.filterwarnings("ignore", ".*ill-defined")
                pair = read(torch.as_tensor(outputs), targets)
                value = self.function(*pair[:: -1 if self.swapped else 1], **given)
            return value if self.sign > 0 else -value

        metric = make_metric(called, higher_is_better=better, name=self.name)
        assert isinstance(metric, CallableMetric)
        metric.takes = Takes(tuple(columns.values()))
        metric.source = partial(self.function, **columns)
        metric.direction_declared = self.higher_is_better is None
        return metric

    def _read(self, outputs: Tensor, classes: Array) -> Array:
        """Return predictions of logits [N], or [N, C]."""
        binary = outputs.ndim == 1
        if self.reads == "decisions":
            return _array(outputs)
        if self.reads == "scores":
            return _array(outputs.sigmoid() if binary else outputs.softmax(1))
        decided = (outputs > 0).long() if binary else outputs.argmax(1)
        found: Array = classes[_array(decided)]
        return found


def _array(values: Any) -> Array:
    return values.cpu().numpy() if isinstance(values, torch.Tensor) else values


def named(name: str) -> Metric:
    """Return the metric of a name, which has to be one of predictions.

    Raises:
        ConfigError: if there is none, or it reads embeddings or structured outputs.
    """
    found = make_metric(name)
    if found.reads in ("embeddings", *STRUCTURED):
        remedy = meant_for_labels(found) or "pass a metric of labels or values"
        raise ConfigError(
            f"metric {found.name!r} reads {found.reads}, which an estimator does not "
            f"predict: {remedy}"
        )
    return found


def check_name(metric: object) -> None:
    """Raise ConfigError for the name of no metric of predictions; see `named`."""
    if isinstance(metric, str) and LabelMetric.of(metric) is None:
        named(metric)

"""Estimators of scikit-learn whose predictions are tuned towards a metric.

The conventions are those of `sklearn.model_selection.TunedThresholdClassifierCV`, for
several classes and any metric. `import metricopt` does not import this module.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d, indexable
from sklearn.utils.metadata_routing import UNUSED
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from metricopt.errors import ConfigError
from metricopt.estimators.label_metrics import Array, LabelMetric, Make, named
from metricopt.estimators.metric_tuned import MetricTuned, cut
from metricopt.estimators.tuned_regressor import MetricTunedRegressor
from metricopt.metrics.aucpr import AveragePrecision
from metricopt.metrics.top_k import TopK
from metricopt.reading.columns import as_columns, columned
from metricopt.reading.expected import perfect_outputs
from metricopt.reading.meaning import Kind
from metricopt.tuned import Tuned

__all__ = ["MetricTunedClassifier", "MetricTunedRegressor"]

METHODS = ("predict_proba", "decision_function")
LEAST = 1e-9
"""Least probability whose logarithm is taken."""


def _offers(method: str) -> Callable[[Any], bool]:
    def offers(owner: Any) -> bool:
        return hasattr(getattr(owner, "estimator_", owner.estimator), method)

    return offers


class MetricTunedClassifier(ClassifierMixin, MetricTuned):
    """A classifier with one offset per class, chosen for a metric.

    `fit` collects outputs of the classifier on examples it was not trained on, finds
    offsets and scales of their logits with a few evaluations of the metric, and trains
    the classifier on all examples. Nothing is moved unless there is evidence of a gain
    on other data. Decisions change, probabilities do not, so the metric has to read
    decided labels; for log loss, ROC AUC and the like use `metricopt.tune`, whose
    `shifted` changes probabilities.

    Where `predict` of the classifier decides otherwise than by its largest output, as
    `FixedThresholdClassifier` does, the classifier stays as it is unless the gain over
    its own decisions shows. With bounds, nothing is compared with these: the report
    says so.

    Args:
        estimator: a classifier with `predict_proba` or `decision_function`.
        metric: the name of a scorer of scikit-learn or of a metric of metricopt; a
            scorer, a function of `sklearn.metrics`, or any function of (y_true,
            y_pred), or of (y_pred, y_true) with names that say so. Scorers and
            functions get labels as they are given to `fit`. A function of your own
            needs `options={"higher_is_better": ...}`.
        cv: number of folds, a splitter or splits; None for 5 folds. A number in (0, 1)
            is the share of one held-out part. "prefit" if the estimator is fitted, on
            other examples than `fit` gets.
        constraints: bounds on further metrics, `metricopt.at_least(metric, value)` and
            `at_most(metric, value)`; their metrics are as above.
        queries: most evaluations of the metric.
        options: further settings of `metricopt.tune` by name, such as `seed`, which is
            0 by default.

    Attributes:
        estimator_: the fitted classifier.
        classes_: labels, shape [C].
        offsets_: what is added to the logits or decision values of the classes, [C]; of
            two classes to those of the second against the first, [1].
        scales_: what these are multiplied by before, of the same shape; 1 above 256
            classes.
        expected_: gain to expect on other data, with its interval; None without one.
        metric_before_: metric of the classifier's own decisions on the examples that
            the offsets were chosen on.
        metric_after_: the same with the offsets.
        n_queries_: evaluations of the metric.
        report_: a few plain lines: what was gained, and what was spent for it.
    """

    kind: ClassVar[Kind] = "logits"
    # Only the estimator and scorers request weights.
    __metadata_request__fit: ClassVar = {"sample_weight": UNUSED}

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:  # noqa: N803
        """Train the classifier and choose the offsets.

        Args:
            X: examples, [N, ...], in any form that the classifier takes.
            y: labels, shape [N].
            sample_weight: weights of examples, for the classifier and for a metric that
                takes them; see `params` for metadata routing.
            **params: further values of the examples, for metrics by the names of their
                parameters; with metadata routing, for whoever requests them, and for
                functions by the names of their parameters. Where the splitter gets
                `groups`, or `fit` does with cv="prefit", the gain is estimated for new
                groups if ten or more are held out; up to ten that a metric gets, too,
                are no new ones.

        Raises:
            ValueError: if there are no two classes, somebody cannot take what is given,
                or the outputs are not one for each class.
            ConfigError: if a setting is not valid, or a metric reads probabilities or
                rankings, which stay as they are.
        """
        X, y = self._checked(X, y)  # noqa: N806
        routed = self._routed({**params, "sample_weight": sample_weight})
        self.classes_ = np.unique(y)
        if self._is_fitted_before:
            check_is_fitted(self.estimator)
            self.classes_ = np.unique(self.estimator.classes_)
        held = self._held_out(X, y, routed)
        codes, columns = self._codes(y[held.places]), cut(routed.columns, held.places)
        own = self._codes(held.predicted)
        others = int((_decided(held.outputs) != own).sum())
        spared = int(others > 0 and not self.constraints)
        found = self._tuned(held, codes, routed, columns, spared=spared)
        self.offsets_, scales = found.offsets.numpy(), found.scales
        self.scales_ = np.ones(1) if scales is None else scales.numpy()
        self._adopted(found)
        if others:
            said = f"otherwise than by its largest output for {others} examples"
            if spared:
                outputs = torch.from_numpy(held.outputs.reshape(len(own), -1))
                as_own = perfect_outputs(
                    found.found.meaning, outputs, torch.from_numpy(own)
                )
                said += self._compared(found, as_own, codes, columns)
            self.report_ = (
                f"predict of the {type(self.estimator).__name__} decides {said}.\n"
                f"Against the largest output: {self.report_}"
            )
        self._say_of_groups(held)
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the decided label of every example, shape [N]."""
        check_is_fitted(self, "offsets_")
        if not self.offsets_.any() and (self.scales_ == self.scales_[0]).all():
            untouched: Array = self.estimator_.predict(X)
            return untouched
        shifted = self._outputs(self.estimator_, X) * self.scales_ + self.offsets_
        decided: Array = self.classes_[_decided(shifted)]
        return decided

    @available_if(_offers("predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the probabilities of the classifier as they are, shape [N, C]."""
        return self._of_estimator("predict_proba", X)

    @available_if(_offers("predict_log_proba"))  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> Array:  # noqa: N803
        """Return the logarithms of the probabilities as they are, shape [N, C]."""
        return self._of_estimator("predict_log_proba", X)

    @available_if(_offers("decision_function"))  # type: ignore[untyped-decorator]
    def decision_function(self, X: Any) -> Array:  # noqa: N803
        """Return the decision values of the classifier as they are."""
        return self._of_estimator("decision_function", X)

    def _checked(self, X: Any, y: Any) -> tuple[Any, Array]:  # noqa: N803
        """Return examples and labels; ValueError if there are no two classes."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is "
                "None"
            )
        X, y = indexable(X, y)  # noqa: N806
        labels: Array = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        kind = type_of_target(labels, input_name="y")
        if kind not in ("binary", "multiclass"):
            raise ValueError(f"Unknown label type: {kind}")
        if len(np.unique(labels)) < 2:
            raise ValueError(
                f"y needs two classes or more, got one class: {labels[:1]}"
            )
        return X, labels

    def _outputs(self, fitted: Any, X: Any) -> Array:  # noqa: N803
        """Return logits or decision values of all classes, [N, C], or [N] of two."""
        method = next((each for each in METHODS if hasattr(fitted, each)), None)
        if method is None:
            raise ValueError(
                f"the classifier needs {' or '.join(METHODS)}, but a "
                f"{type(fitted).__name__} has neither"
            )
        found = np.asarray(getattr(fitted, method)(X), dtype=float)
        classes = len(self.classes_)
        if method == "predict_proba":
            known = len(fitted.classes_)
            if found.ndim != 2 or found.shape[1] != known:
                raise ValueError(
                    f"predict_proba of a {type(fitted).__name__} must have one column "
                    f"for each of {known} classes, got shape {list(found.shape)}"
                )
            return _logits(self._in_place(found, fitted.classes_))
        if found.shape[1:] not in ([(), (1,)] if classes == 2 else [(classes,)]):
            raise ValueError(
                f"decision values must be one for each of {classes} classes, got shape "
                f"{list(found.shape)}; use more examples of each class, or a "
                "one-against-rest classifier"
            )
        if classes > 2:
            return self._in_place(found, fitted.classes_)
        sign = 1 if fitted.classes_[1] == self.classes_[1] else -1
        return sign * found.reshape(len(found))

    def _in_place(self, columns: Array, classes: Array) -> Array:
        """Return columns in the order of all classes; a class a fold lacks has 0."""
        every = np.zeros((len(columns), len(self.classes_)))
        every[:, np.searchsorted(self.classes_, classes)] = columns
        return every

    def _codes(self, labels: Array) -> Array:
        """Return places of labels among the classes; ValueError for others."""
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y has labels the classifier does not know: {unknown}")
        return np.searchsorted(self.classes_, labels)

    def _check_metric(self, metric: object) -> None:
        scored = LabelMetric.of(metric)
        if scored is None and isinstance(metric, str):
            metric = named(metric)
        ranks = isinstance(metric, AveragePrecision)
        ranks = ranks or (isinstance(metric, TopK) and metric.k > 1)
        if ranks or (scored is not None and scored.reads != "labels"):
            name = getattr(metric if scored is None else scored, "name", metric)
            raise ConfigError(
                f"metric {name!r} reads probabilities or decision values, which a "
                f"{type(self).__name__} leaves as they are: pass a metric of decided "
                "labels, or use metricopt.tune"
            )

    def _compared(
        self, found: Tuned, own: Tensor, codes: Array, columns: dict[str, Any]
    ) -> str:
        """Keep the classifier unless the gain over its own decisions shows; say which.

        Args:
            found: what is expected of the offsets, against the largest output.
            own: outputs that decide as `predict` of the classifier does.
            codes: places of the labels among the classes, [N].
            columns: what the metric takes beside them.
        """
        metric = found.found.metric
        beside = as_columns(columns, len(codes), "these examples")
        targets = columned(torch.from_numpy(codes), beside, metric.columns)
        value = metric.value(own, targets)
        ahead = (value - found.metric_before) * (1 if metric.higher_is_better else -1)
        expected = None if found.expected is None else found.expected.less(ahead)
        self.n_queries_ += 1
        self.metric_before_, self.expected_ = value, expected
        said = f", and has {value:.4g}"
        if expected is not None and expected.low > 0:
            return f"{said}: on other data it is beaten, {expected.describe()}"
        self.offsets_ = np.zeros_like(self.offsets_)
        self.scales_ = np.ones_like(self.scales_)
        self.metric_after_, self.expected_ = value, None
        return f"{said}: no gain over this shows, so it stays as it is"

    def _of_estimator(self, method: str, X: Any) -> Array:  # noqa: N803
        found = super()._of_estimator(method, X)
        order = np.argsort(self.estimator_.classes_)
        if (order == np.arange(len(order))).all():
            return found
        turned: Array = -found if found.ndim == 1 else found[:, order]
        return turned

    def _metric(self, scored: LabelMetric) -> Make:
        return partial(scored.of_codes, self.classes_)


def _decided(outputs: Array) -> Array:
    """Return the places of the classes that outputs [N] or [N, C] decide for."""
    decided: Array = (
        (outputs > 0).astype(int) if outputs.ndim == 1 else outputs.argmax(1)
    )
    return decided


def _logits(shares: Array) -> Array:
    """Return logarithms of probabilities [N, C]; of two classes their odds', [N]."""
    logs = np.log(np.clip(shares, LEAST, None))
    found: Array = logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs
    return found

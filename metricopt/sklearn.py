"""A classifier of scikit-learn whose decisions are tuned towards a metric.

The conventions are those of `sklearn.model_selection.TunedThresholdClassifierCV`, for
several classes and any metric. `import metricopt` does not import this module.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.model_selection import StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing as at_places
from sklearn.utils import column_or_1d, get_tags, indexable
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from metricopt.estimate import Estimate
from metricopt.label_metrics import Array, LabelMetric, named_for
from metricopt.metrics.constrained import Bound
from metricopt.tune import tune
from metricopt.tuned import Tuned

__all__ = ["MetricTunedClassifier"]

METHODS = ("predict_proba", "decision_function")
LEAST = 1e-9
"""Least probability whose logarithm is taken."""


@dataclass(frozen=True)
class _Routed:
    """What goes to whom of the arguments of `fit`."""

    fit: dict[str, Any] = field(default_factory=dict)
    split: dict[str, Any] = field(default_factory=dict)
    score: dict[str, Any] = field(default_factory=dict)


def _offers(method: str) -> Callable[[Any], bool]:
    def offers(owner: Any) -> bool:
        return hasattr(getattr(owner, "estimator_", owner.estimator), method)

    return offers


class MetricTunedClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier with one offset per class, chosen for a metric.

    `fit` collects outputs of the classifier on examples it was not trained on, finds
    offsets of their logits with a few evaluations of the metric, and trains the
    classifier on all examples. The offsets are 0 unless there is evidence of a gain on
    other data.

    Args:
        estimator: a classifier with `predict_proba` or `decision_function`.
        metric: the name of a scorer of scikit-learn or of a metric of metricopt; a
            scorer, a function of `sklearn.metrics`, or any function of (y_true,
            y_pred). Scorers and functions get labels as they are given to `fit`. A
            function of your own needs `options={"higher_is_better": ...}`.
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
        expected_: gain to expect on other data, with its interval; None without one.
        metric_before_: metric of the outputs the offsets were chosen on, as they are.
        metric_after_: the same with the offsets.
        n_queries_: evaluations of the metric.
        report_: a few plain lines: what was gained, and what was spent for it.
    """

    def __init__(
        self,
        estimator: Any,
        metric: Any = "f1_macro",
        *,
        cv: Any = None,
        constraints: Sequence[Bound] | None = None,
        queries: int = 15,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.estimator = estimator
        self.metric = metric
        self.cv = cv
        self.constraints = constraints
        self.queries = queries
        self.options = options

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> Self:  # noqa: N803
        """Train the classifier and choose the offsets.

        Args:
            X: examples, [N, ...], in any form that the classifier takes.
            y: labels, shape [N].
            sample_weight: weights of examples, for the classifier and for a metric that
                takes them; with metadata routing, for whoever requests them.
            **params: further values of the examples, for the metric by the names of its
                parameters; with metadata routing, for whoever requests them.

        Raises:
            ValueError: if there are no two classes, somebody cannot take what is given,
                or the outputs are not one for each class.
            ConfigError: if a setting is not valid.
        """
        X, y = self._checked(X, y)  # noqa: N806
        scored = LabelMetric.of(self.metric)
        if sample_weight is not None:
            params = {**params, "sample_weight": sample_weight}
        routed = self._routed(params, scored)
        self.classes_ = np.unique(y)
        outputs, places = self._held_out(X, y, routed)
        columns = _cut(routed.score, places)
        found = self._tuned(outputs, y[places], scored, columns)
        self.offsets_ = found.offsets.numpy()
        self.expected_: Estimate | None = found.expected
        self.metric_before_ = found.metric_before
        self.metric_after_ = found.metric_after
        self.n_queries_, self.report_ = found.spent.queries, found.summary()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))
        return self

    def predict(self, X: Any) -> Array:  # noqa: N803
        """Return the decided label of every example, shape [N]."""
        check_is_fitted(self, "offsets_")
        if not self.offsets_.any():
            untouched: Array = self.estimator_.predict(X)
            return untouched
        shifted = self._outputs(self.estimator_, X) + self.offsets_
        places = (shifted >= 0).astype(int) if shifted.ndim == 1 else shifted.argmax(1)
        decided: Array = self.classes_[places]
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

    def get_metadata_routing(self) -> Any:
        """Return which arguments of `fit` classifier, splitter and scorer request."""

        def to(callee: str) -> Any:
            return MethodMapping().add(caller="fit", callee=callee)

        router = MetadataRouter(owner=self)
        router.add(estimator=self.estimator, method_mapping=to("fit"))
        router.add(splitter=self.cv, method_mapping=to("split"))
        scored = LabelMetric.of(self.metric)
        if scored is not None and scored.scorer is not None:
            router.add(scorer=scored.scorer, method_mapping=to("score"))
        return router

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

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

    def _routed(self, params: dict[str, Any], scored: LabelMetric | None) -> _Routed:
        """Return what goes to whom; ValueError for what nobody takes."""
        if get_config()["enable_metadata_routing"]:
            found = process_routing(self, "fit", **params)
            score = found.scorer.score if "scorer" in found else {}
            return _Routed(found.estimator.fit, found.splitter.split, score)
        fit = {
            name: values
            for name, values in params.items()
            if name == "sample_weight" and has_fit_parameter(self.estimator, name)
        }
        read = [scored, *(LabelMetric.of(b.metric) for b in self.constraints or ())]
        score = named_for(read, params)
        lost = [name for name in params if name not in fit and name not in score]
        if lost:
            raise ValueError(
                f"neither the classifier nor the metric takes {', '.join(lost)}; "
                "with sklearn.set_config(enable_metadata_routing=True) and requests, "
                "they may go to steps of a pipeline and to the splitter"
            )
        return _Routed(fit=fit, score=score)

    def _held_out(self, X: Any, y: Array, routed: _Routed) -> tuple[Array, Array]:  # noqa: N803
        """Fit, and return outputs of examples that were not trained on, and places."""
        if isinstance(self.cv, str) and self.cv == "prefit":
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            self.classes_ = self.estimator_.classes_
            return self._outputs(self.estimator_, X), np.arange(len(y))
        outputs, places = [], []
        for train, held_out in self._splits(X, y, routed):
            part = at_places(X, train), at_places(y, train)
            fitted = clone(self.estimator).fit(*part, **_cut(routed.fit, train))
            outputs.append(self._outputs(fitted, at_places(X, held_out)))
            places.append(np.asarray(held_out))
        self.estimator_ = clone(self.estimator).fit(X, y, **routed.fit)
        return np.concatenate(outputs), np.concatenate(places)

    def _splits(self, X: Any, y: Array, routed: _Routed) -> Iterator[Any]:  # noqa: N803
        cv, seed = self.cv, dict(self.options or {}).get("seed", 0)
        if isinstance(cv, Real) and not isinstance(cv, Integral):
            cv = StratifiedShuffleSplit(1, test_size=float(cv), random_state=seed)
        splitter = check_cv(cv, y=y, classifier=True)
        splits: Iterator[Any] = splitter.split(X, y, **routed.split)
        return splits

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
            return _logits(self._in_place(found, fitted.classes_))
        if found.shape[1:] not in ([(), (1,)] if classes == 2 else [(classes,)]):
            raise ValueError(
                f"decision values must be one for each of {classes} classes, got shape "
                f"{list(found.shape)}; use more examples of each class, or a "
                "one-against-rest classifier"
            )
        return found.reshape(len(found), -1)[:, 0] if classes == 2 else found

    def _in_place(self, shares: Array, classes: Array) -> Array:
        """Return probabilities of all classes; a class a fold lacks has none."""
        if len(classes) == len(self.classes_):
            return shares
        every = np.zeros((len(shares), len(self.classes_)))
        every[:, np.searchsorted(self.classes_, classes)] = shares
        return every

    def _tuned(
        self,
        outputs: Array,
        labels: Array,
        scored: LabelMetric | None,
        columns: dict[str, Any],
    ) -> Tuned:
        unknown = np.setdiff1d(labels, self.classes_)
        if len(unknown):
            raise ValueError(f"y has labels the classifier does not know: {unknown}")
        given: dict[str, Any] = {"progress": False, **(self.options or {})}
        metric = self.metric
        if scored is not None:
            better = given.pop("higher_is_better", None)
            metric = scored.of_codes(self.classes_, better)
        return tune(
            outputs,
            np.searchsorted(self.classes_, labels),
            metric,
            columns=columns,
            queries=self.queries,
            constraints=[self._bound(bound) for bound in self.constraints or ()],
            outputs="logits",
            **given,
        )

    def _bound(self, bound: Bound) -> Bound:
        """Return a bound on a metric of labels as they are, as one of their places."""
        scored = LabelMetric.of(bound.metric)
        if scored is None:
            return bound
        least = bound.sense == "at least"
        return replace(bound, metric=scored.of_codes(self.classes_, least))

    def _of_estimator(self, method: str, X: Any) -> Array:  # noqa: N803
        check_is_fitted(self, "estimator_")
        found: Array = getattr(self.estimator_, method)(X)
        return found


def _logits(shares: Array) -> Array:
    """Return logarithms of probabilities [N, C]; of two classes their odds', [N]."""
    logs = np.log(np.clip(shares, LEAST, None))
    found: Array = logs[:, 1] - logs[:, 0] if logs.shape[1] == 2 else logs
    return found


def _cut(params: dict[str, Any], places: Any) -> dict[str, Any]:
    """Return values of examples at some places."""
    return {name: np.asarray(values)[places] for name, values in params.items()}

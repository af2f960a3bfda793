"""What estimators of scikit-learn share whose outputs are tuned towards a metric."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing as at_places
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from metricopt.errors import ConfigError, require_kind
from metricopt.estimate import Estimate
from metricopt.estimators.label_metrics import (
    Array,
    LabelMetric,
    Make,
    check_name,
    named,
)
from metricopt.estimators.routing import WEIGHTS, Routed, groups_of, route, router_of
from metricopt.metrics.constrained import Bound
from metricopt.reading.meaning import Kind
from metricopt.tasks.clusters import FEWEST, FEWEST_SEEN
from metricopt.tune import least_queries, tune
from metricopt.tuned import Tuned

SETTLED = ("outputs", "columns", "queries", "constraints", "clusters", "offsets_by")
"""Settings of `tune` that are no options; `predict` knows no groups of examples."""
CLUSTERS = "groups of fit"
"""The column of clusters, called as no parameter of a metric can be."""


@dataclass(frozen=True)
class HeldOut:
    """What an estimator says of examples that it was not trained on.

    Attributes:
        outputs: see `MetricTuned._outputs`.
        predicted: what `predict` says, if outputs may decide otherwise.
        places: places of the examples, [N].
        groups: numbers of the groups by which the gain is estimated, [N]; None without.
        known: why it is not estimated by the groups that are given, if any are.
    """

    outputs: Array
    predicted: Array
    places: Array
    groups: Array | None = None
    known: str = ""


class MetricTuned(MetaEstimatorMixin, BaseEstimator):
    """An estimator whose outputs on examples it was not trained on are tuned.

    See the classes made of it for the arguments and attributes.
    """

    kind: ClassVar[Kind]
    kinds: ClassVar[tuple[Kind, ...]] = ()  # that may be said
    """What `_outputs` returns."""

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

    @abstractmethod
    def _outputs(self, fitted: Any, X: Any) -> Array:  # noqa: N803
        """Return outputs of the kind of a fitted estimator."""

    @abstractmethod
    def _metric(self, scored: LabelMetric) -> Make:
        """Return what makes a metric of outputs of a function of (y_true, y_pred)."""

    def _adopted(self, found: Tuned) -> None:
        """Keep what was found, and what the estimator says of its inputs."""
        self.expected_: Estimate | None = found.expected
        self.metric_before_ = found.metric_before
        self.metric_after_ = found.metric_after
        self.n_queries_, self.report_ = found.spent.queries, found.summary()
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def get_metadata_routing(self) -> Any:
        """Return which arguments of `fit` go to whom; see `metricopt.estimators`."""
        return router_of(self, self._metrics, fitted=self._is_fitted_before)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self.estimator).input_tags.sparse
        return tags

    @property
    def _metrics(self) -> list[Any]:
        """The metric, and those of the bounds."""
        bounds = [each for each in self.constraints or () if isinstance(each, Bound)]
        return [self.metric, *(bound.metric for bound in bounds)]

    def _routed(self, params: dict[str, Any]) -> Routed:
        """Return what goes to whom; ValueError for what nobody takes.

        Raises:
            ConfigError: if a setting is not valid, or a metric needs what is not given.
        """
        self._check_settings()
        return route(self, params, self._metrics, fitted=self._is_fitted_before)

    def _say_of_groups(self, held: HeldOut) -> None:
        """Add to the report on what examples a gain is, if not on new groups."""
        if held.known and self.expected_ is not None:
            self.report_ += (
                f"\nThat is on other examples of these groups: {held.known}."
            )

    def _check_settings(self) -> None:
        """Raise ConfigError for what `tune` would refuse after the training."""
        own = [name for name in SETTLED if name in (self.options or {})]
        if dict(self.options or {}).get("outputs") in self.kinds:
            own.remove("outputs")
        if own:
            raise ConfigError(
                f"options cannot hold {', '.join(own)}, which a "
                f"{type(self).__name__} settles itself"
            )
        check_name(self.metric)
        self._check_metric(self.metric)
        for bound in self.constraints or ():
            require_kind("constraints", bound, Bound, "at_least(...) or at_most(...)")
            self._check_metric(bound.metric)
            bounded = LabelMetric.of(bound.metric)
            if bounded is not None:
                bound.check(bounded.name, bounded.limits)

    def _check_metric(self, metric: object) -> None:
        """Raise ConfigError for a metric of something that is not tuned."""

    @property
    def _is_fitted_before(self) -> bool:
        return isinstance(self.cv, str) and self.cv == "prefit"

    def _held_out(self, X: Any, y: Array, routed: Routed) -> HeldOut:  # noqa: N803
        """Fit, and return what is said of examples that were not trained on.

        An example that several parts hold out counts once, with its first outputs: its
        copies would stand for examples that nobody has seen.
        """
        _check_lengths(routed.columns, len(y))
        groups = groups_of(routed, len(y))
        if self._is_fitted_before:
            return self._said_before(X, len(y), *_for_gain(groups, routed))
        own = dict(routed.fit)
        if WEIGHTS in own:
            own[WEIGHTS] = np.asarray(own[WEIGHTS])
            _check_lengths({WEIGHTS: own[WEIGHTS]}, len(y))
        parts, split = [], False
        for train, held_out in self._splits(X, y, routed):
            if groups is not None:
                split |= bool(np.isin(groups[held_out], groups[train]).any())
            part = at_places(X, train), at_places(y, train)
            fitted = clone(self.estimator).fit(*part, **_part(own, train, len(y)))
            parts.append(self._said(fitted, at_places(X, held_out), held_out))
        self.estimator_ = clone(self.estimator).fit(X, y, **routed.fit)
        places = np.concatenate([part.places for part in parts])
        first = np.sort(np.unique(places, return_index=True)[1])
        outputs = np.concatenate([part.outputs for part in parts])[first]
        predicted = np.concatenate([part.predicted for part in parts])[first]
        places = places[first]
        known = "the splitter does not keep them together" if split else ""
        if not split and groups is not None:
            groups, known = _for_gain(groups[places], routed)
        return HeldOut(outputs, predicted, places, None if split else groups, known)

    def _said_before(
        self,
        X: Any,  # noqa: N803
        count: int,
        groups: Array | None,
        known: str,
    ) -> HeldOut:
        """Return what the estimator, fitted before, says of N examples.

        Raises:
            ValueError: if groups that nothing else is given for are too few.
        """
        check_is_fitted(self.estimator)
        self.estimator_ = self.estimator
        # With routing, an outer splitter may have been meant.
        if known and not get_config()["enable_metadata_routing"]:
            raise ValueError(f"groups must be of {FEWEST} kinds or more: {known}")
        said = self._said(self.estimator_, X, np.arange(count))
        return replace(said, groups=groups, known=known)

    def _said(self, fitted: Any, X: Any, places: Any) -> HeldOut:  # noqa: N803
        places = np.asarray(places)
        outputs = self._finite(self._outputs(fitted, X), places)
        decides = self.kind == "logits"
        predicted = np.asarray(fitted.predict(X)) if decides else outputs
        return HeldOut(outputs, predicted, places)

    def _finite(self, outputs: Array, places: Array) -> Array:
        """Return outputs of examples at places [n]; ValueError if they are not finite.

        Also if there is not one row of them for each example.
        """
        of = f"outputs of the {type(self.estimator).__name__}"
        if len(outputs) != len(places):
            raise ValueError(
                f"{of} must have one row for each of {len(places)} examples of X, got "
                f"{len(outputs)}"
            )
        wrong = ~np.isfinite(outputs).reshape(len(outputs), -1).all(1)
        if wrong.any():
            raise ValueError(
                f"{of} must be finite numbers, got NaN or infinity for {wrong.sum()} "
                f"of {len(places)} examples, first for example "
                f"{places[wrong.argmax()]} of X"
            )
        return outputs

    def _splits(self, X: Any, y: Array, routed: Routed) -> Iterator[Any]:  # noqa: N803
        cv, seed = self.cv, dict(self.options or {}).get("seed", 0)
        if isinstance(cv, Real) and not isinstance(cv, Integral):
            shuffled = StratifiedShuffleSplit if self.kind == "logits" else ShuffleSplit
            cv = shuffled(1, test_size=float(cv), random_state=seed)
        splitter = check_cv(cv, y=y, classifier=self.kind == "logits")
        splits: Iterator[Any] = splitter.split(X, y, **routed.split)
        return splits

    def _tuned(
        self,
        held: HeldOut,
        targets: Array,
        routed: Routed,
        columns: dict[str, Any],
        *,
        spared: int = 0,
    ) -> Tuned:
        least = least_queries(len(targets)) + spared
        if spared and self.queries < least:
            raise ConfigError(
                f"queries must be at least {least}, as one of them judges what predict "
                f"of the classifier decides, got {self.queries}"
            )
        given: dict[str, Any] = {"progress": False, **(self.options or {})}
        metric, scored = self.metric, LabelMetric.of(self.metric)
        own, *bounded = routed.given
        if held.groups is not None:
            columns, given["clusters"] = {**columns, CLUSTERS: held.groups}, CLUSTERS
        if scored is not None:
            metric = self._metric(scored)(given.pop("higher_is_better", None), own)
        return tune(
            held.outputs,
            targets,
            metric,
            columns=columns,
            queries=self.queries - spared,
            constraints=[
                self._bound(bound, columns)
                for bound, columns in zip(self.constraints or (), bounded, strict=True)
            ],
            **({"outputs": self._read_as(held.outputs, targets)} | given),
        )

    def _read_as(self, outputs: Array, targets: Array) -> Kind:
        """Return what outputs are read as, where nobody says it."""
        return self.kind

    def _bound(self, bound: Bound, columns: Mapping[str, str]) -> Bound:
        """Return a bound on a metric of (y_true, y_pred) as one of outputs."""
        scored = LabelMetric.of(bound.metric)
        if scored is None and isinstance(bound.metric, str):
            keyed = "objective" in (self.options or {})
            return bound if keyed else replace(bound, metric=named(bound.metric))
        if scored is None:
            return bound
        least = bound.sense == "at least"
        return replace(bound, metric=self._metric(scored)(least, columns))

    def _of_estimator(self, method: str, X: Any) -> Array:  # noqa: N803
        check_is_fitted(self, "estimator_")
        found: Array = getattr(self.estimator_, method)(X)
        return found


def _for_gain(groups: Array | None, routed: Routed) -> tuple[Array | None, str]:
    """Return groups if the gain is estimated by them, or else why it is not.

    Groups that a metric looks at one by one are no new ones on other data.
    """
    if groups is None:
        return None, ""
    count = len(np.unique(groups))
    if routed.shared and count < FEWEST_SEEN:
        return None, ""
    if count < FEWEST:
        return None, f"{count} are too few to tell of new ones"
    return groups, ""


def _part(params: dict[str, Any], places: Any, count: int) -> dict[str, Any]:
    """Return arguments with those that have a value for each of N examples cut."""
    return {
        name: at_places(values, places) if _length(values) == count else values
        for name, values in params.items()
    }


def _length(values: Any) -> int | None:
    """Return the length of a list, array, frame or matrix; None of anything else."""
    shape = getattr(values, "shape", ())
    if isinstance(values, list | tuple):
        shape = (len(values),)
    return shape[0] if shape else None


def _check_lengths(params: dict[str, Any], count: int) -> None:
    """Raise ValueError for values that are not one for each of N examples."""
    for name, values in params.items():
        shape = np.asarray(values).shape
        if shape[:1] != (count,):
            got = shape[0] if shape else "one"
            raise ValueError(
                f"{name} needs one value for each of the {count} examples of X, got "
                f"{got}"
            )


def cut(params: dict[str, Any], places: Any) -> dict[str, Any]:
    """Return values of examples at some places."""
    return {name: np.asarray(values)[places] for name, values in params.items()}

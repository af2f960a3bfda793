"""What estimators of scikit-learn share whose outputs are tuned towards a metric."""

from abc import abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.model_selection import ShuffleSplit, StratifiedShuffleSplit, check_cv
from sklearn.utils import _safe_indexing as at_places
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from metricopt.errors import ConfigError, require_kind
from metricopt.estimate import Estimate
from metricopt.estimators.label_metrics import (
    Array,
    LabelMetric,
    check_name,
    named,
    named_for,
)
from metricopt.metrics.base import Metric
from metricopt.metrics.constrained import Bound
from metricopt.reading.meaning import Kind
from metricopt.tasks.clusters import FEWEST
from metricopt.tune import tune
from metricopt.tuned import Tuned

SETTLED = ("outputs", "columns", "queries", "constraints", "clusters")
"""Settings of `tune` that are no options."""
GROUPS = "groups"
"""The column of clusters, as splitters call them."""


@dataclass(frozen=True)
class HeldOut:
    """What an estimator says of examples that it was not trained on.

    Attributes:
        outputs: see `MetricTuned._outputs`.
        predicted: what `predict` says, if outputs may decide otherwise.
        places: places of the examples, [N].
        groups: groups that belong together, [N], if the splitter or, without one,
            `fit` got any.
    """

    outputs: Array
    predicted: Array
    places: Array
    groups: Array | None = None


@dataclass(frozen=True)
class Routed:
    """What goes to whom of the arguments of `fit`."""

    fit: dict[str, Any] = field(default_factory=dict)
    split: dict[str, Any] = field(default_factory=dict)
    score: dict[str, Any] = field(default_factory=dict)


class MetricTuned(MetaEstimatorMixin, BaseEstimator):
    """An estimator whose outputs on examples it was not trained on are tuned.

    See the classes made of it for the arguments and attributes.
    """

    kind: ClassVar[Kind]
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
    def _metric(self, scored: LabelMetric, higher_is_better: bool | None) -> Metric:
        """Return a function of (y_true, y_pred) as a metric of outputs."""

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

    def _routed(self, params: dict[str, Any], scored: LabelMetric | None) -> Routed:
        """Return what goes to whom; ValueError for what nobody takes.

        Raises:
            ConfigError: if a setting is not valid, or a metric needs what is not given.
        """
        self._check_settings()
        if get_config()["enable_metadata_routing"]:
            taken = self.get_metadata_routing().consumes("fit", params)
            groups = self._groups_of_fitted(params, taken)
            others = {name: part for name, part in params.items() if name not in groups}
            found = process_routing(self, "fit", **others)
            # What is found where nothing is given has no end: `in` would never return.
            scorer = found.get("scorer")
            score = scorer.score if scorer else {}
            return Routed(found.estimator.fit, found.splitter.split | groups, score)
        weighs = has_fit_parameter(self.estimator, "sample_weight")
        fit = {name: part for name, part in params.items() if name == "sample_weight"}
        if fit and not (weighs or self._is_fitted_before):
            raise ValueError(
                f"a {type(self.estimator).__name__} takes no sample_weight in fit, and "
                "would be trained without: use sklearn.set_config("
                'enable_metadata_routing=True) and requests, or cv="prefit"'
            )
        fit = fit if weighs else {}
        read = [scored, *(LabelMetric.of(b.metric) for b in self.constraints or ())]
        score = named_for(read, params)
        for each in filter(None, read):
            each.require(score)
        groups = self._groups_of_fitted(params, {*fit, *score})
        lost = [name for name in params if name not in {*fit, *score, *groups}]
        if lost:
            raise ValueError(
                f"neither the estimator nor the metric takes {', '.join(lost)}; "
                "with sklearn.set_config(enable_metadata_routing=True) and requests, "
                "they may go to steps of a pipeline and to the splitter"
            )
        return Routed(fit, groups, score)

    def _groups_of_fitted(
        self, params: Mapping[str, Any], taken: Collection[str]
    ) -> dict[str, Any]:
        """Return the groups that no splitter gets, as the estimator is fitted."""
        own = self._is_fitted_before and GROUPS in params and GROUPS not in taken
        return {GROUPS: params[GROUPS]} if own else {}

    def _check_settings(self) -> None:
        """Raise ConfigError for what `tune` would refuse after the training."""
        own = [name for name in SETTLED if name in (self.options or {})]
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
        _check_lengths(routed.score, len(y))
        if self._is_fitted_before:
            check_is_fitted(self.estimator)
            self.estimator_ = self.estimator
            _check_lengths(routed.split, len(y))
            said = self._said(self.estimator_, X, np.arange(len(y)))
            return replace(said, groups=_groups(routed, said.places))
        _check_lengths(routed.fit, len(y))
        parts = []
        for train, held_out in self._splits(X, y, routed):
            part = at_places(X, train), at_places(y, train)
            fitted = clone(self.estimator).fit(*part, **cut(routed.fit, train))
            parts.append(self._said(fitted, at_places(X, held_out), held_out))
        self.estimator_ = clone(self.estimator).fit(X, y, **routed.fit)
        places = np.concatenate([part.places for part in parts])
        first = np.sort(np.unique(places, return_index=True)[1])
        outputs = np.concatenate([part.outputs for part in parts])
        predicted = np.concatenate([part.predicted for part in parts])
        places = places[first]
        groups = _groups(routed, places)
        return HeldOut(outputs[first], predicted[first], places, groups)

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
        scored: LabelMetric | None,
        columns: dict[str, Any],
        *,
        spared: int = 0,
    ) -> Tuned:
        given: dict[str, Any] = {"progress": False, **(self.options or {})}
        metric, groups = self.metric, held.groups
        are_known = given.get("offsets_by") == GROUPS
        if not (groups is None or are_known or len(set(groups.tolist())) < FEWEST):
            columns, given["clusters"] = {GROUPS: groups, **columns}, GROUPS
        if scored is not None:
            metric = self._metric(scored, given.pop("higher_is_better", None))
        return tune(
            held.outputs,
            targets,
            metric,
            columns=columns,
            queries=self.queries - spared,
            constraints=[self._bound(bound) for bound in self.constraints or ()],
            outputs=self.kind,
            **given,
        )

    def _bound(self, bound: Bound) -> Bound:
        """Return a bound on a metric of (y_true, y_pred) as one of outputs."""
        scored = LabelMetric.of(bound.metric)
        if scored is None and isinstance(bound.metric, str):
            keyed = "objective" in (self.options or {})
            return bound if keyed else replace(bound, metric=named(bound.metric))
        if scored is None:
            return bound
        least = bound.sense == "at least"
        return replace(bound, metric=self._metric(scored, least))

    def _of_estimator(self, method: str, X: Any) -> Array:  # noqa: N803
        check_is_fitted(self, "estimator_")
        found: Array = getattr(self.estimator_, method)(X)
        return found


def _groups(routed: Routed, places: Array) -> Array | None:
    """Return the groups of examples at places [N], if there are any."""
    groups = routed.split.get(GROUPS)
    return None if groups is None else np.asarray(groups)[places]


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

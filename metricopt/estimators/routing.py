"""What goes to whom of the arguments that `fit` of an estimator gets.

With metadata routing of scikit-learn, to whoever requests it: the estimator, the
splitter, scorers. Without, by the names of parameters. A metric that is no scorer can
request nothing, so it always gets what its parameters are named like.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn import get_config
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    MetadataRouter,
    MethodMapping,
    get_routing_for_object,
    process_routing,
)
from sklearn.utils.validation import has_fit_parameter

from metricopt.errors import ConfigError
from metricopt.estimators.label_metrics import Array, LabelMetric
from metricopt.reading.callables import CallableMetric
from metricopt.reading.taking import takes_of

GROUPS, WEIGHTS = "groups", "sample_weight"


@dataclass(frozen=True)
class Asks:
    """What a metric may be given beside labels and predictions.

    Attributes:
        name: name of the metric.
        takes: parameters that may be given.
        needed: those of them without a default.
        scorer: the scorer it is from, which may request metadata.
        aliases: what `fit` calls a parameter, if a scorer requests it by another name.
        is_ours: whether it is a metric of metricopt, which gets columns by their names.
    """

    name: str
    takes: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    scorer: Any = None
    aliases: Mapping[str, str] = field(default_factory=dict)
    is_ours: bool = False

    @classmethod
    def of(cls, metric: Any) -> Self:
        """Return what a metric may be given, in any form that an estimator takes."""
        scored = LabelMetric.of(metric)
        if scored is None:
            if not isinstance(metric, CallableMetric):
                return cls(str(getattr(metric, "name", metric)), is_ours=True)
            takes = metric.takes
            return cls(metric.name, takes.names, takes.needed, is_ours=True)
        takes = takes_of(scored.function)
        if scored.scorer is None or not _is_routed():
            return cls(scored.name, takes.names, takes.needed, scored.scorer)
        requests = get_routing_for_object(scored.scorer).score.requests
        names = {name: alias for name, alias in requests.items() if alias}
        aliases = {k: alias for k, alias in names.items() if isinstance(alias, str)}
        return cls(scored.name, tuple(names), takes.needed, scored.scorer, aliases)

    def require(self, given: Mapping[str, Any]) -> None:
        """Raise ConfigError if the metric needs more than it is given by name."""
        lacking = [name for name in self.needed if name not in given]
        if lacking:
            first = lacking[0]
            how = f"pass it to fit(X, y, {self.aliases.get(first, first)}=values)"
            if self.scorer is not None and _is_routed() and first not in self.takes:
                how += f", requested by set_score_request({first}=True)"
            raise ConfigError(
                f"metric {self.name!r} also needs {', '.join(map(repr, lacking))}: "
                f"{how}, or a functools.partial that gives it"
            )


@dataclass(frozen=True)
class Routed:
    """What goes to whom.

    Attributes:
        fit: arguments of the estimator by the names of its parameters.
        split: those of the splitter; beside a fitted estimator, which has none, the
            groups that the gain is estimated by.
        columns: what metrics get, by names of columns, [N] each.
        given: for each metric, the column that each of its parameters gets.
        shared: whether a metric gets the groups as well.
    """

    fit: dict[str, Any]
    split: dict[str, Any]
    columns: dict[str, Any]
    given: tuple[dict[str, str], ...]
    shared: bool


def router_of(owner: Any, metrics: Sequence[Any], *, fitted: bool) -> Any:
    """Return a router to what an estimator of ours holds.

    Args:
        owner: the estimator of ours, with `estimator` and `cv`.
        metrics: its metric, and those of its bounds.
        fitted: whether its estimator is fitted before, so that nothing is split.
    """

    def to(callee: str) -> Any:
        return MethodMapping().add(caller="fit", callee=callee)

    router, splitter = MetadataRouter(owner=owner), owner.cv
    if fitted:
        splitter = _requests("groups of new examples", "split", [GROUPS])
    else:
        router.add(estimator=owner.estimator, method_mapping=to("fit"))
    router.add(splitter=splitter, method_mapping=to("split"))
    for place, metric in enumerate(map(Asks.of, metrics)):
        asked = metric.scorer or _requests(metric.name, "score", metric.takes)
        router.add(**{_at(place): asked}, method_mapping=to("score"))
    return router


def route(
    owner: Any, params: Mapping[str, Any], metrics: Sequence[Any], *, fitted: bool
) -> Routed:
    """Return what goes to whom of the arguments of `fit`; see `router_of`.

    Raises:
        ValueError: if nobody takes an argument.
        ConfigError: if a metric needs what it is not given.
    """
    asks = [Asks.of(metric) for metric in metrics]
    given = {name: part for name, part in params.items() if part is not None}
    if _is_routed():
        fit, split, score = _as_requested(owner, given, len(asks), fitted=fitted)
    else:
        fit, split, score = _by_name(owner.estimator, given, asks, fitted=fitted)
    for metric, own in zip(asks, score, strict=True):
        metric.require(own)
    columns, names = _as_columns(asks, score)
    groups = split.get(GROUPS)
    shared = groups is not None and any(each is groups for each in columns.values())
    return Routed(fit, split, columns, names, shared)


Parts = tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]
"""What estimator, splitter and every metric get."""


def _as_requested(
    owner: Any, params: dict[str, Any], metrics: int, *, fitted: bool
) -> Parts:
    found = process_routing(owner, "fit", **params)
    # Where nothing is given, what is found has no end, so it is asked by name alone.
    score = [dict(found.get(_at(place)).score) for place in range(metrics)]
    fit = {} if fitted else found.get("estimator").fit
    return fit, found.get("splitter").split, score


def _by_name(
    estimator: Any, params: dict[str, Any], metrics: Sequence[Asks], *, fitted: bool
) -> Parts:
    if WEIGHTS in params and not (fitted or has_fit_parameter(estimator, WEIGHTS)):
        raise ValueError(
            f"a {type(estimator).__name__} takes no sample_weight in fit, and would be "
            "trained without: use sklearn.set_config(enable_metadata_routing=True) and "
            'requests, or cv="prefit"'
        )
    split = {GROUPS: params[GROUPS]} if fitted and GROUPS in params else {}
    fit = {WEIGHTS: params[WEIGHTS]} if not fitted and WEIGHTS in params else {}
    score = [{k: params[k] for k in metric.takes if k in params} for metric in metrics]
    taken = set().union(fit, split, *score)
    if lost := ", ".join(name for name in params if name not in taken):
        if fitted:
            raise ValueError(f"no metric takes {lost}, and a fitted estimator nothing")
        raise ValueError(
            f"neither the estimator nor the metric takes {lost}, as without metadata "
            "routing the estimator gets sample_weight alone; with "
            "sklearn.set_config(enable_metadata_routing=True) and requests, steps of a "
            "pipeline and the splitter get more"
        )
    return fit, split, score


def _as_columns(
    metrics: Sequence[Asks], score: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], tuple[dict[str, str], ...]]:
    """Return what metrics get as columns, and the column of each parameter of each.

    Scorers may request different values for parameters of one name.
    """
    columns: dict[str, Any] = {}
    names: list[dict[str, str]] = [{} for _ in metrics]
    # Metrics of ours get columns by the names of their parameters.
    order = sorted(range(len(metrics)), key=lambda place: not metrics[place].is_ours)
    for place in order:
        for name, values in score[place].items():
            column = name
            while columns.get(column, values) is not values:
                column = f"{column} of {metrics[place].name}"
            columns[column], names[place][name] = values, column
    return columns, tuple(names)


def groups_of(routed: Routed, count: int) -> Array | None:
    """Return a number of the group of each of N examples, [N], if there are any.

    Raises:
        ValueError: if there is not one for each example, and no metric gets them.
    """
    if GROUPS not in routed.split:
        return None
    groups = np.asarray(routed.split[GROUPS])
    if groups.shape[1:] == (1,):
        groups = groups[:, 0]
    if groups.shape != (count,):
        if routed.shared:
            return None
        raise ValueError(
            f"groups needs one value for each of the {count} examples of X, got values "
            f"of shape {list(groups.shape)}"
        )
    missing = sum(map(_is_missing, groups.tolist()))
    if missing and not routed.shared:
        raise ValueError(
            f"groups needs a value for each example, got none for {missing} of "
            f"{count}: leave these out, or give each a group of its own"
        )
    found: Array = np.unique([str(each) for each in groups], return_inverse=True)[1]
    return None if missing else found


def _is_missing(value: Any) -> bool:
    """Return whether a value is None, NaN, NaT or the NA of pandas."""
    return value is None or str(value) == "<NA>" or bool(value != value)


def _is_routed() -> bool:
    routes: bool = get_config()["enable_metadata_routing"]
    return routes


def _at(place: int) -> str:
    return f"metric_{place}"


def _requests(owner: str, method: str, names: Sequence[str]) -> MetadataRequest:
    """Return what asks for arguments by name, as no object that we have does."""
    found = MetadataRequest(owner=owner)
    for name in names:
        getattr(found, method).add_request(param=name, alias=True)
    return found

"""What goes to whom of the arguments that `fit` of an estimator gets.

With metadata routing of scikit-learn, to whoever requests it: the estimator, the
splitter, scorers. Without, by the names of parameters. A metric that is a function can
request nothing, so it always gets what its parameters are named like.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn import get_config
from sklearn.utils.metadata_routing import (
    MetadataRequest,
    MetadataRouter,
    MethodMapping,
    process_routing,
)
from sklearn.utils.validation import has_fit_parameter

from metricopt.estimators.label_metrics import Array, LabelMetric, named_for
from metricopt.tasks.clusters import MISSING

GROUPS, WEIGHTS = "groups", "sample_weight"


@dataclass(frozen=True)
class Routed:
    """What goes to whom, by the names of their parameters.

    Attributes:
        fit: arguments of the estimator.
        split: arguments of the splitter; beside a fitted estimator, which has none, the
            groups that the gain is estimated by.
        score: arguments of the metrics, each [N].
    """

    fit: dict[str, Any] = field(default_factory=dict)
    split: dict[str, Any] = field(default_factory=dict)
    score: dict[str, Any] = field(default_factory=dict)


def router_of(owner: Any, metrics: Sequence[LabelMetric], *, fitted: bool) -> Any:
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
    for place, metric in enumerate(metrics):
        asks = metric.scorer or _requests(metric.name, "score", metric.takes)
        router.add(**{_at(place): asks}, method_mapping=to("score"))
    return router


def route(
    owner: Any, params: dict[str, Any], metrics: Sequence[LabelMetric], *, fitted: bool
) -> Routed:
    """Return what goes to whom of the arguments of `fit`; see `router_of`.

    Raises:
        ValueError: if nobody takes an argument.
        ConfigError: if a metric needs what is not given.
    """
    given = {name: part for name, part in params.items() if part is not None}
    if get_config()["enable_metadata_routing"]:
        found = _as_requested(owner, given, len(metrics), fitted=fitted)
    else:
        found = _by_name(owner.estimator, given, metrics, fitted=fitted)
    for metric in metrics:
        metric.require(found.score)
    return found


def _as_requested(
    owner: Any, params: dict[str, Any], metrics: int, *, fitted: bool
) -> Routed:
    found = process_routing(owner, "fit", **params)
    score: dict[str, Any] = {}
    # Where nothing is given, what is found has no end, so it is asked by name alone.
    for place in range(metrics):
        score |= found.get(_at(place)).score
    fit = {} if fitted else found.get("estimator").fit
    return Routed(fit, found.get("splitter").split, score)


def _by_name(
    estimator: Any,
    params: dict[str, Any],
    metrics: Sequence[LabelMetric],
    *,
    fitted: bool,
) -> Routed:
    if WEIGHTS in params and not (fitted or has_fit_parameter(estimator, WEIGHTS)):
        raise ValueError(
            f"a {type(estimator).__name__} takes no sample_weight in fit, and would be "
            "trained without: use sklearn.set_config(enable_metadata_routing=True) and "
            'requests, or cv="prefit"'
        )
    split = {GROUPS: params[GROUPS]} if fitted and GROUPS in params else {}
    fit = {WEIGHTS: params[WEIGHTS]} if not fitted and WEIGHTS in params else {}
    score = named_for(metrics, params)
    lost = [name for name in params if name not in {*fit, *split, *score}]
    if lost:
        if fitted:
            raise ValueError(f"the metric takes no {', '.join(lost)}, and nobody else")
        raise ValueError(
            f"neither the estimator nor the metric takes {', '.join(lost)}; with "
            "sklearn.set_config(enable_metadata_routing=True) and requests, they may "
            "go to steps of a pipeline and to the splitter"
        )
    return Routed(fit, split, score)


def groups_of(routed: Routed, count: int) -> Array | None:
    """Return the groups of N examples, [N], if there are any.

    Raises:
        ValueError: if there is not one for each example.
    """
    if GROUPS not in routed.split:
        return None
    groups = np.asarray(routed.split[GROUPS])
    if groups.shape[1:] == (1,):
        groups = groups[:, 0]
    if groups.shape != (count,):
        raise ValueError(
            f"groups needs one value for each of the {count} examples of X, got values "
            f"of shape {list(groups.shape)}"
        )
    missing = np.isin([str(each) for each in groups.tolist()], [*MISSING])
    if missing.any():
        raise ValueError(
            f"groups needs a value for each example, got none for {missing.sum()} of "
            f"{count}: leave these out, or give each a group of its own"
        )
    return groups


def _at(place: int) -> str:
    return f"metric_{place}"


def _requests(owner: str, method: str, names: Sequence[str]) -> MetadataRequest:
    """Return what asks for arguments by name, as no object that we have does."""
    found = MetadataRequest(owner=owner)
    for name in names:
        getattr(found, method).add_request(param=name, alias=True)
    return found

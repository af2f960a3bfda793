"""Checks of a metric before any training, and doubts that come with a result."""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

from metricopt.errors import ConfigError, DataError, MetricError, RangeError
from metricopt.metrics.base import ROUNDING, Metric, to_cost
from metricopt.metrics.constrained import metrics_of
from metricopt.metrics.retrieval import meant_for_labels
from metricopt.reading.columns import apart, columns_of, groups_of
from metricopt.reading.expected import perfect_outputs
from metricopt.reading.layout import Layout
from metricopt.reading.loss import reads_classes
from metricopt.reading.meaning import Kind, Meaning, meaning_of
from metricopt.reading.outputs import Outputs, Targets, are_labels, range_of
from metricopt.tasks.examples import Examples
from metricopt.tasks.row_losses import Loss, loss_name


def check_targets(metric: Metric, targets: Targets) -> None:
    """Raise DataError without a target, or for one class where two are needed."""
    if len(targets) == 0:
        raise DataError(f"metric {metric.name!r} needs at least one target, got none")
    if not metric.needs_two_classes or not isinstance(targets, Tensor):
        return
    if len(torch.unique(targets)) < 2:
        raise DataError(
            f"metric {metric.name!r} needs targets of two classes or more, "
            f"all {len(targets)} targets are {targets.flatten()[0].item()}"
        )


def direction_queries(meaning: Meaning) -> int:
    """Return how often `check_direction` evaluates the metric; 0 if it cannot check."""
    if meaning.kind in ("embeddings", "raw") or meaning.truth == "other":
        return 0
    return 1 if meaning.truth == "numbers" else 2


POSITIVE = ("logerror", "logarithmicerror", "msle", "poisson", "gammadev", "tweedie")
"""What the names of metrics contain that have no value for negative predictions."""


IF_POSITIVE = (
    "If the metric takes no negative predictions, and there are none, "
    "outputs='amounts' keeps them positive."
)
"""The remedy where a metric of predicted values fails at some phi."""


def are_amounts(outputs: Any, targets: Any, names: Iterable[str]) -> bool:
    """Return whether no number of two arrays is negative, or may be.

    Any of the metrics of these names may need that.
    """
    plain = [name.lower().replace("_", "") for name in names]
    needed = any(part in name for name in plain for part in POSITIVE)
    return needed and all(bool((each >= 0).all()) for each in (outputs, targets))


def meaning_for(
    metric: Metric,
    outputs: Outputs,
    targets: Targets,
    *,
    loss: object,
    given: Kind | None,
    layout: Layout | None = None,
) -> Meaning:
    """Return what outputs mean, see `meaning_of`: amounts where the metric asks for it.

    Raises:
        ConfigError: if it is not clear, or not what the user says.
    """
    found = meaning_of(outputs, targets, loss=loss, given=given, layout=layout)
    if not (isinstance(outputs, Tensor) and isinstance(targets, Tensor)):
        return found
    names = [each.name for each in metrics_of(metric)]
    values = given is None and found.kind == "values"
    if values and are_amounts(outputs, targets, names):
        return meaning_of(outputs, targets, loss=loss, given="amounts", layout=layout)
    if found.kind == "amounts" and bool((outputs < 0).any()):
        raise ConfigError(
            f"outputs='amounts' needs outputs of 0 or more, got {range_of(outputs)}"
        )
    return found


UNTOUCHED = "the untouched network"
NEED_NOT = ". If perfect predictions need not be best, set check_direction=False"


def check_direction(
    metric: Metric, meaning: Meaning, outputs: Tensor, targets: Targets, initial: float
) -> list[str]:
    """Refuse a metric that scores perfect predictions worse than others.

    The others are those of the untouched network, whose native value is `initial`, and,
    for labels, the inverted ones. The metric is evaluated `direction_queries` times on
    all targets; outputs of some examples, [n, C, ...], give C.

    Returns:
        A sentence for each of these predictions at which the metric fails: it may be
        undefined there.

    Raises:
        MetricError: if the metric does so, or its value is beyond its range.
    """
    labels, _ = apart(targets)
    assert isinstance(labels, Tensor)
    perfect = perfect_outputs(meaning, outputs, labels)
    asked = {"perfect": perfect}
    if meaning.truth != "numbers":
        asked["inverted"] = -perfect
    scores, doubts = {}, []
    for kind, predictions in asked.items():
        try:
            scores[kind] = metric.value(predictions, targets)
        except RangeError:
            raise
        except MetricError as error:
            doubts.append(
                f"the direction was not checked on {kind} predictions: {error}."
            )
    if "perfect" in scores:
        best = scores.pop("perfect")
        others = {f"{kind} ones": value for kind, value in scores.items()}
        _compare(metric, meaning, best, others | {UNTOUCHED: initial})
    return doubts


def _compare(
    metric: Metric, meaning: Meaning, best: float, others: dict[str, float]
) -> None:
    """Raise MetricError if perfect predictions score worse than others."""
    for label, other in others.items():
        best_cost, other_cost = to_cost(
            metric, torch.tensor([best, other], dtype=torch.float64)
        ).tolist()
        if best_cost > other_cost + ROUNDING:
            hint = "" if label != UNTOUCHED else NEED_NOT
            raise MetricError(
                f"metric {metric.name!r} is declared higher_is_better="
                f"{metric.higher_is_better}, but perfect predictions score {best:g} "
                f"and {label} {other:g}; check the direction, and that the metric "
                f"reads the outputs as {meaning.kind}{hint}"
            )


def refuse_scores(metric: Metric, loss: Loss, said: Kind | None) -> None:
    """Refuse scores of classes for a metric that compares embeddings.

    They are scores if the user says so. For a name that may mean labels, the loss
    tells, too.

    Raises:
        ConfigError: if the outputs are no embeddings.
    """
    for each in metrics_of(metric):
        _refuse_scores(each, loss, said)


def _refuse_scores(metric: Metric, loss: Loss, said: Kind | None) -> None:
    """Refuse scores for one metric; see `refuse_scores`."""
    if metric.reads != "embeddings" or said in ("embeddings", "raw"):
        return
    remedy = meant_for_labels(metric)
    if said is not None:
        reason = f"outputs={said!r} says that there are none"
    elif remedy and reads_classes(loss):
        reason = f"{loss_name(loss)} reads the outputs as logits or probabilities"
    else:
        return
    other = f"{remedy}; for" if remedy else "for"
    raise ConfigError(
        f"metric {metric.name!r} compares embeddings, but {reason}: {other} "
        f"embeddings, pass metric={metric.name!r} with outputs='embeddings'"
    )


SAME = 1e-6
"""Difference that the order of a sum may make, relative to values beyond 1."""


LISTED = 10
"""Most classes of which each is looked at in every group."""
SMALL_GROUP = 10
"""Examples of a group below which a rate of it is mostly chance."""


def doubts_of_columns(
    examples: Examples, taken: Collection[str], clusters: str | None
) -> list[str]:
    """Return sentences if a column of examples is not taken, or names small groups.

    The column that names clusters, if there is one, is used by the call itself.
    """
    columns = columns_of(examples)
    idle = [name for name in columns if name not in (*taken, clusters)]
    doubts = []
    if idle:
        listed = ", ".join(map(repr, idle))
        use = "this column is" if len(idle) == 1 else "these columns are"
        doubts = [f"the metric has no parameter named {listed}: {use} not used."]
    used = {name: column for name, column in columns.items() if name in taken}
    for name, groups in groups_of(used, amounts=False).items():
        doubts += _doubts_of_groups(name, *groups, examples.targets)
    return doubts


def _doubts_of_groups(
    column: str, places: Tensor, names: Sequence[str], targets: Targets
) -> list[str]:
    """Return sentences if groups that a column names have few examples, or no label."""
    counts = torch.bincount(places)
    doubts = [
        f"the group {group} of {column!r} has {count} of the examples: what is "
        "measured of it is mostly chance."
        for group, count in zip(names, counts.tolist(), strict=True)
        if count < SMALL_GROUP
    ]
    if not are_labels(targets) or len(labels := targets.unique()) > LISTED:
        return doubts
    own = targets.cpu()
    return doubts + [
        f"the group {group} of {column!r} has no example of class {label}: a rate of "
        "such examples is not defined."
        for place, group in enumerate(names)
        for label in labels.tolist()
        if not ((places == place) & (own == label)).any()
    ]


def doubts_of_adapter(parts: Collection[str]) -> list[str]:
    """Return a sentence if the parts of an adapter are output offsets alone."""
    if "adapter" in parts:
        return []
    return [
        "the network has no layer that could be modulated; phi are offsets of its "
        "outputs alone."
    ]


def doubts_of_metric(name: str, same: Tensor, shuffled: float) -> list[str]:
    """Return a sentence if a metric is noisy, or depends on the order of examples.

    It had the native values `same` [n] for the same outputs, `shuffled` in another
    order.
    """
    low, high = same.min().item(), same.max().item()
    if high - low > SAME * max(1.0, abs(low)):
        return [
            f"{name} is noisy: the same outputs scored from {low:.4g} to {high:.4g} in "
            f"{len(same)} queries."
        ]
    if abs(shuffled - low) > SAME * max(1.0, abs(low)):
        return [
            f"{name} depends on the order of the examples: the untouched network "
            f"scores {low:.4g} in the order given, {shuffled:.4g} in another. Values "
            "that it holds for each example belong beside the labels, as columns."
        ]
    return []


def remedy_of(meaning: Meaning) -> str:
    """Return what may help where a metric fails at some phi; "" if nothing is known."""
    return IF_POSITIVE if meaning.kind == "values" else ""


def doubts_of_failures(
    failures: Sequence[str], queries: int, meaning: Meaning
) -> list[str]:
    """Return a sentence or two if queries failed.

    Args:
        failures: messages of the queries that failed.
        queries: all queries that were made.
        meaning: what outputs are.
    """
    if not failures:
        return []
    return [
        f"{len(failures)} of {queries} queries failed, and count as the worst value "
        f"that was seen; the first: {failures[0].rstrip('.')}. "
        f"{remedy_of(meaning)}".rstrip()
    ]

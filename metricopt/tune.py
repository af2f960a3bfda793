"""Offsets of known outputs towards a metric: the library without a network."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from metricopt.adapters.auto import DIRECT_LIMIT
from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.group_offsets import GroupOffsets, ShiftedByGroup
from metricopt.adapters.output_offsets import OutputOffsets, Unmodulated
from metricopt.adapters.output_offsets import columns as columns_of
from metricopt.confirmed_call import CONFIRMING
from metricopt.errors import ConfigError, DataError, described, require_kind
from metricopt.finetune import DEFAULTS, asked_metric, improved
from metricopt.finetuned import Finetuned
from metricopt.given import Given
from metricopt.metrics.base import Metric
from metricopt.metrics.constrained import metrics_of
from metricopt.metrics.retrieval import meant_for_labels
from metricopt.on_outputs.folds import stratified_sample
from metricopt.options import FRAMING_QUERIES, FinetuneOptions
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import CallableMetric
from metricopt.reading.columns import (
    NO_COLUMNS,
    Columns,
    GroupNames,
    as_columns,
    columns_at,
    levels,
)
from metricopt.reading.inputs import as_tensor, require_unmasked, tensors_of
from metricopt.reading.meaning import Kind, Meaning
from metricopt.reading.metric import meaning_for
from metricopt.reading.network import require_defaults
from metricopt.reading.outputs import (
    VALUES,
    are_within_unit,
    require_finite,
)
from metricopt.statistics.strata import (
    strata_of_label_sets,
    strata_of_labels,
    strata_of_numbers,
)
from metricopt.tasks.examples import as_split, relabelled
from metricopt.tasks.judge import bound_metric
from metricopt.tasks.sampling import Split
from metricopt.tuned import Tuned

MOST_GROUPS = 100
"""Most groups that have offsets of their own."""
MOST = 20_000
"""Most examples the search sees; more only confirm what it found."""
STRATA = {"multi-label": strata_of_label_sets, "numbers": strata_of_numbers}
"""What the examples that the search sees are alike in, where not in labels."""
CPU = torch.device("cpu")


@torch.inference_mode(False)
def tune(
    outputs: object,
    targets: object,
    metric: object,
    /,
    *,
    columns: Mapping[str, object] | None = None,
    offsets_by: str | None = None,
    options: FinetuneOptions = DEFAULTS,
    **settings: Any,
) -> Tuned:
    """Find offsets of known outputs that improve a metric; no network is needed.

    The outputs should be of examples that nothing was trained on, such as out-of-fold
    predictions. Of more than 20,000 examples, the search sees 20,000 that are alike in
    targets; two queries of all then confirm what it found. The outputs stay as they are
    unless there is evidence of a gain on other data.

    Args:
        outputs: logits, decision values, probabilities or predicted values, [N, C],
            [N] for two classes, or [N, C, ...]; a tensor or an array. If they are an
            array, a function of your own gets arrays: outputs, targets and columns.
            Outputs in [0, 1] are probabilities if targets are zeros and ones or all
            rows sum to 1, unless `outputs="logits"` is set. With
            `outputs="probabilities"`, sums within .05 of 1 are rounding.
        targets: whole numbers [N], zeros and ones [N, K] for several labels, or
            numbers.
        metric: whatever `make_metric` accepts, such as the name of a metric or of a
            scorer of scikit-learn.
        columns: what stands beside the targets by name, for metrics that take it.
        offsets_by: a column that names groups, each of which gets offsets of its own;
            `predict` and `shifted` then need the groups of their examples. None for the
            same offsets for all.
        options: everything else; see `FinetuneOptions`.
        **settings: fields of `FinetuneOptions` by name, instead of those in `options`.

    Returns:
        The offsets with what they gained; `predict` and `shifted` use them.

    Raises:
        ConfigError: if a setting or name is not valid, outputs are embeddings, or
            clusters are what has offsets of its own.
        DataError: if there is no example, outputs and targets are no numbers or differ
            in length, or there is no such column of groups.
        MetricError: see `finetune`; the attribute `partial` is a `Tuned` with the best
            offsets observed so far, or None.
    """
    options = _checked(options, settings)
    beside = NO_COLUMNS if columns is None else columns
    given = _read(outputs, targets, beside, metric, options)
    if offsets_by is not None and offsets_by == options.clusters:
        raise ConfigError(
            f"offsets_by={offsets_by!r} gives offsets to groups that are known, and "
            "clusters= asks for a gain on new ones: name two columns, or one of them"
        )
    groups = None if offsets_by is None else _groups(given, offsets_by)
    if groups is not None:
        given = _with_groups(given, groups)
    whole = len(given.observe)
    if whole > MOST:
        _require_queries(options, whole)
        given = _sampled(given, options.seed)
    adapter = _adapter(given, groups)
    options = options.changed(adapter=adapter)

    def tuned(found: Finetuned) -> Tuned:
        return Tuned(found, whole, len(given.observe), groups)

    found = improved(adapter.network, lambda: given, metric, options, partial=tuned)
    return tuned(found)


def least_queries(examples: int) -> int:
    """Return how many queries a search of so many examples takes at least."""
    return FRAMING_QUERIES + 1 + CONFIRMING * (examples > MOST)


def _require_queries(options: FinetuneOptions, examples: int) -> None:
    """Raise ConfigError if a search on some examples would have no query left."""
    least = least_queries(examples)
    if options.queries < least:
        raise ConfigError(
            f"queries must be at least {least} for more than {MOST:,} examples, got "
            f"{options.queries}"
        )


def _groups(given: Given, name: str) -> GroupNames:
    """Return the groups that a column names.

    Raises:
        DataError: if there is no such column, or it has too many different values.
    """
    if name not in given.columns:
        raise DataError(
            f"offsets_by={name!r} needs this column: give it as "
            f"columns={{{name!r}: values}}"
        )
    _, names = levels(given.columns[name])
    if len(names) > MOST_GROUPS:
        raise DataError(
            f"offsets_by={name!r} needs a column of at most {MOST_GROUPS} different "
            f"values, got {len(names)}"
        )
    return GroupNames(name, tuple(names))


def _with_groups(given: Given, groups: GroupNames) -> Given:
    """Return examples whose inputs are outputs and the numbers of their groups."""
    split = given.observe
    outputs, own = split.batch(slice(None)), given.columns[groups.column]
    assert isinstance(outputs, Tensor)
    assert isinstance(split.targets, Tensor)
    inputs = outputs, groups.places(own, len(outputs))
    taken = bound_metric(given.metric, given.meaning, given.columns).columns
    beside = dict(given.columns)
    if groups.column not in taken:
        del beside[groups.column]  # which is used, but not by the metric
    split = Split(inputs, split.targets, beside)
    return replace(given, train=split, observe=split)


def _adapter(given: Given, groups: GroupNames | None) -> NetworkAdapter:
    """Return offsets of a network whose outputs are its inputs, or the first."""
    network, meaning = nn.Identity(), given.meaning
    one = given.observe.batch(slice(1))
    first = tensors_of(one)[0]
    count = 1 if first.ndim == 1 else columns_of(first, meaning)
    if groups is None:
        return OutputOffsets(
            Unmodulated(network, one),
            one,
            meaning,
            count,
            dims=max(2, first.ndim),
            scaled=count <= DIRECT_LIMIT,
        )
    number = len(groups.names)
    shifted = ShiftedByGroup(network, groups=number, outputs=count, meaning=meaning)
    return GroupOffsets(shifted)


def _checked(options: FinetuneOptions, settings: dict[str, Any]) -> FinetuneOptions:
    """Return the options with settings.

    Raises:
        ConfigError: if one of them is about a network, or torch's default device or
            dtype is of no use.
    """
    require_defaults()
    require_kind("options", options, FinetuneOptions, "a FinetuneOptions")
    options = options.changed(**settings)
    for name in ("adapter", "size", "sites", "sampler"):
        if getattr(options, name) != getattr(DEFAULTS, name):
            raise ConfigError(
                f"{name} is about a network; tune has none, and moves offsets alone"
            )
    return options


def _read(
    outputs: object,
    targets: object,
    beside: Mapping[str, object],
    metric: object,
    options: FinetuneOptions,
) -> Given:
    """Read metric, outputs and targets, and decide what they mean."""
    black_box = asked_metric(metric, options)
    held, truth = _numbers("outputs", outputs), _numbers("targets", targets)
    if options.outputs in VALUES and not held.is_complex():
        held = held if held.is_floating_point() else held.double()
    _check(held, truth)
    own_columns = as_columns(beside, len(held), "these outputs")
    _require_columns(black_box, own_columns)
    split = as_split((held, truth, own_columns), name="observe", device=CPU)
    meaning = _meaning(held, split.targets, black_box, options.outputs)
    if meaning.truth == "numbers":
        require_finite("targets", truth)
        # Squared errors overflow in half precision.
        wide = held.to(CPU, torch.promote_types(held.dtype, torch.float32))
        assert isinstance(split, Split)
        split = Split(wide, split.targets, split.columns)
    if not meaning.are_targets_plain:
        split = relabelled(split, meaning.inward_targets(split.targets))
    loss = _ProperLoss(meaning)  # which is the same for arrays and tensors
    meaning = replace(meaning, arrays=isinstance(outputs, np.ndarray))
    return Given(split, split, loss, black_box, meaning, network=False)


def _numbers(name: str, given: object) -> Tensor:
    """Return outputs or targets, as they are called, as one tensor.

    Raises:
        DataError: if they are anything else.
    """
    require_unmasked(given, name)
    held = as_tensor(given)
    if held is not None and held.ndim:
        return held
    got, remedy = described(given), "pass those of all examples as one array"
    if isinstance(given, np.ndarray):
        got = f"an array of {given.dtype.name} {list(given.shape)}"
        remedy = "numpy.unique(names, return_inverse=True)[1] numbers names of classes"
    raise DataError(
        f"{name} must be one tensor or array of numbers, got {got}: {remedy}"
    )


def _check(outputs: Tensor, targets: Tensor) -> None:
    """Raise DataError for outputs that cannot be shifted, or do not fit the targets."""
    if len(outputs) != len(targets):
        raise DataError(
            f"outputs and targets must have the same length, got {len(outputs)} "
            f"outputs and {len(targets)} targets"
        )
    if not len(outputs):
        raise DataError("outputs and targets must have at least one example, got none")
    if not outputs.is_floating_point():
        raise DataError(
            f"outputs must be scores or values, got {outputs.dtype} of shape "
            f"{list(outputs.shape)}: labels that are decided cannot be shifted; whole "
            "numbers that are predicted values can, say outputs='values'"
        )
    require_finite("outputs", outputs)


def _require_columns(metric: Metric, columns: Columns) -> None:
    """Raise ConfigError if a metric needs what is no column."""
    for each in metrics_of(metric):
        needed = each.takes.needed if isinstance(each, CallableMetric) else each.columns
        lacking = [name for name in needed if name not in columns]
        if lacking:
            raise ConfigError(
                f"metric {each.name!r} also needs {', '.join(map(repr, lacking))}: "
                f"give it as columns={{{lacking[0]!r}: values}}"
            )


def _meaning(
    outputs: Tensor, targets: Any, metric: Metric, given: Kind | None
) -> Meaning:
    """Return what outputs mean; shares of labels are probabilities unless it is said.

    Raises:
        ConfigError: if they are embeddings, or not what the user says.
    """
    binary = isinstance(targets, Tensor) and bool(
        ((targets == 0) | (targets == 1)).all()
    )
    if given is None and binary and are_within_unit(outputs):
        given = "probabilities"
    meaning = meaning_for(metric, outputs, targets, loss=None, given=given)
    if meaning.kind == "embeddings" or metric.reads != "scores":
        remedy = meant_for_labels(metric) or "use finetune with a network"
        raise ConfigError(
            "tune shifts scores of classes or predicted values, but these outputs are "
            f"{meaning.kind}, and metric {metric.name!r} reads {metric.reads}: {remedy}"
        )
    return meaning


class _ProperLoss:
    """The loss that outputs of a meaning would be trained with, for directions."""

    def __init__(self, meaning: Meaning) -> None:
        self._meaning = meaning

    def __call__(self, outputs: Tensor, targets: Tensor) -> Tensor:
        columns_ = outputs[:, None] if outputs.ndim == 1 else outputs
        logits, truth = self._meaning.inward(columns_), self._meaning.truth
        assert isinstance(logits, Tensor)
        if truth == "labels" and logits.shape[1] > 1:
            labels, ignored = targets.long(), self._meaning.ignored
            left_out = -100 if ignored is None else ignored
            return functional.cross_entropy(logits, labels, ignore_index=left_out)
        if truth == "other":
            return logits.square().mean()
        same = targets.to(logits).reshape(logits.shape)
        if truth == "numbers":
            return functional.mse_loss(logits, same)
        return functional.binary_cross_entropy_with_logits(logits, same)


def _sampled(given: Given, seed: int) -> Given:
    """Return what a search sees of many examples: `MOST` that are alike in targets."""
    whole, targets = given.observe, given.observe.targets
    assert isinstance(targets, Tensor)
    strata = STRATA.get(given.meaning.truth, strata_of_labels)(targets.cpu())
    places = stratified_sample(strata, MOST, make_generator("tune", seed))
    split = Split(
        whole.batch(places),
        targets[places],
        columns_at(given.columns, places),
    )
    return replace(given, train=split, observe=split, whole=whole)

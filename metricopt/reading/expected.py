"""What metrics of other packages expect of outputs and targets, and are given."""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from metricopt.errors import ConfigError, DataError
from metricopt.metrics.base import check_outputs
from metricopt.metrics.confusion import predict_labels
from metricopt.reading.meaning import Meaning, Truth
from metricopt.reading.taking import NOTHING, Takes

SURE_LOGIT = 10.0
"""Logit of a sure prediction: its probability differs from 1 by less than 5e-5."""


def implied_meaning(outputs: Tensor, targets: Tensor) -> Meaning:
    """Return what logits [N, C] mean by the shape of their targets alone."""
    several = targets.ndim == 2 and outputs.shape[1] > 1
    return Meaning("logits", "multi-label" if several else "labels")


def one_by_one(
    meaning: Meaning, outputs: Tensor, targets: Tensor, *, leading: int = 1
) -> tuple[Tensor, Tensor]:
    """Return outputs and targets as rows; of dense ones, those that are not ignored.

    Outputs are in the form of methods, [N, C, ...] after `leading` - 1 other axes,
    targets [N, ...] or one for each output. They become [..., M, C] and [M], or [M, C].
    """
    each = targets.ndim == outputs.ndim - leading + 1 and outputs.shape[leading] > 1
    if not meaning.is_dense:
        return outputs, targets if each else targets.flatten()
    columns = outputs.movedim(leading, -1).flatten(leading - 1, -2)
    if each:
        return columns, targets.movedim(1, -1).flatten(0, -2)
    flat = targets.flatten()
    if meaning.truth == "numbers" or meaning.ignored is None:
        return columns, flat
    counted = flat.ne(meaning.ignored)
    return columns[..., counted.to(columns.device), :], flat[counted]


def probabilities(meaning: Meaning, outputs: Tensor) -> Tensor:
    """Return the probabilities of all classes, float64, of outputs [M, C].

    Shape [M, max(C, 2)] where targets are one label each, [M, C] where several. In
    double precision, so that confident scores do not become ties.
    """
    outputs = outputs.double()
    if meaning.truth == "multi-label":
        return outputs.sigmoid()
    if outputs.shape[1] == 1:
        return torch.cat([torch.sigmoid(-outputs), torch.sigmoid(outputs)], 1)
    return outputs.sigmoid() if meaning.link == "sigmoid" else outputs.softmax(1)


def perfect_outputs(meaning: Meaning, outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the outputs of a network that is always right, in the form of methods.

    Outputs of some examples, [n, C, ...], give C and the type; targets are those of all
    examples: labels, several labels, or numbers.
    """
    classes = outputs.shape[1]
    each = targets.ndim == outputs.ndim
    if meaning.truth == "numbers":
        return (targets if each else targets[:, None]).to(outputs)
    if meaning.truth == "multi-label" or classes == 1:
        hits = (targets if each else targets[:, None]) == 1
    else:
        labels = targets.long().clamp(0, classes - 1)  # ignored ones may be negative
        hits = one_hot(labels, classes).movedim(-1, 1) == 1
    return SURE_LOGIT * (2 * hits.to(outputs) - 1)


Predictions = Literal["labels", "scores", "decisions"]
"""Decided labels, probabilities, or logits."""
ForeignFunction = Callable[..., object]
"""From the meaning of outputs, outputs [N, C] in the form of methods, and targets, with
columns by name."""

LABELS: tuple[Truth, ...] = ("labels", "multi-label")
NUMBERS: tuple[Truth, ...] = ("numbers",)
SIGNED = ("corrcoef", "kappa", "cosinesimilarity")
"""What the names of metrics contain whose least value is -1."""
WRAP = "wrap it in a function of (outputs, targets)"
"""The remedy where a metric cannot be given what it expects."""


Limits = tuple[float, float]
"""Least and greatest value that a metric can have; infinite where not known."""
ANY: Limits = (-math.inf, math.inf)
SHARES = (
    *("accuracy", "precision", "recall", "sensitivity", "specificity", "f1", "fbeta"),
    *("jaccard", "iou", "dice", "rocauc", "auroc", "hamming", "zeroone", "ndcg"),
    "exactmatch",
)
"""What the names of metrics contain that are shares, in [0, 1]."""
WITHIN_ONE = ("corrcoef", "kappa")
"""What the names of metrics contain whose values are in [-1, 1]."""
AT_MOST_ONE = ("r2", "d2", "explainedvariance")
"""How the names of metrics begin that are 1 at best."""
ERRORS = ("loss", "error", "deviance")
"""How the names of metrics end that are 0 at best."""


def limits_of(name: str, arguments: Mapping[str, object]) -> Limits:
    """Return the limits of a metric of another package, by its name and arguments."""
    plain = name.lower().replace("_", "")
    if arguments.get("normalize") is False:  # a count
        return 0.0, math.inf
    if plain.startswith(AT_MOST_ONE):
        return -math.inf, 1.0
    if arguments.get("adjusted") or any(part in plain for part in WITHIN_ONE):
        return -1.0, 1.0
    if any(part in plain for part in SHARES):
        return 0.0, 1.0
    return (0.0, math.inf) if plain.endswith(ERRORS) else ANY


def negated(limits: Limits) -> Limits:
    """Return the limits of the negated metric."""
    low, high = limits
    return -high, 0 - low  # not -low, which is -0.0 for 0


class Foreign(NamedTuple):
    """A metric of another package.

    Attributes:
        function: the metric.
        higher_is_better: direction of the metric; None if its package does not say.
        low: least value of the metric.
        takes: which columns the metric takes.
        limits: what its values can be.
    """

    function: ForeignFunction
    higher_is_better: bool | None
    low: float = 0.0
    takes: Takes = NOTHING
    limits: Limits = ANY


@dataclass(frozen=True)
class Expected:
    """What a metric of another package expects.

    Attributes:
        name: name of the metric, for messages.
        predictions: what it expects where targets are labels. Where they are numbers,
            it gets the predicted numbers.
        truths: the kinds of targets it takes.
        classes: number of classes, where targets are one label each; None for any.
        every_class: whether two classes get a column each, not one for the second.
        whole: whether it compares all of an example at once, even of dense outputs.
    """

    name: str
    predictions: Predictions = "scores"
    truths: tuple[Truth, ...] = LABELS
    classes: int | None = None
    every_class: bool = False
    whole: bool = False

    def of(
        self, meaning: Meaning | None, outputs: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Return predictions of the expected kind, and targets to compare them with.

        Without a meaning, targets say what the outputs [N, C, ...] are. Both become [M]
        or [M, C]: labels int64, scores, decisions and numbers float64. Dense outputs
        have one row for each target that is not ignored.

        Raises:
            DataError: if outputs or targets are of another kind.
            MetricError: if outputs have NaN, which would count as class 0.
        """
        meaning = meaning or _implied(self, outputs, targets)
        self._check(meaning, outputs)
        columns, truth = one_by_one(meaning, outputs, targets)
        truth = truth.to(columns.device)
        if meaning.truth == "numbers":
            return _numbers(meaning, columns), truth.double()
        return self._predicted(meaning, columns), truth.long()

    def _check(self, meaning: Meaning, outputs: Tensor) -> None:
        if meaning.truth not in self.truths:
            read = f"targets are {meaning.truth}: {meaning.describe()}"
            remedy = "Say what outputs are by FinetuneOptions(outputs=...)"
            if "labels" in self.truths:  # of outputs nothing follows for targets
                remedy = "Give labels as whole numbers from 0 to C - 1"
            raise DataError(
                f"{self.name} expects {' or '.join(self.truths)} as targets, but here "
                f"{meaning.doubt or read} {remedy}, or {WRAP}."
            )
        found = max(outputs.shape[1], 2)
        if meaning.truth == "labels" and self.classes not in (None, found):
            raise DataError(
                f"{self.name} is for {self.classes} classes, but the outputs have "
                f"{found}"
            )
        if self.whole and meaning.is_dense:
            raise DataError(
                f"{self.name} compares whole examples, but dense outputs are compared "
                f"one by one: {WRAP}"
            )
        check_outputs(self.name, outputs)

    def _predicted(self, meaning: Meaning, columns: Tensor) -> Tensor:
        """Return labels, scores or decisions of outputs [M, C]."""
        several = meaning.truth == "multi-label"
        if self.predictions == "scores":
            scores = probabilities(meaning, columns)
            split = several or self.every_class or scores.shape[1] > 2
            return scores if split else scores[:, 1].contiguous()
        if self.predictions == "decisions":
            return _margins(columns.double())
        return (columns > 0).long() if several else predict_labels(columns)


def check_arguments(
    name: str, call: Callable[..., object], known: tuple[tuple[str, str], ...]
) -> None:
    """Raise ConfigError for a function of anything but targets and predictions.

    The first two arguments may have the names in `known`, the usual ones first; a third
    one must not be needed.
    """
    parameters = [*inspect.signature(call).parameters.values()]
    first = tuple(part.name for part in parameters[:2])
    if first not in known:
        raise ConfigError(
            f"{name} takes ({', '.join(first)}), not ({', '.join(known[0])}): {WRAP}"
        )
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        part.name
        for part in parameters[2:]
        if part.default is part.empty and part.kind not in variadic
    ]
    if needed:
        raise ConfigError(
            f"{name} also needs {', '.join(needed)}: pass a functools.partial that "
            f"gives it, or {WRAP}"
        )


def unwrapped(spec: object) -> Any:
    """Return the function inside of any number of `functools.partial`."""
    while isinstance(spec, functools.partial):
        spec = spec.func
    return spec


def keywords(spec: object) -> dict[str, Any]:
    """Return the keyword arguments that a `functools.partial` gives."""
    return dict(spec.keywords) if isinstance(spec, functools.partial) else {}


def least_value(name: str) -> float:
    """Return the least value of a metric with this name: 0, or -1 if it is signed."""
    plain = name.lower().replace("_", "")
    return -1.0 if any(part in plain for part in SIGNED) else 0.0


def _implied(expected: Expected, outputs: Tensor, targets: Any) -> Meaning:
    """Return what outputs mean by their targets alone."""
    if not isinstance(targets, Tensor):
        return Meaning("raw")
    floating = targets.is_floating_point()
    whole = not floating or bool((targets == targets.round()).all())
    if not whole or (floating and expected.truths == NUMBERS):
        return Meaning("values", "numbers")
    return implied_meaning(outputs, targets)


def _numbers(meaning: Meaning, columns: Tensor) -> Tensor:
    """Return the numbers that a network predicts, [M] if it is one of each example."""
    form = replace(meaning, layout="rows", flat=columns.shape[1] == 1)
    found = form.outward(columns.double())
    assert isinstance(found, Tensor)
    return found


def _margins(logits: Tensor) -> Tensor:
    """Return logits [M, C], or of two classes the second against the first, [M]."""
    if logits.shape[1] == 2:
        return logits[:, 1] - logits[:, 0]
    return logits[:, 0] if logits.shape[1] == 1 else logits

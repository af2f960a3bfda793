"""What outputs and targets mean, how that is decided, and the form methods see them in.

Methods, statistics and built-in metrics read one form of outputs and labels: logits of
classes [N, C], with the class axis second, and whole numbers [N]. The network and the
data may have another form, which the user's own loss and metric expect. `inward` turns
their form into that of methods, and `outward` turns it back.
"""

from dataclasses import dataclass, replace
from typing import Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn.functional import log_softmax, softmax

from metricopt.errors import ConfigError, described, require_choice
from metricopt.reading.layout import Layout, ignored_label, layout_of, void_doubt
from metricopt.reading.outputs import (
    ROUNDED,
    UNIT,
    VALUES,
    Outputs,
    Standard,
    Targets,
    are_embeddings,
    are_logarithms,
    are_shares,
    are_within_unit,
    range_of,
)

Kind = Literal[
    "logits",
    "probabilities",
    "log-probabilities",
    "values",
    "amounts",
    "embeddings",
    "raw",
]
"""What outputs are; "raw" where only the user's own loss and metric can say."""
Truth = Literal["labels", "multi-label", "numbers", "other"]
"""What targets are: one class each, several classes each, numbers, or anything else."""
Link = Literal["softmax", "sigmoid", "log-softmax"]
"""What turns logits into what a network returns."""


@dataclass(frozen=True)
class Meaning:
    """What the outputs of a network mean, and what its targets are.

    Attributes:
        kind: what outputs are.
        truth: what targets are.
        layout: where the classes are.
        link: what the network applied to its logits; None if it returns them as they
            are, or returns something else.
        flat: whether the network returns [N] for one output per example.
        ignored: label that counts as no label in dense outputs; None without one.
        stored: type of labels as the user gave them; None if it is int64, or if
            targets are no labels.
        column: whether labels were given as [N, 1].
        doubt: what looks wrong with the targets, a sentence; "" if nothing does.
        arrays: whether outputs were given as an array of numpy, not as a tensor, so
            that a function of the user's own gets arrays.
        standard: where predicted values are scaled about, and the unit of their shifts;
            None where outputs are anything else.

    Raises:
        ConfigError: if `kind`, `truth`, `layout` or `link` is none of those above.
    """

    kind: Kind = "logits"
    truth: Truth = "other"
    layout: Layout = "rows"
    link: Link | None = None
    flat: bool = False
    ignored: int | None = None
    stored: torch.dtype | None = None
    column: bool = False
    doubt: str = ""
    arrays: bool = False
    standard: Standard | None = None

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, Kind)
        require_choice("truth", self.truth, Truth)
        require_choice("layout", self.layout, Layout)
        if self.link is not None:
            require_choice("link", self.link, Link)

    @property
    def is_plain(self) -> bool:
        """Whether the form of outputs and targets is the form of methods."""
        return self.are_outputs_plain and self.are_targets_plain

    @property
    def are_outputs_plain(self) -> bool:
        """Whether the network's form is the form of methods."""
        return self.link is None and not self.flat and self.layout != "tokens"

    @property
    def are_targets_plain(self) -> bool:
        """Whether the targets have the form of methods."""
        return self.stored is None and not self.column

    @property
    def is_dense(self) -> bool:
        """Whether there are several outputs of every class for one example."""
        return self.layout != "rows"

    def inward(self, outputs: Outputs, *, leading: int = 1) -> Outputs:
        """Return the form of methods, of outputs as an adapter returns them.

        An adapter returns [N, 1] for [N]; `leading` axes go up to and including that of
        the examples, rows of phi first. The class axis comes after the examples;
        probabilities become logits, clamped so that they are finite. The logarithms of
        probabilities are logits as they are.
        """
        if self.are_outputs_plain or not isinstance(outputs, Tensor):
            return outputs
        if self.layout == "tokens":
            outputs = outputs.movedim(-1, leading)
        if self.link == "softmax":
            return outputs.clamp_min(torch.finfo(outputs.dtype).tiny).log()
        if self.link == "sigmoid":
            limits = torch.finfo(outputs.dtype)
            inside = outputs.clamp(limits.tiny, 1 - limits.eps / 2)
            return inside.log() - torch.log1p(-inside)
        return outputs

    def outward(self, outputs: Outputs, *, leading: int = 1) -> Outputs:
        """Return outputs as the network would: the inverse of `inward`, [N] for [N]."""
        if self.are_outputs_plain or not isinstance(outputs, Tensor):
            return outputs
        if self.link == "softmax":
            outputs = softmax(outputs, leading)
        elif self.link == "sigmoid":
            outputs = outputs.sigmoid()
        elif self.link == "log-softmax":
            outputs = log_softmax(outputs, leading)
        if self.layout == "tokens":
            outputs = outputs.movedim(leading, -1)
        return outputs.squeeze(leading) if self.flat else outputs

    def normalised(self, logits: Tensor, *, leading: int = 1) -> Tensor:
        """Return logits as `inward` makes them: the logarithms of shares that sum to 1.

        They are known up to a number added to all classes.
        """
        if self.link in ("softmax", "log-softmax"):
            return log_softmax(logits, leading)
        return logits

    def inward_targets(self, targets: Targets) -> Targets:
        """Return the labels [N, ...] of methods; other targets stay as they are."""
        if not isinstance(targets, Tensor):
            return targets
        if self.column:
            targets = targets.squeeze(1)
        return targets if self.stored is None else targets.long()

    def outward_targets(self, targets: Targets, *, leading: int = 1) -> Targets:
        """Return targets as the user gave them: the inverse of `inward_targets`."""
        if not isinstance(targets, Tensor):
            return targets
        given = targets if self.stored is None else targets.to(self.stored)
        return given.unsqueeze(leading) if self.column else given

    def describe(self) -> str:
        """Return one sentence that says how outputs and targets are read."""
        what = {
            "logits": "logits",
            "probabilities": f"probabilities ({self.link})",
            "log-probabilities": "logarithms of probabilities",
            "values": "predicted values",
            "amounts": "amounts, which stay positive (their logarithms are shifted)",
            "embeddings": "embeddings",
            "raw": "whatever the loss and the metric read",
        }[self.kind]
        truth = {
            "labels": "class labels",
            "multi-label": "several labels per example",
            "numbers": "numbers",
            "other": "whatever the loss and the metric read",
        }[self.truth]
        shape = {"rows": "", "channels": " [N, C, ...]", "tokens": " [N, ..., C]"}
        return f"Outputs{shape[self.layout]} are read as {what}, targets as {truth}."


PLAIN = Meaning()
"""Logits [N, C], or anything that only the user's loss and metric read."""


REGRESSION = (nn.MSELoss, nn.L1Loss, nn.SmoothL1Loss, nn.HuberLoss)
OF_LOGITS = (nn.CrossEntropyLoss, nn.BCEWithLogitsLoss, nn.MultiLabelSoftMarginLoss)
"""Losses that say what outputs are, even where all of them lie in [0, 1]."""
OF_SHARES = (nn.BCEWithLogitsLoss, nn.BCELoss)
"""Losses whose targets may be any number in [0, 1]: the share of a label."""


def meaning_of(
    outputs: Outputs,
    targets: Targets,
    *,
    loss: object,
    given: Kind | None = None,
    layout: Layout | None = None,
) -> Meaning:
    """Decide what the outputs of a network mean.

    Targets say whether there are classes. For classes, outputs outside [0, 1] are
    logits; rows that sum to 1 are probabilities; else the loss says which of the two.

    Args:
        outputs: outputs of the untouched network for some examples, [n, ...].
        targets: targets of all examples, shape [N, ...].
        loss: the training loss; torch's own losses say what they expect.
        given: what the user says that outputs are; None to decide.
        layout: where the user says that the classes of dense outputs are; None to
            decide by the shapes, and by the loss where they leave a doubt.

    Raises:
        ConfigError: if outputs all lie in [0, 1] and nothing says whether they are
            probabilities, it is not clear where the classes are, or outputs are not
            what the user says.
    """
    if given is not None:
        require_choice("outputs", given, Kind)
    flat = isinstance(outputs, Tensor) and outputs.ndim <= 1
    if not isinstance(outputs, Tensor) or not isinstance(targets, Tensor):
        return Meaning(given or "raw", flat=flat)
    columns = outputs.reshape(-1, 1) if flat else outputs
    if given in ("embeddings", "raw"):
        return Meaning(given, flat=flat)
    if given is None and columns.ndim == 2 and are_embeddings(columns):
        return Meaning("embeddings", flat=flat)
    layout = layout_of(columns, targets, loss, layout)
    if layout is None:
        in_column = columns.ndim == 2 and targets.shape[1:] == (1,)
        doubt = _misshapen(targets, columns.shape[1]) if in_column else ""
        return Meaning(given or "raw", flat=flat, doubt=doubt)
    ignored = ignored_label(loss) if layout != "rows" else None
    classes = columns.shape[axis := -1 if layout == "tokens" else 1]
    counted = targets if ignored is None else targets[targets != ignored]
    same = targets.ndim == columns.ndim or classes == 1
    numbers = type(loss) in REGRESSION or given in VALUES
    shares = same and given not in VALUES and _are_shares(counted, classes, loss)
    mixed = same and not numbers and _are_mixed(counted, classes)
    truth = "other" if shares or mixed else _truth(counted, classes, same, numbers)
    kind, link = _kind(columns, truth, layout, loss, given)
    meaning = Meaning(kind, truth, layout, link, flat, ignored)
    if truth != "labels":
        doubt = MIXED if mixed else _doubt(columns, counted, classes, truth, same)
        own, logs = kind in VALUES and truth == "numbers", kind == "amounts"
        standard = Standard.of(columns, targets, axis, logs) if own else None
        return replace(meaning, doubt=doubt, standard=standard)
    stored = None if targets.dtype == torch.int64 else targets.dtype
    return replace(meaning, stored=stored, column=targets.ndim == columns.ndim)


def _are_shares(targets: Tensor, classes: int, loss: object) -> bool:
    """Return whether a loss takes the targets, one for each output, as shares."""
    if type(loss) is nn.CrossEntropyLoss:  # a distribution over the classes
        return classes > 1
    binary = (targets == 0) | (targets == 1)
    return type(loss) in OF_SHARES and not bool(binary.all())


MIXED = (
    "targets hold labels beside other numbers, and only the loss and a metric of your "
    "own can read them: give the labels as targets and the rest as columns, observe=("
    "inputs, labels, {'amount': amounts}); if all are predicted, say outputs='values'."
)
"""What is doubtful in targets that are labels and, say, amounts."""


def _are_mixed(targets: Tensor, classes: int) -> bool:
    """Return whether some columns of targets [N, C] are labels, and others are none."""
    if targets.ndim != 2 or classes == 1 or len(targets) < 2:
        return False
    numbers = targets.double()
    low, high = numbers.amin(0), numbers.amax(0)
    whole = (numbers == numbers.round()).all(0) & (low >= 0) & (high < classes)
    labels = whole & (high > low)
    return bool(labels.any() & ~whole.all())


ONE_HOT = (
    "targets have one label in every row, and outputs sum to 1 in every row, like "
    "one-hot classes and a softmax, but every label is decided by itself: for one "
    "class per example, give targets.argmax(1)."
)
"""What is doubtful in targets that are one-hot, beside the outputs of a softmax."""


def _are_one_hot(outputs: Tensor, targets: Tensor) -> bool:
    """Return whether rows [N, C] of targets and of outputs in [0, 1] all sum to 1."""
    single = outputs.ndim == 2 and are_shares(outputs, 1)
    return single and bool((targets.sum(1) == 1).all())


def _doubt(
    outputs: Tensor, targets: Tensor, classes: int, truth: Truth, same: bool
) -> str:
    """Return a sentence if targets look like other labels than they are read as."""
    if truth == "multi-label" and _are_one_hot(outputs, targets):
        return ONE_HOT
    if truth != "other" or same or targets.is_complex() or not targets.numel():
        return ""
    if targets.is_floating_point() and (unknown := int(targets.isnan().sum())):
        return f"targets hold NaN, {unknown} of {targets.numel()}: leave these out."
    void = void_doubt(targets, classes) if outputs.ndim > 2 else ""
    if targets.is_floating_point():
        found = _misshapen(targets, classes)
        return found and found + void
    low, high = targets.long().aminmax()
    return (
        f"targets are whole numbers from {low} to {high}, no labels of {classes} "
        f"classes, which are 0 to {classes - 1}: only the loss and a metric of your "
        f"own can read them.{void}"
    )


def _misshapen(targets: Tensor, classes: int) -> str:
    """Return a sentence if targets, floats or in a column [N, 1], may be labels."""
    numbers = targets.double()
    labels = (numbers == numbers.round()) & (numbers >= 0) & (numbers < classes)
    if not bool(labels.all()):
        return ""
    remedy = "targets[:, 0]" if targets.shape[1:] == (1,) else "targets"
    remedy += ".long()" if targets.is_floating_point() else ""
    return (
        f"targets are {described(targets)}, which only the loss and a metric of your "
        f"own can read: if they are labels, give {remedy}."
    )


def _truth(targets: Tensor, classes: int, same: bool, regression: bool) -> Truth:
    """Return what targets are that count, for outputs of `classes` classes.

    They are the `same` if there is one for every output, not one for all C;
    `regression` if the loss or the user says that they are numbers.
    """
    if regression:
        return "numbers" if same else "other"
    if same:
        binary = bool(((targets == 0) | (targets == 1)).all())
        if not binary:
            return "numbers"
        return "labels" if classes == 1 else "multi-label"
    if targets.is_floating_point() or targets.is_complex() or not len(targets):
        return "other"
    low, high = targets.long().aminmax()
    return "labels" if low >= 0 and high < classes else "other"


def _kind(
    outputs: Tensor, truth: Truth, layout: Layout, loss: object, given: Kind | None
) -> tuple[Kind, Link | None]:
    if truth == "numbers" and given in (None, *VALUES):
        return given or "values", None
    if truth == "other":
        return given or "raw", None
    axis = -1 if layout == "tokens" else 1
    inside = are_within_unit(outputs)
    labelled = outputs.shape[axis] > 1 and truth == "labels"
    logarithms = labelled and are_logarithms(outputs, axis)
    if logarithms and given in (None, "log-probabilities"):
        return "log-probabilities", "log-softmax"
    within = ROUNDED if given == "probabilities" else UNIT
    whole = labelled and are_shares(outputs, axis, within)
    link: Link = "softmax" if whole else "sigmoid"
    if given is not None:
        if given == "log-probabilities":
            raise ConfigError(
                "outputs='log-probabilities' needs labels, and outputs whose "
                "exponentials sum to 1, as of a LogSoftmax"
            )
        if given == "probabilities" and not inside:
            raise ConfigError(
                "outputs='probabilities' needs outputs in [0, 1], got "
                f"{range_of(outputs)}"
            )
        return given, link if given == "probabilities" else None
    if not inside or (type(loss) in OF_LOGITS and not whole):
        return "logits", None
    if whole or type(loss) is nn.BCELoss:
        return "probabilities", link
    known = " or ".join(f"outputs={each!r}" for each in get_args(Kind)[:2])
    raise ConfigError(
        f"all outputs lie in [0, 1], from {range_of(outputs)}, and may be "
        "probabilities: say which they are by "
        f"FinetuneOptions({known})"
    )

"""The meaning of outputs and targets, and the form in which methods see the outputs.

Methods, statistics and built-in metrics read one form of outputs and labels: logits of
classes [N, C], with the class axis second, and whole numbers [N]. The network and the
data may have another form, which the user's own loss and metric expect. `inward` turns
their form into that of methods, and `outward` turns it back.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import log_softmax, softmax

from metricopt.errors import require_choice
from metricopt.reading.outputs import Outputs, Targets

Kind = Literal[
    "logits", "probabilities", "log-probabilities", "values", "embeddings", "raw"
]
"""What outputs are; "raw" where only the user's own loss and metric can say."""
Truth = Literal["labels", "multi-label", "numbers", "other"]
"""What targets are: one class each, several classes each, numbers, or anything else."""
Layout = Literal["rows", "channels", "tokens"]
"""Where the classes of an example are: [N, C], [N, C, ...] or [N, ..., C]."""
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

        Args:
            outputs: as the network returns them, but [N, 1] for [N], after axes of rows
                of phi.
            leading: axes up to and including that of the examples.

        Returns:
            The outputs with the class axis after the examples; probabilities become
            logits, clamped so that they are finite. The logarithms of probabilities are
            logits as they are.
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
        """Return outputs as the network would: the inverse of `inward`.

        Args:
            outputs: in the form of methods.
            leading: axes up to and including that of the examples.

        Returns:
            The outputs, [N] where the network returns [N].
        """
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

        Args:
            logits: in the form of methods, up to a number added to all classes.
            leading: axes up to and including that of the examples.
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
        """Return targets as the user gave them: the inverse of `inward_targets`.

        Args:
            targets: in the form of methods.
            leading: axes up to and including that of the examples.
        """
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

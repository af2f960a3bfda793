"""What `tune` returns: offsets of outputs, what they gained, and what that cost."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from metricopt.adapters.output_offsets import OutputOffsets
from metricopt.errors import ConfigError, DataError, ShapeError, described
from metricopt.estimate import Estimate
from metricopt.finetuned import Finetuned, Spent
from metricopt.methods.attempts import Obvious
from metricopt.methods.bounds import BoundReport, Front
from metricopt.methods.result import Evidence
from metricopt.reading.columns import GroupNames
from metricopt.reading.inputs import Inputs, as_tensor
from metricopt.reading.outputs import (
    are_shares,
    are_within_unit,
    range_of,
    require_finite,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OBSERVED = "on the observe split"
"""What the summary of a fine-tuned network calls the examples."""
LATER = 0.1
"""How far sums of later probabilities may be from 1, as they may be rounded more."""


@dataclass(frozen=True, repr=False)
class Tuned:
    """Offsets found for a metric of known outputs.

    Attributes:
        found: the same as `finetune` returns it, for a network whose outputs are its
            inputs.
        examples: number of examples N that were given.
        searched: number of examples the offsets were searched on.
        groups: groups with offsets of their own; None where all have the same.
    """

    found: Finetuned
    examples: int
    searched: int
    groups: GroupNames | None = None

    @property
    def offsets(self) -> Tensor:
        """Offset of every output, [C], in the units of logits or values; 0 for none.

        Those of amounts are added to their logarithms, which scales multiply before.
        Where groups have their own, [G, C], in the order of `groups.names`.
        """
        phi, adapter = self.found.phi, self.found.adapter
        if isinstance(adapter, OutputOffsets):
            return adapter.affine(phi)[0]
        assert self.groups is not None
        return phi.view(len(self.groups.names), -1)

    @property
    def scales(self) -> Tensor | None:
        """What outputs are multiplied by before, [C]; None for more than 256."""
        adapter = self.found.adapter
        if isinstance(adapter, OutputOffsets):
            return adapter.affine(self.found.phi)[1]
        return None

    @property
    def metric_before(self) -> float:
        """Metric of the outputs as they were given, on all examples.

        After an interruption, on those that the search saw.
        """
        return self.found.metric_before

    @property
    def metric_after(self) -> float:
        """Metric of the shifted outputs on the same examples; never worse."""
        return self.found.metric_after

    @property
    def expected(self) -> Estimate | None:
        """Gain to expect on other data; see `Finetuned.expected`."""
        return self.found.expected

    @property
    def obvious(self) -> tuple[Obvious, ...]:
        """How the obvious did on what the search saw; see `Finetuned.obvious`."""
        return self.found.obvious

    @property
    def bounds(self) -> tuple[BoundReport, ...]:
        """What became of every bound; see `Finetuned.bounds`."""
        return self.found.bounds

    @property
    def feasible(self) -> dict[str, float | None]:
        """How probably each bound is met on other data, by its name."""
        return self.found.feasible

    @property
    def front(self) -> Front | None:
        """What can be had of the metric and the bounded ones; None without bounds."""
        return self.found.front

    def at(self, place: int) -> "Tuned":
        """Return the same with a point of the front; see `Finetuned.at`."""
        return replace(self, found=self.found.at(place))

    @property
    def evidence(self) -> Evidence | None:
        """Evidence for the offsets, or against any other than 0."""
        return self.found.evidence

    @property
    def spent(self) -> Spent:
        """Queries and seconds."""
        return self.found.spent

    @property
    def values(self) -> Tensor:
        """Values of all queries of the search in order, [n]."""
        return self.found.values

    @property
    def warnings(self) -> tuple[str, ...]:
        """What looks wrong, a sentence each."""
        return self.found.warnings

    def shifted(self, outputs: Any, groups: object = None) -> Any:
        """Return outputs [N, ...] with the offsets, in the same form.

        Probabilities stay probabilities. Arrays of numpy come back as arrays, values of
        half precision as float32. Groups [N] are needed where these have offsets of
        their own, and only there.

        Raises:
            ConfigError: if groups are needed and missing, or the other way round.
            DataError: if there is another number of groups, or a new one, or outputs
                are not finite, or cannot be probabilities, logarithms of them or
                amounts, where those were given to `tune`.
            ShapeError: if they are not of the form they were when offsets were chosen.
        """
        moved = self._moved(self._read(outputs), groups)
        back = self.found.meaning.outward(moved)
        assert isinstance(back, Tensor)
        return _as_given(back, outputs)

    def predict(self, outputs: Any, groups: object = None) -> Any:
        """Return the decisions of shifted outputs [N, C], int64 labels [N].

        Several labels of one example are decided one by one, [N, K]. A tie, such as a
        probability of .5, is class 0. Predicted values are returned as `shifted` does.

        Raises:
            ConfigError, DataError, ShapeError: as `shifted`.
        """
        meaning = self.found.meaning
        if meaning.truth not in ("labels", "multi-label"):
            return self.shifted(outputs, groups)
        logits = self._moved(self._read(outputs), groups)
        if meaning.truth == "multi-label":
            return _as_given((logits > 0).long(), outputs)
        one = logits.shape[1] == 1
        decided = (logits[:, 0] > 0).long() if one else logits.argmax(1)
        return _as_given(decided, outputs)

    def summary(self) -> str:
        """Return a few plain lines: what was gained, and what was spent for it."""
        judged = f"on {self.found.examples:,} examples"
        text = self.found.summary().replace(OBSERVED, judged)
        if self.searched == self.examples:
            return text
        return f"{text}\nThe search saw {self.searched:,} of the examples."

    def plot(self) -> "Figure":
        """Return a figure of the queries, see `Finetuned.plot`."""
        return self.found.plot()

    def __repr__(self) -> str:
        """Return the summary: arrays of all queries would fill the screen."""
        return self.summary()

    def _repr_html_(self) -> str:
        """Return the summary and the figure for a notebook."""
        return self.found._repr_html_()

    def _read(self, outputs: Any) -> Tensor:
        given = as_tensor(outputs)
        meaning, count = self.found.meaning, self.offsets.shape[-1]
        axis = -1 if meaning.layout == "tokens" else 1
        fits = given is not None and (
            given.ndim == 1
            if meaning.flat
            else given.ndim > 1 and given.shape[axis] == count
        )
        if given is None or not fits:
            form = "[N]" if meaning.flat else f"[N, {count}]"
            got = described(outputs if given is None else given)
            raise ShapeError(f"outputs must be {form}, got {got}")
        require_finite("outputs", given)
        _require_kind(given, meaning.link, axis)
        if meaning.kind == "amounts" and bool((given < 0).any()):
            raise DataError(
                "outputs must be amounts of 0 or more, as those the offsets were "
                f"chosen on, got {range_of(given)}"
            )
        # Offsets are no whole numbers, even where predictions are.
        given = given if given.is_floating_point() else given.double()
        if meaning.truth == "numbers":
            given = given.to(torch.promote_types(given.dtype, torch.float32))
        return given[:, None] if meaning.flat else given

    @torch.no_grad()
    def _moved(self, given: Tensor, groups: object) -> Tensor:
        """Return logits or values in the form of methods, [N, C, ...], shifted."""
        if (groups is None) != (self.groups is None):
            raise ConfigError(
                "these offsets are the same for all groups: leave groups out"
                if self.groups is None
                else f"offsets differ by {self.groups.column!r}: pass groups=, the "
                "group of each example"
            )
        inputs: Inputs = given
        if self.groups is not None:
            inputs = given, self.groups.places(groups, len(given)).to(given.device)
        adapter = self.found.adapter
        phi = self.found.phi[None].to(given.device)
        predicted = adapter.predict(adapter.encode(inputs), phi)
        moved = self.found.meaning.inward(predicted, leading=2)
        assert isinstance(moved, Tensor)
        return moved[0]


def _require_kind(given: Tensor, link: str | None, axis: int) -> None:
    """Raise DataError if outputs cannot be what a link returns."""
    if link is None:
        return
    logarithms, single = link == "log-softmax", link != "sigmoid"
    shares = given.exp() if logarithms else given
    if are_shares(shares, axis, LATER) if single else are_within_unit(shares):
        return
    form = "logarithms of probabilities" if logarithms else "probabilities in [0, 1]"
    got = range_of(given)
    if single:
        sums = shares.sum(axis)
        form += " that sum to 1"
        got += f" with the sums {range_of(sums)}"
    raise DataError(
        f"outputs must be {form}, as those the offsets were chosen on, got {got}"
    )


def _as_given(found: Tensor, given: object) -> Any:
    return found if isinstance(given, Tensor) else found.cpu().numpy()

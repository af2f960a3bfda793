"""What `finetune` returns: a small phi, what it gained, and what that cost."""

import base64
import html
import io
import math
import os
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from metricopt.adapters.applied.agreement import check_merged
from metricopt.adapters.applied.changed import is_changed
from metricopt.adapters.base import NetworkAdapter
from metricopt.adapters.export import changed_entries, save_phi
from metricopt.errors import ConfigError, require_whole
from metricopt.estimate import INTERVAL, Estimate
from metricopt.figures import Curves, DrawnFront, draw
from metricopt.methods.attempts import Attempt, Obvious
from metricopt.methods.bounds import BoundReport, Front
from metricopt.methods.known import Known
from metricopt.methods.result import Checkpoint, Evidence
from metricopt.metrics.base import Metric, from_cost
from metricopt.reading.inputs import Inputs
from metricopt.reading.meaning import PLAIN, Meaning

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANGED = (
    "phi was chosen for other weights than the network has now, which differ in {}: "
    "put those back, or call finetune again"
)
"""Message about weights that changed since `finetune`."""
FROM_FRONT = "phi is point {} of the front: its values are predicted, not observed."


@dataclass(frozen=True)
class Spent:
    """What one call of `finetune` spent.

    Attributes:
        queries: metric queries on the observe split, including meta-training, the
            untouched network and the chosen phi.
        gradient_steps: steps of the fine-tuning that ended at phi, without those of
            meta-training and of fine-tunings that only made candidates.
        seconds: wall-clock time of the whole call.
        replayed: queries answered from the checkpoint file.
    """

    queries: int
    gradient_steps: int
    seconds: float
    replayed: int = 0


@dataclass(frozen=True, repr=False)
class Finetuned:
    """A frozen network with the adapter parameters found for a metric.

    The network itself is as it was, until `apply`.

    Attributes:
        adapter: the adapter of the network.
        phi: chosen adapter parameters, shape [d], on the device of the network; zero
            if the proposal was worse on observe, or if there is no evidence that it is
            better elsewhere. Where none was asked for, it has to be better on observe.
        metric: the metric to improve.
        metric_before: metric of the untouched network on observe, native units.
        metric_after: metric of phi on observe, native units; never worse than
            `metric_before`.
        metric_proposed: metric of the method's proposal, native units; worse than
            `metric_before` if the proposal was turned down.
        method: name of the method.
        spent: queries, steps and seconds.
        history: states the method passed through, with their costs in [0, 1].
        notes: further figures of the method.
        health: whether to trust the value function of phi, and why; None if the method
            has none, or its budget is too small for the check.
        evidence: for phi, or against any other than 0; None if nobody asked for it.
        values: values of all queries of the whole observe split in order, native units,
            [n].
        confusion: counts of labels by predictions on observe, before and after, shape
            [K, K] each; None where targets are no labels, or phi is of the front.
        warnings: what is wrong with the metric, if anything, a sentence each.
        known: what was learned of the metric, for calls of `finetune` on other
            networks; None from methods that learn nothing, or nothing alone.
        meaning: how outputs and targets were read.
        theta: fingerprints of the weights that phi was chosen for, by their names;
            empty if not known.
        kind: in what later data are to be like observe, in words: shares of classes
            that differ from train, and clusters that are new; "" for nothing.
        few: inputs of a few examples, on which `merge` is checked.
        bounds: what became of every bound, in the order they were given.
        met: whether each of `values` meets all bounds, [n].
        front: what can be had of the metric and the bounded ones; None without bounds,
            or where they are no function of known statistics.
        is_worse: whether the proposal was worse, bounds included; None without bounds.
        attempts: what the method tried that anybody would try by hand.
        examples: number of examples that `metric_before` and `metric_after` are of.
    """

    adapter: NetworkAdapter
    phi: Tensor
    metric: Metric
    metric_before: float
    metric_after: float
    metric_proposed: float
    method: str
    spent: Spent
    history: tuple[Checkpoint, ...] = ()
    notes: dict[str, float] = field(default_factory=dict)
    health: str | None = None
    evidence: Evidence | None = None
    values: Tensor = field(default_factory=lambda: torch.empty(0))
    confusion: tuple[Tensor, Tensor] | None = None
    warnings: tuple[str, ...] = ()
    known: Known | None = None
    meaning: Meaning = PLAIN
    theta: Mapping[str, str] = field(default_factory=dict)
    kind: str = ""
    few: Inputs | None = None
    bounds: tuple[BoundReport, ...] = ()
    met: Tensor = field(default_factory=lambda: torch.empty(0, dtype=torch.bool))
    front: Front | None = None
    is_worse: bool | None = None
    attempts: tuple[Attempt, ...] = ()
    examples: int = 0

    @property
    def obvious(self) -> tuple[Obvious, ...]:
        """How the obvious did on observe, by the best of every kind that was tried."""
        return tuple(
            Obvious(
                attempt.name,
                self._native(attempt.cost),
                attempt.observed,
                taken=torch.equal(attempt.phi.to(self.phi), self.phi),
            )
            for attempt in self.attempts
        )

    @property
    def feasible(self) -> dict[str, float | None]:
        """How probably each bound is met on other data, by its name."""
        return {bound.name: bound.probability for bound in self.bounds}

    def at(self, place: int) -> "Finetuned":
        """Return the same with phi of a point of the front instead.

        What is known of it is `front.values[place]`, predicted: it was not queried.

        Raises:
            ConfigError: if there is no such point.
        """
        points = 0 if self.front is None else len(self.front.phi)
        place = require_whole("a point of the front", place)
        if self.front is None or not -points <= place < points:
            raise ConfigError(f"the front has {points} points, so no point {place}")
        device = self.phi.device
        phi, values = self.front.phi[place].to(device), self.front.values[place]
        known = dict(zip(self.front.names, values.tolist(), strict=True))
        bounds = tuple(
            replace(bound, after=known.get(bound.metric, math.nan), probability=None)
            for bound in self.bounds
        )
        value = values[0].item()
        return replace(
            self,
            phi=phi,
            metric_after=value,
            metric_proposed=value,
            evidence=Evidence(FROM_FRONT.format(place % points)),
            confusion=None,
            bounds=bounds,
            is_worse=False,
        )

    @property
    def turned_down(self) -> bool:
        """Whether the method's proposal was worse than the untouched network."""
        if self.is_worse is not None:
            return self.is_worse
        gain = self.metric_proposed - self.metric_before
        return gain < 0 if self.metric.higher_is_better else gain > 0

    @property
    def expected(self) -> Estimate | None:
        """What is expected to be gained elsewhere; None where it is not known.

        Where the metric was identified, phi is fitted without each fold of the observe
        split and judged on it; the interval is that of the bootstrap over these
        examples. Where phi was checked by queries of parts of the observe split, it is
        what these gained, and the interval is Student's.
        """
        found = self.evidence
        if found is None or not self.phi.any():
            return None
        unit = self.metric.high - self.metric.low
        if found.seen is not None:
            return found.seen.estimate(unit)
        if found.gain is None or found.error is None:
            return None
        gain, wide = unit * found.gain, unit * INTERVAL * found.error
        return Estimate(gain, gain - wide, gain + wide)

    def apply(self) -> nn.Module:
        """Modulate the network by phi in place, until `remove`, and return it.

        It works in evaluation mode, as it was judged. Calls of `forward` and of its
        modules, code compiled before, and deep copies are modulated, too; `remove` does
        not reach the copies. Weights that changed since `finetune` are warned of.

        Raises:
            ConfigError: if another result is applied to the network.
        """
        self._require_own()
        if changed := self._changed():
            warnings.warn(CHANGED.format(changed), UserWarning, stacklevel=2)
        self.adapter.attach(self.phi)
        return self.adapter.network

    def remove(self) -> nn.Module:
        """Restore the network to what it was before `apply`, and return it.

        Raises:
            ConfigError: if another result is applied to the network.
        """
        self._require_own()
        self.adapter.detach()
        return self.adapter.network

    def merge(self) -> nn.Module:
        """Return a plain copy of the network that predicts with phi, without hooks.

        phi goes into the weights of layers, of which some get a bias; where they cannot
        take it, a small module follows. The copy is in evaluation mode, can be pickled
        and exported if the network can, and this network stays as it is. Weights that
        changed since `finetune` are warned of.

        Raises:
            ConfigError: if another result is applied to the network, or the copy does
                not give the outputs that phi was chosen by.
        """
        self._require_own()
        if changed := self._changed():
            warnings.warn(CHANGED.format(changed), UserWarning, stacklevel=2)
        merged = self.adapter.merged(self.phi)
        if self.few is not None:
            check_merged(self.adapter, merged, self.phi, self.few)
        return merged

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write phi as a safetensors file that names its adapter and network.

        To use it elsewhere, make the same adapter on a network with the same weights,
        and call `adapter.attach(load_phi(path, adapter))`. An `auto_adapter` needs
        `offsets=meaning` where outputs are not logits [N, C].

        Raises:
            ConfigError: if weights changed since `finetune`.
        """
        if changed := self._changed():
            raise ConfigError(CHANGED.format(changed))
        save_phi(path, self.phi, self.adapter)

    def summary(self) -> str:
        """Return a few plain lines: what was gained, and what was spent for it."""
        steps = self.spent.gradient_steps
        lines = [
            f"{self.metric.name} on the observe split: {self.metric_before:.4g} -> "
            f"{self.metric_after:.4g} ({self.metric.direction} is better) with "
            f"{self.spent.queries} metric queries"
            f"{f' and {steps} gradient steps' if steps else ''} in "
            f"{self.spent.seconds:.1f} s ({self.method})."
        ]
        if self.turned_down:
            lines.append(
                f"The proposal of {self.method} scored {self.metric_proposed:.4g}, "
                "worse than the untouched network, which was kept: phi = 0."
            )
        elif self.evidence is None and math.isclose(
            self.metric_before, self.metric_after, rel_tol=1e-9
        ):
            lines.append("Nothing was gained on this split.")
        if self.evidence is not None:
            lines.append(self.evidence.reason)
        if self.attempts:
            tried = ", ".join(each.describe() for each in self.obvious)
            lines.append(f"Obvious: {tried}; chosen {self.metric_after:.4g}.")
        lines += [bound.describe() for bound in self.bounds]
        lines.append(self.meaning.describe())
        if self.health:
            lines.append(f"Value function: {self.health}")
        lines += [f"Warning: {each}" for each in self.warnings]
        return "\n".join([*lines, *self._elsewhere()])

    def _elsewhere(self) -> list[str]:
        """Return what the summary says of other data."""
        found = self.expected
        if found is None:
            return ["phi was chosen on the observe split: judge it on other data."]
        unsure = found.low <= 0 <= found.high and not self.bounds
        said = "phi is moved although this interval holds 0"
        if found.is_of_choice:
            lines = [
                f"On parts of the observe split {self.metric.name} is "
                f"{found.describe()}. These examples have chosen phi, too: expect less "
                "on other data."
            ]
            return [*lines, f"{said}."] if unsure else lines
        kind = f", with {self.kind}," if self.kind else ""
        lines = [
            f"On other data of this kind{kind} {self.metric.name} is expected to be "
            f"{found.describe(bounded=bool(self.bounds))}."
        ]
        asks = "level=1.96 asks for a significant gain"
        return [*lines, f"{said}; {asks}."] if unsure else lines

    def plot(self) -> "Figure":
        """Return a figure: all queries, predictions, and predictions of each class."""
        trials = () if self.evidence is None else self.evidence.trials
        return draw(
            Curves(
                f"{self.metric.name} ({self.metric.direction} is better)",
                self.values,
                self._best_so_far,
                self.metric_after,
                [(self._native(one), self._native(two)) for one, two in trials],
                self.confusion,
                met=self.met if self.bounds else None,
                front=self._drawn_front,
            )
        )

    @property
    def _best_so_far(self) -> Tensor:
        """Best value of all queries that met the bounds, [n]; NaN before the first."""
        higher = self.metric.higher_is_better
        if not self.bounds:
            return (self.values.cummax(0) if higher else self.values.cummin(0)).values
        worst = -math.inf if higher else math.inf
        within = self.values.masked_fill(~self.met, worst)
        best = (within.cummax(0) if higher else within.cummin(0)).values
        return best.masked_fill(best.isinf(), math.nan)

    @property
    def _drawn_front(self) -> DrawnFront | None:
        """The front for the figure: the objective against the first bounded metric."""
        if self.front is None or self.front.values.shape[1] < 2:
            return None
        name = self.front.names[1]
        bound = next(bound for bound in self.bounds if bound.metric == name)
        returned = bound.after, self.metric_after
        points = self.front.values[:, [1, 0]].tolist()
        return DrawnFront(name, points, bound.value, returned)

    def __repr__(self) -> str:
        """Return the summary: arrays of all queries would fill the screen."""
        return self.summary()

    def _repr_html_(self) -> str:
        """Return the summary and the figure for a notebook."""
        lines = "<br>".join(map(html.escape, self.summary().split("\n")))
        stream = io.BytesIO()
        try:
            self.plot().savefig(stream, format="png", dpi=90)
        except ImportError:  # matplotlib is optional
            return f"<p>{lines}</p>"
        image = base64.b64encode(stream.getvalue()).decode()
        return f'<p>{lines}</p><img src="data:image/png;base64,{image}">'

    def _require_own(self) -> None:
        """Refuse to work on a network that another result is applied to."""
        attached = self.adapter.attached
        other = attached is None and is_changed(self.adapter.network)
        if other or (attached is not None and attached is not self.phi):
            raise ConfigError(
                "another result is applied to this network: call remove() of that one "
                "first"
            )

    def _changed(self) -> str:
        """Return which weights are others than phi was chosen for; "" for none."""
        if not self.theta:
            return ""
        with self.adapter.detached():
            return changed_entries(self.adapter.network, self.theta)

    def _native(self, cost: float) -> float:
        """Return a predicted cost in native units, among the values there can be."""
        native = from_cost(self.metric, torch.tensor(cost, dtype=torch.float64)).item()
        known = [self.metric.low, self.metric.high, *self.values.tolist()]
        return float(min(max(native, min(known)), max(known)))

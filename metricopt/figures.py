"""The figure of a result: queries, predictions, and what changed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DARK = 0.6
"""Share of the greatest change from which a cell is dark."""
LABELLED = 12
"""Most classes whose cells are labelled with their shares."""


@dataclass(frozen=True)
class DrawnFront:
    """What the figure of a front shows.

    Attributes:
        metric: name of the bounded metric.
        points: bounded metric and objective of every point.
        bound: the bound.
        returned: bounded metric and objective of what is returned.
    """

    metric: str
    points: Sequence[Sequence[float]]
    bound: float
    returned: tuple[float, float]


@dataclass(frozen=True)
class Curves:
    """What the figure of a result shows.

    Attributes:
        metric: name of the metric, with its direction.
        values: values of all queries in order, native units, shape [n].
        best: best value of all queries so far, shape [n].
        returned: value of what is returned.
        trials: predicted and observed value of every query that was predicted, in
            native units.
        confusion: counts of labels by predictions, before and after, [K, K] each; None
            where there are no labels.
        met: whether each query met all bounds, shape [n]; None without bounds.
        front: the Pareto front; None without bounds.
    """

    metric: str
    values: Tensor
    best: Tensor
    returned: float
    trials: Sequence[tuple[float, float]]
    confusion: tuple[Tensor, Tensor] | None
    met: Tensor | None = None
    front: DrawnFront | None = None


def draw(curves: Curves) -> "Figure":
    """Return the figure: a panel for each of the four that there is anything of."""
    from matplotlib.figure import Figure

    drawn = [_draw_queries]
    if curves.trials:
        drawn.append(_draw_trials)
    if curves.front is not None:
        drawn.append(_draw_front)
    if curves.confusion is not None:
        drawn.append(_draw_confusion)
    figure = Figure(figsize=(4.2 * len(drawn), 3.6), layout="constrained")
    panels = figure.subplots(1, len(drawn), squeeze=False)[0]
    for panel, fill in zip(panels, drawn, strict=True):
        fill(panel, curves)
    return figure


def _draw_queries(panel: "Axes", curves: Curves) -> None:
    queries = range(1, len(curves.values) + 1)
    met = torch.ones(len(queries)).bool() if curves.met is None else curves.met
    for marker, kept, label in ((".", met, "queried"), ("x", ~met, "beyond a bound")):
        values = curves.values.masked_fill(~kept, torch.nan).tolist()
        if kept.any():
            panel.plot(queries, values, marker, color="0.65", label=label)
    panel.step(
        queries, curves.best.tolist(), where="post", color="C0", label="best so far"
    )
    panel.axhline(curves.returned, color="C1", linestyle="--", label="returned")
    panel.set_xlabel("metric queries")
    panel.set_ylabel(curves.metric)
    panel.set_title("Queries on the observe split")
    panel.legend()


def _draw_trials(panel: "Axes", curves: Curves) -> None:
    predicted, observed = zip(*curves.trials, strict=True)
    ends = [min(*predicted, *observed), max(*predicted, *observed)]
    panel.plot(ends, ends, color="0.65", linewidth=1)
    shades = torch.linspace(0.25, 1, len(predicted)).tolist()
    for place, (guess, truth) in enumerate(curves.trials):
        panel.plot(guess, truth, "o", color="C0", alpha=shades[place])
    panel.set_xlabel(f"predicted {curves.metric}")
    panel.set_ylabel("observed")
    panel.set_title("Predictions, the last ones darkest")


def _draw_front(panel: "Axes", curves: Curves) -> None:
    front = curves.front
    assert front is not None
    panel.plot(*zip(*front.points, strict=True), ".-", color="C0", label="predicted")
    panel.plot(*front.returned, "o", color="C1", label="returned")
    panel.axvline(front.bound, color="0.65", linestyle="--", label="bound")
    panel.set_xlabel(front.metric)
    panel.set_ylabel(curves.metric)
    panel.set_title("Pareto front on the observe split")
    panel.legend()


def _draw_confusion(panel: "Axes", curves: Curves) -> None:
    assert curves.confusion is not None
    before, after = (
        counts / counts.sum(1, keepdim=True).clamp_min(1)
        for counts in (part.float() for part in curves.confusion)
    )
    change = after - before
    limit = max(change.abs().max().item(), 1e-3)
    image = panel.imshow(change.numpy(), cmap="PuOr_r", vmin=-limit, vmax=limit)
    classes = len(change)
    if classes <= LABELLED:
        for row in range(classes):
            for column in range(classes):
                text = f"{100 * after[row, column]:.0f}"
                dark = change[row, column].abs() > DARK * limit
                style: dict[str, Any] = {"color": "white" if dark else "black"}
                panel.text(column, row, text, ha="center", va="center", size=7, **style)
        panel.set_xticks(range(classes))
        panel.set_yticks(range(classes))
    panel.figure.colorbar(image, ax=panel, label="change of the share")
    panel.set_xlabel("predicted class")
    panel.set_ylabel("class")
    panel.set_title("Predictions of each class after, in %")

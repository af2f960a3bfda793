"""Reward, entropy and actions of ALA's policy, decision by decision."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report import stats
from benchmarks.report.figures.parts.looks import arm_styles
from benchmarks.report.figures.parts.panels import finish, make_single_panel
from benchmarks.report.layout import Block, TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES = {
    "rewards": "mean reward",
    "entropies": "entropy, in nats",
    "lowered": "pairs lowered, share",
    "raised": "pairs raised, share",
}
"""Notes with a number a decision, and their axes."""
SMOOTHED = 10
"""Decisions that a moving mean is over."""


def policy_course(
    layout: TableLayout, records: Sequence[RunRecord], block: Block
) -> "Figure | None":
    """Draw what policies did: moving means over decisions, and over replicates."""
    own = [record for record in records if record.spec.block == block.name]
    found: dict[str, list[RunRecord]] = {}
    for row in layout.rows:
        runs = [r for r in own if r.spec.row == row.name and r.notes.get("rewards")]
        if runs:
            found[row.label] = runs
    if not found:
        return None
    figure, panel = make_single_panel()
    panel.remove()
    styles = arm_styles(layout)
    for place, (name, axis) in enumerate(LINES.items(), 1):
        panel = figure.add_subplot(2, 2, place)
        panel.grid(alpha=0.25, linewidth=0.5)
        panel.spines[["top", "right"]].set_visible(False)
        for label, runs in found.items():
            line = _smoothed([run.notes[name] for run in runs])
            colour, dash, _ = styles[label]
            panel.plot(line, color=colour, linestyle=dash, label=label)
        panel.set_ylabel(axis)
        if place > 2:
            panel.set_xlabel("decisions of the policy")
    what = f"the policy in training\nmoving means over {SMOOTHED} decisions"
    return finish(figure, layout, block, what)


def _smoothed(lines: Sequence[Sequence[float]]) -> list[float]:
    """Return the moving mean of the mean over several lines."""
    mean = [stats.mean(values) or 0.0 for values in zip(*lines, strict=False)]
    parts = (mean[max(0, at - SMOOTHED) : at] for at in range(1, len(mean) + 1))
    return [stats.mean(part) or 0.0 for part in parts]

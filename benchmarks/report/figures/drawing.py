"""Records to figures: pure functions, deterministic, colour-blind safe.

Each kind takes the layout of an experiment, all its records and the block to draw. It
returns a matplotlib figure with one panel per column that has something to show, or
None if no column has. Only finished runs are drawn.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.figures.ablations import ablation_rows, ablation_scatter
from benchmarks.report.figures.first_look import first_look
from benchmarks.report.figures.gains import gain_over_mismatch, gain_over_size
from benchmarks.report.figures.pictures import detections, neighbours
from benchmarks.report.figures.query_curves import (
    cost_curves,
    queries_to_reach,
    query_curves,
)
from benchmarks.report.figures.training import (
    loss_matrices,
    metric_over_queries,
    metric_over_seconds,
    policy_course,
    training_course,
)
from benchmarks.report.figures.value_functions import (
    embedding_tsne,
    loss_and_metric,
    predicted_against_true,
)
from benchmarks.report.layout import TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (
    first_look,
    cost_curves,
    query_curves,
    queries_to_reach,
    loss_and_metric,
    predicted_against_true,
    embedding_tsne,
    ablation_scatter,
    ablation_rows,
    gain_over_mismatch,
    neighbours,
    detections,
    metric_over_seconds,
    metric_over_queries,
    training_course,
    loss_matrices,
    policy_course,
)
"""Kinds of figures in the order of a page; files are named after them."""
OF_ALL_BLOCKS = (gain_over_size,)
"""Kinds of which there is one figure for all blocks; they take no block."""


def draw_all(layout: TableLayout, records: Sequence[RunRecord]) -> "dict[str, Figure]":
    """Return every figure there is something for, by name `<kind>-<block>`.

    A figure of all blocks has the name of its kind.
    """
    figures = {}
    for draw in KINDS:
        for block in layout.blocks:
            figure = draw(layout, records, block)
            if figure is not None:
                figures[f"{draw.__name__}-{block.name}"] = figure
    for draw_all_blocks in OF_ALL_BLOCKS:
        figure = draw_all_blocks(layout, records)
        if figure is not None:
            figures[draw_all_blocks.__name__] = figure
    return figures

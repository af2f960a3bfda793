"""Records to figures: pure functions, deterministic, colour-blind safe.

Each kind takes the layout of an experiment, all its records and the block to draw. It
returns a matplotlib figure with one panel per column that has something to show, or
None if no column has. Only finished runs are drawn.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.figures.ablation_rows import ablation_rows
from benchmarks.report.figures.ablation_scatter import ablation_scatter
from benchmarks.report.figures.cost_curves import cost_curves
from benchmarks.report.figures.detections import detections
from benchmarks.report.figures.embedding_tsne import embedding_tsne
from benchmarks.report.figures.first_look import first_look
from benchmarks.report.figures.gain_over_mismatch import gain_over_mismatch
from benchmarks.report.figures.gain_over_size import gain_over_size
from benchmarks.report.figures.loss_and_metric import loss_and_metric
from benchmarks.report.figures.neighbours import neighbours
from benchmarks.report.figures.predicted_against_true import predicted_against_true
from benchmarks.report.figures.queries_to_reach import queries_to_reach
from benchmarks.report.figures.query_curves import query_curves
from benchmarks.report.figures.training.error_over_cost import (
    metric_over_queries,
    metric_over_seconds,
)
from benchmarks.report.figures.training.loss_matrices import loss_matrices
from benchmarks.report.figures.training.policy_course import policy_course
from benchmarks.report.figures.training.training_course import training_course
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

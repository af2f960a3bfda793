"""Records to figures: pure functions, deterministic, colour-blind safe.

Each kind takes the layout of an experiment, all its records and the block to draw. It
returns a matplotlib figure with one panel per column that has something to show, or
None if no column has. Only finished runs are drawn.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from benchmarks.report.figures import (
    ablations,
    adaptation,
    claims,
    first_look,
    gains,
    loss_surfaces,
    over_columns,
    pictures,
    query_curves,
    rankings,
    slopes,
    structured,
    surfaces,
    task_errors,
    training,
    value_functions,
)
from benchmarks.report.layout import TableLayout
from benchmarks.runs.record import RunRecord

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS = (
    first_look.first_look,
    query_curves.cost_curves,
    query_curves.query_curves,
    query_curves.queries_to_reach,
    value_functions.loss_and_metric,
    value_functions.predicted_against_true,
    value_functions.embedding_tsne,
    ablations.ablation_scatter,
    ablations.ablation_rows,
    gains.gain_over_mismatch,
    pictures.neighbours,
    pictures.detections,
    training.metric_over_seconds,
    training.metric_over_queries,
    training.training_course,
    training.optimization_and_generalization,
    loss_surfaces.surface_curvature,
    loss_surfaces.loss_surfaces,
    training.loss_matrices,
    training.loss_weights,
    training.policy_course,
    slopes.loss_slopes,
    rankings.loss_over_metric,
    structured.skeletons,
    adaptation.adaptation,
    task_errors.task_errors,
    surfaces.surfaces,
    surfaces.paths_to_solutions,
)
"""Kinds of figures in the order of a page; files are named after them."""


def draw_all(layout: TableLayout, records: Sequence[RunRecord]) -> "dict[str, Figure]":
    """Return every figure there is something for, by name `<kind>-<block>`.

    The figure of all blocks has the name of its kind.
    """
    found = {
        f"{draw.__name__}-{block.name}": draw(layout, records, block)
        for draw in KINDS
        for block in layout.blocks
    }
    found["gain_over_size"] = gains.gain_over_size(layout, records)
    found["regret_over_queries"] = over_columns.regret_over_queries(layout, records)
    found["claims"] = claims.claims(layout, records)
    return {name: figure for name, figure in found.items() if figure is not None}

"""A layout and records that give a page with every kind of section."""

import dataclasses

from tests.benchmarks.report import report_cases
from tests.benchmarks.report.report_cases import make_arm, make_record

BLOCK = report_cases.LAYOUT.blocks[0]
LAYOUT = dataclasses.replace(
    report_cases.LAYOUT, ablation_rows=("metricopt", "metricopt-q50")
)


def _trace(final):
    return [(t, 5 * t, [final], [0.3 - t * final]) for t in range(3)]


def _notes(shift):
    return {
        "spearman_loss": [0.9, 0.8],
        "spearman_guided": 0.6,
        "health_true": [0.1, 0.2, None],
        "health_predicted": [0.1 + shift, 0.3, 0.4],
        "embedding_x": [0.0, 1.0, 2.0],
        "embedding_y": [shift, 1.0, 0.0],
        "embedding_cost": [0.1, 0.2, 0.3],
        "value_error_guided": shift,
    }


RECORDS = [
    *make_arm("loss-only", [0.20, 0.22, 0.21], trace=_trace(0.01)),
    *make_arm("shift", [0.15, 0.16, 0.155], seconds={"search": 1.5}),
    *make_arm("metricopt", [0.161, 0.179, 0.170], trace=_trace(0.02), notes=_notes(0)),
    *make_arm("metricopt-q50", [0.17, 0.18, 0.175], queries=50, notes=_notes(0.1)),
    make_record("shift", 3, [], status="diverged", message="the loss was\nnan at 7"),
]

"""Hand-written specs and records, without a problem that could be run."""

from benchmarks.runs.record import RunRecord, TracePoint
from benchmarks.runs.spec import Arm, RunSpec, Unit


def make_spec(row="cma-es", replicate=2, *, column="a9a/f1", **fields):
    """A spec, by default of the metric its column names."""
    usual = {
        "experiment": "table3",
        "tier": "smoke",
        "block": "balanced",
        "pipeline": Unit("tabular", {"b": 1, "a": [2]}),
        "metric": Unit(column.rpartition("/")[2]),
        "arm": Arm("method", row),
    }
    place = {"row": row, "column": column, "replicate": replicate}
    return RunSpec(**usual | place | fields)


def make_record(spec, found=(0.5,), **fields):
    """A done record whose metric is the same on observe and test."""
    values = {spec.metric.label: found} if found else {}
    fields = {"status": "done", "observe": values, "test": values} | fields
    return RunRecord(spec, **fields)


def make_trace(metric, *entries):
    """A trace of entries (step, queries, observe or None, test)."""
    return tuple(
        TracePoint(
            step, queries, {} if seen is None else {metric: seen}, {metric: test}
        )
        for step, queries, seen, test in entries
    )

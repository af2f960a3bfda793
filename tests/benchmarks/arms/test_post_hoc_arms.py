"""Arms that move the decision of the untouched network."""

import math

from benchmarks.runs.spec import Arm
from tests.benchmarks.arms.arm_cases import assert_values, record_of
from tests.benchmarks.pipelines.pipeline_cases import make_spec, method_spec


def test_threshold_shift_is_the_best_of_all_thresholds():
    record = record_of(make_spec(Arm("threshold-shift")))
    untouched = record_of(method_spec("untouched"))
    assert_values(record.values("observe"), 1)
    assert_values(record.values("test"), 1)
    # One query more than there are examples to observe.
    assert record.queries <= 57 + 1
    assert record.queried == {"observe": record.queries}
    assert record.values("observe")[0] >= untouched.values("observe")[0]
    assert math.isfinite(record.notes["threshold"])

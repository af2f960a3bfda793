"""Shards: disjoint, balanced, the same whoever asks."""

import random
from itertools import pairwise

import pytest

from benchmarks.execution.planned import planned_seconds
from benchmarks.execution.runner import in_groups
from benchmarks.execution.shards import shards_of
from benchmarks.tables.registry import find_experiment
from tests.benchmarks.runs.record_cases import make_record, make_spec


@pytest.fixture(scope="module")
def specs():
    return find_experiment("table3").specs("smoke", 2, offline=True)


def lengths_of(specs):
    draws = random.Random(3)
    return {spec.digest: draws.expovariate(1) for spec in specs}


@pytest.mark.parametrize("count", [1, 2, 3, 7, 64, 500])
def test_every_run_is_in_one_shard_and_shards_take_equally_long(specs, count):
    seconds = lengths_of(specs)
    shards = shards_of(specs, count, seconds)
    cells = sorted(spec.cell for shard in shards for spec in shard)
    assert cells == sorted(spec.cell for spec in specs)
    loads = [sum(seconds[spec.digest] for spec in shard) for shard in shards]
    longest = max(seconds.values())
    assert max(loads) <= sum(loads) / count + longest
    assert min(loads) >= sum(loads) / count - longest


def test_shards_are_the_same_in_whatever_order_runs_are_named(specs):
    seconds = lengths_of(specs)
    mixed = random.Random(1).sample(specs, len(specs))
    assert shards_of(mixed, 5, seconds) == shards_of(specs, 5, seconds)
    assert shards_of(specs, 5, {}) != shards_of(specs, 5, seconds)


def test_a_cut_parts_few_runs_that_share_a_pipeline(specs):
    shards = shards_of(specs, 4, lengths_of(specs))
    place = {spec.digest: n for n, shard in enumerate(shards) for spec in shard}
    groups = in_groups(specs)
    parted = [g for g in groups if len({place[spec.digest] for spec in g}) > 1]
    assert len(groups) == 8 and len(parted) <= 3
    for group in groups:
        numbers = [place[spec.digest] for spec in group]
        assert all(one <= next for one, next in pairwise(numbers))


def test_a_run_is_planned_by_the_nearest_records():
    def record(row, seconds, **place):
        return make_record(make_spec(row, 0, **place), seconds={"total": seconds})

    records = [
        record("a", 1.0),
        record("a", 3.0, block="other"),
        record("a", 5.0, column="b/f1"),
        record("b", 9.0, column="b/f1", experiment="table1", tier="local"),
        make_record(make_spec("a", 0), status="failed", seconds={}),
    ]
    wanted = [
        make_spec("a", 7),
        make_spec("a", 7, block="new"),
        make_spec("a", 7, column="new/f1"),
        make_spec("b", 7),
        make_spec("c", 7),
    ]
    found = planned_seconds(wanted, records)
    assert [found.get(s.digest) for s in wanted] == [1.0, 2.0, 3.0, 9.0, None]
    # A run without a plan counts as the mean of the others, 3.75.
    assert [len(shard) for shard in shards_of(wanted, 2, found)] == [3, 2]
    assert [len(shard) for shard in shards_of(wanted, 2, {})] == [2, 3]

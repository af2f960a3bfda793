"""The arm of Fairlearn's thresholds, on outputs with groups beside them."""

from functools import cached_property

import pytest
import torch
from fairlearn.metrics import equalized_odds_difference

from benchmarks.arms.contract import run_arm
from benchmarks.problems.choices import Adapted
from benchmarks.problems.network_pipeline import NetworkPipeline
from benchmarks.problems.splits import Splits
from benchmarks.runs.spec import Arm
from metricopt.adapters.group_offsets import GroupOffsets, ShiftedByGroup
from metricopt.errors import ConfigError
from metricopt.process.seeding import Seeds
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import NaturalSampler, Split
from tests.baselines.post_hoc.fitted import high_digits
from tests.benchmarks.arms.arm_cases import record_of
from tests.benchmarks.problems.pipeline_cases import make_spec

SPEC = make_spec(Arm("fairlearn-thresholds"), metric="mcr")


class ByGroup(NetworkPipeline):
    """Known logits with the group of every example, as inputs of an identity."""

    loss = torch.nn.BCEWithLogitsLoss()
    network_start = batches = training = None

    @property
    def seeds(self):
        return Seeds("by group", self.replicate)

    @cached_property
    def splits(self):
        outputs, targets, groups = high_digits()
        observe, test = (
            Split((outputs[part], groups[part]), targets[part], {"group": groups[part]})
            for part in (slice(0, None, 2), slice(1, None, 2))
        )
        return Splits(observe, observe, test, "known", "none", 2)

    @cached_property
    def adapter(self):
        network = ShiftedByGroup(torch.nn.Identity(), groups=3, outputs=1)
        return GroupOffsets(network)

    @property
    def sampler(self):
        return NaturalSampler(len(self.splits.train), 16)


def gap(outputs, test):
    """Return the gap between the rates of the groups of the test split."""
    return equalized_odds_difference(
        test.targets.numpy(),
        outputs[:, 0].numpy() >= 0,
        sensitive_features=test.inputs[1].numpy(),
    )


def test_no_query_is_made_and_rates_come_closer_on_test():
    pipeline = ByGroup(None, 0)
    chosen, test = run_arm(SPEC, pipeline), pipeline.splits.test
    assert (chosen.queries, chosen.queried) == (0, {})
    decided = chosen.choice.predict(test.inputs)
    assert gap(decided, test) < gap(test.inputs[0], test) - 0.1


def test_the_runner_judges_the_same_decisions_at_every_run(monkeypatch):
    # Several batches, as large splits have.
    monkeypatch.setattr(ByGroup, "examples_at_once", 300)
    metrics, judged = {"mcr": make_metric("mcr")}, []
    for replicate in (0, 0, 1):
        pipeline = ByGroup(None, replicate)
        choice = run_arm(SPEC, pipeline).choice
        (first,) = pipeline.evaluate([choice], "test", metrics)
        (again,) = pipeline.evaluate([choice], "test", metrics)
        assert first == again
        judged.append(first["mcr"].item())
    assert judged[0] == judged[1] != judged[2]
    untouched = Adapted(torch.zeros(1, 3))
    (before,) = ByGroup(None, 0).evaluate([untouched], "test", metrics)
    assert max(judged) < before["mcr"].item()


def test_a_network_without_groups_is_refused():
    with pytest.raises(ConfigError, match="needs groups as the last input of the net"):
        record_of(SPEC)

"""The arm that follows the loss of another network."""

from dataclasses import replace

import pytest
import torch

from benchmarks.arms.contract import run_arm
from benchmarks.problems.contract import make_pipeline
from metricopt.errors import ConfigError
from tests.benchmarks.problems.pipeline_cases import smoke_spec


def test_the_other_loss_is_followed_and_has_to_be_named():
    own, other = (smoke_spec("figs2", row) for row in ("loss-only", "phi-blackbox"))
    pipeline = make_pipeline(own.pipeline, 0)
    phi = [run_arm(spec, pipeline).choice.phi for spec in (own, other)]
    assert phi[0].shape == phi[1].shape == (2, 64)
    assert not torch.equal(*phi)
    bare = replace(other, arm=replace(other.arm, source=None))
    with pytest.raises(ConfigError, match="needs the pipeline of the network whose"):
        run_arm(bare, pipeline)

"""Structured problems: theta is a network that a method trained, with FiLM on it."""

from collections.abc import Mapping
from typing import Any

from torch import nn

from benchmarks.problems.choices import Adapted, Choice
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.structured.contract import Modality, StructuredSettings
from benchmarks.problems.structured.theta import StructuredThetaSpec
from metricopt.losses.portfolio import Portfolio


@PIPELINES.register("structured")
class StructuredPipeline(PretrainedPipeline):
    """A problem whose answers have structure; see `NetworkPipeline`."""

    settings_type = StructuredSettings
    settings: StructuredSettings
    spec_type = StructuredThetaSpec

    @property
    def modality(self) -> Modality:
        """What the answers are."""
        found: Modality = self.theta_spec.modality
        return found

    @property
    def examples_at_once(self) -> int:
        """Examples a trained network sees at a time."""
        return self.modality.at_once

    @property
    def used(self) -> Mapping[str, int | None]:
        """Examples that fine-tuning sees, the first ones; observe is used whole."""
        return {"train": self.settings.examples}

    @property
    def counted(self) -> tuple[int, int]:
        """Examples that training sees in an epoch, and those with kept features."""
        problem = self.settings.problem
        learned, every = self.modality.counted(problem)
        observed = round(problem.observed * learned)
        kept = min(self.settings.examples, learned - observed)
        return learned - observed, kept + observed + every - learned

    @property
    def network_data(self) -> dict[str, str]:
        """What records say of the network, and of how metrics were measured."""
        return super().network_data | dict(self.modality.measured)

    def network_start(self, *, from_theta: bool) -> nn.Module:
        """Return the trained network, or one with the base weights or random ones."""
        network = super().network_start(from_theta=from_theta)
        if not from_theta:
            self.modality.prepared(network, self.splits.train)
        return network

    @property
    def own_losses(self) -> Portfolio:
        """The usual loss alone."""
        return {self.modality.usual: self.loss}

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes with answers to some examples of the test."""
        assert isinstance(choice, Adapted)
        outputs = self.judged("test").judge.outputs(choice.phi[:1])
        return dict(self.modality.pictured(self.splits.test, outputs[0]))  # type: ignore[arg-type]

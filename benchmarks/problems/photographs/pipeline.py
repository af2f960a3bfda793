"""Photographs of classes: theta with FiLM on its last feature map."""

import copy
import re
import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from baselines.training.loop import TrainingRun, train
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.photographs.settings import PhotographSettings
from benchmarks.problems.photographs.splits import counted
from benchmarks.problems.photographs.theta import PhotographThetaSpec
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from metricopt.adapters.applied.changed import LACKING
from metricopt.adapters.export import state_digest
from metricopt.metrics.confusion import class_shares


@PIPELINES.register("imagenet")
class PhotographPipeline(PretrainedPipeline):
    """A problem of photographs with its network; see `Pipeline`."""

    settings_type = PhotographSettings
    settings: PhotographSettings
    spec_type = PhotographThetaSpec

    @property
    def used(self) -> Mapping[str, int | None]:
        """Training images that fine-tuning sees, the first ones."""
        return {"train": self.settings.examples}

    @property
    def counted(self) -> tuple[int, int]:
        """Images that training sees in an epoch, and those whose features are kept."""
        train, test, _ = counted(self.settings.problem)
        observed = self.settings.problem.observed
        learned = train - observed
        used = min(learned, self.settings.examples or learned)
        return learned, used + observed + test

    @property
    def training_shares(self) -> Tensor:
        """Class shares of the images theta was trained on."""
        return class_shares(self.whole.train.targets, self.whole.classes)

    def continued(
        self, phi: Tensor, changes: Mapping[str, Any], *, generator: torch.Generator
    ) -> "PhotographPipeline":
        """Return the same problem with a network that was trained on, with phi in it.

        FiLM alone is in it while it is trained: offsets would be lost in its bias.
        """
        network = copy.deepcopy(self.theta)
        with (
            self.film_of(network).attach(phi.to(self.device)),
            warnings.catch_warnings(),
        ):
            # The weights alone are wanted, and kept while training goes on.
            warnings.filterwarnings("ignore", re.escape(LACKING))
            run = TrainingRun(
                network.requires_grad_(True),
                self.loss,
                self.batches(changes),
                self.training(changes),
                generator=generator,
            )
            train(run)
        moved = PhotographPipeline(self.settings, self.replicate)
        moved.whole, moved._sealed = self.whole, True
        digest = state_digest(network.state_dict())
        moved.pretrained = replace(
            self.pretrained, network=network.eval(), digest=digest
        )
        return moved

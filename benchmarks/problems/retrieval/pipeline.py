"""Retrieval: theta is an embedding network, with FiLM on its last stage."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from baselines.embedding_losses.contract import EMBEDDING_LOSSES, make_embedding_loss
from benchmarks.data.files.decoded import kept_bytes
from benchmarks.data.listed.contract import LISTED
from benchmarks.problems.choices import Choice
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.pictured import changed_queries
from benchmarks.problems.pretrained.photographs import Photographs
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.retrieval.settings import RetrievalSettings
from benchmarks.problems.retrieval.theta import RetrievalThetaSpec
from metricopt.losses.portfolio import Portfolio
from metricopt.tasks.sampling import ClassSampler


@PIPELINES.register("retrieval")
class RetrievalPipeline(PretrainedPipeline):
    """A retrieval problem with its network; see `NetworkPipeline`.

    Every image of a part is a query among all others of that part.
    """

    settings_type = RetrievalSettings
    settings: RetrievalSettings
    spec_type = RetrievalThetaSpec

    @property
    def counted(self) -> tuple[int, int]:
        """Images that training sees in an epoch, and those whose features are kept."""
        problem = self.settings.problem
        images, rows, *_ = LISTED.get(problem.dataset).expected
        return round((1 - problem.observed) * images), rows

    def decoded(self) -> Mapping[str, int]:
        """Return the bytes of decoded images; see `Pipeline`."""
        problem, (_, rows) = self.settings.problem, self.counted
        size = kept_bytes(rows, problem.side)
        return {f"{problem.dataset}-{problem.side}": size}

    @property
    def own_losses(self) -> Portfolio:
        """All registered losses that learn nothing of their own."""
        classes, size = self.theta_spec.classes, self.settings.backbone.size
        found = {
            name: make_embedding_loss(name, classes=classes, size=size)
            for name in EMBEDDING_LOSSES
        }
        return {
            name: loss for name, loss in found.items() if not list(loss.parameters())
        }

    @property
    def sampler(self) -> ClassSampler:
        """What draws the mini-batches of fine-tuning."""
        targets = self.splits.train.targets
        assert isinstance(targets, Tensor)
        return ClassSampler(
            targets.cpu(), self.settings.batch_size, self.settings.per_class
        )

    def pictured(self, choice: Choice) -> dict[str, Any]:
        """Return notes with queries and their nearest images, before and after."""
        images = self.splits.test
        assert isinstance(images, Photographs)
        return dict(changed_queries(images, *self.before_and_after(choice)))

"""Images: theta is a convolutional network, with FiLM on its last normalisation."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from torch import Tensor, nn

from benchmarks.data.registry import variant_shape
from benchmarks.problems.contract import PIPELINES
from benchmarks.problems.images.logit_metrics import metric_under
from benchmarks.problems.images.settings import ImageSettings
from benchmarks.problems.images.theta import ImageThetaSpec
from benchmarks.problems.prerequisite import Prerequisite
from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from benchmarks.problems.pretrained.weights import Theta
from benchmarks.runs.spec import Unit
from metricopt.losses.contract import Loss, check_batch_size
from metricopt.metrics.base import Metric
from metricopt.metrics.confusion import class_shares
from metricopt.process.seeding import Seeds
from metricopt.tasks.sampling import BalancedSampler, NaturalSampler, Sampler


@PIPELINES.register("images")
class ImagePipeline(PretrainedPipeline):
    """An image problem with its network; see `NetworkPipeline`."""

    settings_type = ImageSettings
    settings: ImageSettings
    spec_type = ImageThetaSpec

    @property
    def used(self) -> Mapping[str, int | None]:
        """Images that fine-tuning sees and observes, the first ones of their splits."""
        used = self.settings.finetune.examples
        return {"train": used, "observe": self.settings.observed}

    @property
    def seeds(self) -> Seeds:
        """Seeds of everything that is random here."""
        return Seeds(self.theta_spec.name, self.settings.sampling, self.replicate)

    @property
    def prerequisites(self) -> Sequence[Prerequisite]:
        """The pre-trained network, after the one it goes on from.

        Raises:
            ConfigError: if mini-batches of fine-tuning are too small for its loss.
        """
        self._check_batches()
        return super().prerequisites

    @property
    def counted(self) -> tuple[int, int]:
        """Images of the data set, which bound both numbers."""
        problem = self.settings.problem
        rows, *_ = variant_shape(problem.dataset, problem.variant)
        return rows, rows

    @property
    def training_shares(self) -> Tensor:
        """Class shares of the images theta was trained on."""
        return class_shares(self.whole.train.targets, self.whole.classes)

    @cached_property
    def pretrained(self) -> Theta:
        """The pre-trained network with its loss."""
        self._check_batches()
        return self.theta_spec.find()

    def _check_batches(self) -> None:
        spec, size = self.theta_spec, self.settings.finetune.batch_size
        check_batch_size(spec.loss(), size, spec.classes)

    @property
    def loss(self) -> Loss:
        """The loss theta was trained with, which fine-tuning uses as well."""
        if self.settings.backbone.loss == "cross-entropy":
            return nn.CrossEntropyLoss()  # the same, for all rows of phi at once
        return self.pretrained.loss

    @property
    def sampler(self) -> Sampler:
        """What draws the mini-batches of fine-tuning."""
        targets = self.splits.train.targets.cpu()
        size = self.settings.finetune.batch_size
        if self.settings.sampling == "balanced":
            return BalancedSampler(targets, size)
        return NaturalSampler(len(targets), size)

    def class_outputs(self, outputs: Tensor) -> Tensor:
        """Return the outputs that say a class, [..., C]."""
        return outputs[..., : self.theta_spec.classes]

    def metric(self, unit: Unit) -> Metric:
        """Return the metric of its outputs; see `metric_under`."""
        return metric_under(self.loss, unit, self.theta_spec.classes)

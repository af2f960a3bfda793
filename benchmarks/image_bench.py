"""The image protocol as a bench: a pre-trained convolutional network with FiLM."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from baselines.losses import Loss, check_batch_size
from benchmarks.bench import Bench, Splits
from benchmarks.image_data import ImageProblem, Images, device, load_problem
from benchmarks.thetas import Theta, ThetaSpec, find_theta, make_theta_loss
from metricopt.adapters import FiLM
from metricopt.metrics import make_metric
from metricopt.metrics.base import Metric
from metricopt.sampling import Split


class ImageBench(Bench):
    """An image problem with its network; see `Bench`.

    Fine-tuning takes its gradients on `finetune.examples` training images, without
    augmentation: what comes before the adapter is then computed once.
    """

    prepared = True

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        """Where its network runs."""
        return device()

    @cached_property
    def problem(self) -> ImageProblem:
        """All images of the problem."""
        return load_problem(self.settings["problem"], self.replicate)

    @cached_property
    def splits(self) -> Splits:
        """The three splits, the train split cut to what fine-tuning uses."""
        problem, used = self.problem, self.settings["finetune"]["examples"]
        return Splits(
            split_of(problem.train, used),
            split_of(problem.observe),
            split_of(problem.test),
            problem.variant,
            problem.digest,
        )

    @property
    def place(self) -> tuple[object, ...]:
        """What the seeds of this bench depend on, its replicate excepted."""
        return (self.theta_spec.name, self.settings["sampling"])

    @property
    def theta_spec(self) -> ThetaSpec:
        """Which network theta is."""
        problem, backbone = self.settings["problem"], self.settings["backbone"]
        return ThetaSpec(problem, backbone, self.replicate)

    @cached_property
    def pretrained(self) -> Theta:
        """The pre-trained network with its loss."""
        self.check_batches()
        return find_theta(self.theta_spec)

    def check_batches(self) -> None:
        """Check, before anything is trained, that fine-tuning suits the loss.

        Raises:
            ConfigError: if it needs every class in a mini-batch, and these are smaller.
        """
        backbone, size = (
            self.settings["backbone"],
            self.settings["finetune"]["batch_size"],
        )
        check_batch_size(make_theta_loss(backbone), size, backbone["classes"])

    @property
    def theta(self) -> nn.Sequential:
        """The pre-trained network, in evaluation mode."""
        return self.pretrained.network

    @property
    def loss(self) -> Loss:
        """The loss theta was trained with, which fine-tuning goes on with."""
        if self.settings["backbone"]["loss"] == "cross-entropy":
            return nn.CrossEntropyLoss()  # the same, for all rows of phi at once
        return self.pretrained.loss

    @property
    def theta_seed(self) -> int:
        """Seed of theta's first weights."""
        return self.theta_spec.seed

    @property
    def key(self) -> dict[str, Any]:
        """Identity of what is made on this bench: of this very network."""
        return super().key | {"theta": self.pretrained.digest}

    @property
    def network_data(self) -> dict[str, str]:
        """What its records say of the pre-trained network."""
        return {"theta": self.pretrained.digest}

    @cached_property
    def adapter(self) -> FiLM:
        """FiLM at the sites the settings name, by default the last normalisation."""
        adapter = self.settings["adapter"]
        return FiLM(
            self.theta,
            self.splits.observe.inputs[:8],
            sites=adapter["sites"],
            form=adapter["form"],
            size=adapter["size"],
            seed=self.seed("adapter"),
        )

    def judged_by(self, metric: Metric) -> Metric:
        """Return the metric on the class logits, which may not be all outputs.

        Losses that train every output by itself have examples ranked by raw logits.
        """
        if metric.name == "aucpr" and getattr(self.loss, "independent", False):
            metric = make_metric("aucpr-macro-logits")
        if getattr(self.loss, "outputs_per_class", 1) == 1:
            return metric
        return OnLogits(metric, self.problem.classes)


class OnLogits(Metric):
    """A metric of the first C outputs: the others are there for the loss alone.

    Args:
        metric: what is evaluated.
        classes: number of classes C.
    """

    def __init__(self, metric: Metric, classes: int) -> None:
        self.metric, self.classes = metric, classes
        self.name, self.higher_is_better = metric.name, metric.higher_is_better
        self.unit, self.low, self.high = metric.unit, metric.low, metric.high
        self.needs_two_classes = metric.needs_two_classes

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return self.metric.value(outputs[:, : self.classes], targets)

    def _values(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return self.metric.values(outputs[..., : self.classes], targets)


def split_of(images: Images, examples: int | None = None) -> Split:
    """Return the first images of a split as network inputs, without augmentation.

    Channels come last in memory: so they do in all feature maps, and per-channel
    arithmetic is vectorised.
    """
    images = images.to(device())
    inputs = images.batches.plain(slice(examples))
    return Split(inputs, images.targets[:examples])

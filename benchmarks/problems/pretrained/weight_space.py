"""Training loss and test metric of a network at any weights."""

import copy

import torch
from torch import Tensor, nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from benchmarks.problems.pretrained.pipeline import PretrainedPipeline
from metricopt.errors import ConfigError
from metricopt.metrics.base import Metric
from metricopt.tasks.examples import Examples

NORM = nn.modules.batchnorm._BatchNorm


class WeightSpace:
    """Weights [D] that networks of one architecture can have, and how good they are.

    Between two networks the stored statistics of a batch norm belong to neither. So
    wherever the loss is evaluated, they become those of the training images.

    Args:
        pipeline: gives the images and the loss, and the network phi is put into.
        metric: of the test images.
        train: training images of loss and statistics, the first ones.
        test: test images, drawn at random: data sets may be sorted by class.

    Attributes:
        origin: the untouched network.
        tested: places of these test images in the split, shape [test].
    """

    def __init__(
        self, pipeline: PretrainedPipeline, metric: Metric, *, train: int, test: int
    ) -> None:
        self.origin = pipeline.adapter.merged(torch.zeros(pipeline.adapter.size))
        self._pipeline, self._metric = pipeline, metric
        images = pipeline.splits.train.first(train)
        self._inputs, self._targets = images.batch(slice(None)), images.targets
        self._test: Examples = pipeline.judged("test").examples
        generator = pipeline.seeds.generator("surface")
        order = torch.randperm(len(self._test), generator=generator)
        self.tested = order[:test].to(pipeline.device)

    def weights(self, network: nn.Module) -> Tensor:
        """Return the weights of a network, shape [D].

        Raises:
            ConfigError: if it has weights of other names or shapes than the origin.
        """
        expected, found = (_shapes(each) for each in (self.origin, network))
        if expected != found:
            raise ConfigError(
                "networks in one space of weights must have weights of the same names "
                f"and shapes; expected {expected}, got {found}"
            )
        return parameters_to_vector(network.parameters()).detach()

    def network(self, point: Tensor) -> nn.Module:
        """Return the network with weights [D], its batch norms renewed."""
        return self._renewed(point)[0]

    def _renewed(self, point: Tensor) -> tuple[nn.Module, Tensor]:
        network = copy.deepcopy(self.origin)
        vector_to_parameters(point.to(self._inputs), network.parameters())
        return network, renew_statistics(network, self._inputs)

    @torch.no_grad()
    def levels(self, points: Tensor) -> tuple[Tensor, Tensor]:
        """Return training loss and test metric at points [n, D], each [n]."""
        found = [self._level(point) for point in points]
        losses, values = zip(*found, strict=True)
        return torch.tensor(losses), torch.tensor(values, dtype=torch.float64)

    @torch.no_grad()
    def interpolated(self, network: nn.Module) -> float:
        """Return the metric halfway to a network, with statistics halfway, too."""
        halfway = copy.deepcopy(self.origin)
        other = network.state_dict()
        for name, tensor in halfway.state_dict().items():
            if tensor.is_floating_point():
                tensor.lerp_(other[name], 0.5)
        return self._value(halfway)

    def _level(self, point: Tensor) -> tuple[float, float]:
        network, outputs = self._renewed(point)
        loss = self._pipeline.loss(outputs, self._targets)
        return float(loss), self._value(network)

    def _value(self, network: nn.Module) -> float:
        parts = self.tested.split(self._pipeline.examples_at_once)
        outputs = torch.cat([network(self._test.batch(part)) for part in parts])
        classes = self._pipeline.class_outputs(outputs)
        return self._metric.value(classes, self._test.targets[self.tested])


def _shapes(network: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(w.shape) for name, w in network.named_parameters()}


@torch.no_grad()
def renew_statistics(network: nn.Module, inputs: Tensor) -> Tensor:
    """Set the statistics of all batch norms to those of some inputs [n, ...].

    Returns:
        The outputs of these inputs, [n, C], with these very statistics.
    """
    norms = [module for module in network.modules() if isinstance(module, NORM)]
    momenta = [norm.momentum for norm in norms]
    for norm in norms:
        norm.train()
        norm.momentum = 1.0
    outputs: Tensor = network(inputs)
    for norm, momentum in zip(norms, momenta, strict=True):
        norm.eval()
        norm.momentum = momentum
    return outputs

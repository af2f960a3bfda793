"""Error in which every kind of confusion has a cost of its own."""

import torch
from torch import Tensor

from metricopt.errors import ConfigError, ShapeError
from metricopt.metrics.base import Metric, check_labels, check_outputs
from metricopt.metrics.confusion import confusion_matrices


class CostWeightedError(Metric):
    """Mean cost of the predictions, in [0, 1]; with all costs 1, the error rate.

    It has no name in the registry, as it needs a matrix: a subclass that calls
    `super().__init__(matrix)` and sets `name` can be registered.

    Args:
        matrix: cost of predicting class j (column) for true class i (row), shape
            [C, C], in [0, 1], zero on the diagonal; [2, 2] for a single logit.

    Raises:
        ShapeError: if the matrix is not [C, C] with C >= 2.
        ConfigError: if a cost is outside [0, 1], or not 0 for a right prediction.
    """

    name = "cost-weighted-error"
    higher_is_better = False

    def __init__(self, matrix: Tensor) -> None:
        _check_matrix(matrix)
        self.matrix = matrix.detach().to(torch.float64, copy=True)

    def _value(self, outputs: Tensor, targets: Tensor) -> float:
        return float(self._values(outputs[None], targets)[0])

    def _values(self, outputs: Tensor, targets: Tensor) -> Tensor:
        classes = max(outputs.shape[-1], 2)
        if classes != len(self.matrix):
            raise ShapeError(
                f"metric {self.name!r} has costs of {len(self.matrix)} classes and "
                f"needs outputs of as many, got C = {outputs.shape[-1]}"
            )
        check_labels(self.name, targets, classes)
        check_outputs(self.name, outputs)
        return self.of_matrices(confusion_matrices(outputs, targets))

    def of_matrices(self, matrices: Tensor) -> Tensor:
        """Return the mean cost of confusion matrices [B, C, C], shape [B].

        It is differentiable in the counts, which need not be whole numbers.
        """
        costs = matrices * self.matrix.to(matrices.device)
        return costs.sum(-1).sum(-1) / matrices.sum(-1).sum(-1)


def _check_matrix(matrix: Tensor) -> None:
    shape = list(matrix.shape)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 2:
        raise ShapeError(f"a cost matrix must be [C, C] with C >= 2, got {shape}")
    # Written so that NaN counts as outside.
    outside = matrix[~((matrix >= 0) & (matrix <= 1))]
    if outside.numel():
        raise ConfigError(f"costs must be in [0, 1], got {outside[0].item():g}")
    charged = matrix.diagonal().nonzero().flatten().tolist()
    if charged:
        raise ConfigError(
            f"right predictions must cost nothing, but class {charged[0]} has "
            f"{matrix[charged[0], charged[0]].item():g} on the diagonal"
        )

"""An asymmetric cost on CIFAR-10: calling a vehicle an animal is the worst mistake."""

import torch
from torch import Tensor

from benchmarks.runs.spec import SUITE_METRICS
from metricopt.metrics.counted import CostWeightedError

CLASSES = 10
VEHICLES = (0, 1, 8, 9)
"""Airplane, automobile, ship, truck; the other classes are animals."""
VEHICLE_AS_ANIMAL, ANIMAL_AS_VEHICLE, WITHIN = 1.0, 0.2, 0.1


@SUITE_METRICS.register("vehicle-animal-cost")
class VehicleAnimalCost(CostWeightedError):  # noqa: N818 - an error rate, not raised
    """Mean cost of the mistakes, in [0, 1]; lower is better."""

    name = "vehicle-animal-cost"

    def __init__(self) -> None:
        super().__init__(cost_matrix())


def cost_matrix() -> Tensor:
    """Return the cost of calling class i (row) class j (column), shape [10, 10]."""
    vehicle = torch.zeros(CLASSES, dtype=torch.bool)
    vehicle[list(VEHICLES)] = True
    costs = torch.full((CLASSES, CLASSES), WITHIN, dtype=torch.float64)
    costs[vehicle[:, None] & ~vehicle] = VEHICLE_AS_ANIMAL
    costs[~vehicle[:, None] & vehicle] = ANIMAL_AS_VEHICLE
    return costs.fill_diagonal_(0.0)

"""Loss parameters at a few steps of a training, for figures."""

from torch import Tensor

from baselines.network_methods.contract import Notes

TIMES, MOST = 9, 10_000
"""Times at which loss parameters are noted, and how many at most: of 100 classes."""
DECIMALS = 4


class Snapshots:
    """What loss parameters were at the first step, after every eighth, and at the end.

    Attributes:
        taken: loss parameters by step.
    """

    def __init__(self) -> None:
        self.taken: dict[int, Tensor] = {}

    def take(self, step: int, steps: int, phi: Tensor) -> bool:
        """Take note of loss parameters if it is time, and return whether it is.

        Args:
            step: steps that were taken.
            steps: steps of the whole training.
            phi: loss parameters, any shape.
        """
        due = step * (TIMES - 1) // steps >= len(self.taken) and phi.numel() <= MOST
        if due:
            self.taken[step] = phi.detach().cpu()
        return due

    def notes(self, name: str) -> Notes:
        """Return steps and flat loss parameters; empty if there are too many."""
        if not self.taken:
            return {}
        flat = [
            value for phi in self.taken.values() for value in phi.flatten().tolist()
        ]
        return {
            f"{name}_steps": [float(step) for step in self.taken],
            name: [round(value, DECIMALS) for value in flat],
        }

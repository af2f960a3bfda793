"""Line 8: a trained value function, with the spread and reach of phi it knows."""

from collections.abc import Callable
from dataclasses import dataclass, field

from metricopt.algorithm1.recipe import Recipe
from metricopt.algorithm1.value_function import ValueFunction

Progress = Callable[[int, int], None]
"""Called with the number of tasks done so far and the number of all tasks."""


@dataclass(frozen=True)
class MetaTrained:
    """A trained value function and what it cost.

    Attributes:
        value_function: in evaluation mode.
        recipe: how it was trained.
        queries: metric queries made.
        spread: root-mean-square distance of phi from its mean in the first block.
        reach: greatest distance of phi from that mean in the training trajectories.
        losses: training loss of every update; empty if they were not kept.
    """

    value_function: ValueFunction
    recipe: Recipe
    queries: int
    spread: float
    reach: float
    losses: list[float] = field(default_factory=list)

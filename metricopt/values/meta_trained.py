"""A value function with what its training told about phi: all that guidance needs."""

from collections.abc import Callable
from dataclasses import dataclass, field

from metricopt.values.recipe import Recipe
from metricopt.values.value_function import ValueFunction

Progress = Callable[[int, int], None]
"""Called with what is done and what there is to do in all."""


@dataclass(frozen=True)
class MetaTrained:
    """A trained value function and what it cost.

    Attributes:
        value_function: in evaluation mode.
        recipe: how it was trained.
        queries: metric queries made.
        spread: root-mean-square distance of phi from its mean in the first block.
        reach: greatest distance from that mean the value function was trained on.
        losses: training loss of every update, where they were kept.
    """

    value_function: ValueFunction
    recipe: Recipe
    queries: int
    spread: float
    reach: float
    losses: list[float] = field(default_factory=list)

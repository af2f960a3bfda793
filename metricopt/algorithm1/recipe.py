"""Inputs of lines 1 to 8, as one set of settings; line 8: what meta-training returns.

`LITERAL` is the pseudocode of Huang et al., CVPR 2021, as published. `RECIPE` is what
was found to work: targets standardised, several tasks per update, a start near the
pre-trained network, most of the trajectories on-policy, Reptile's average returned.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from metricopt.algorithm1.trajectories import Rollout
from metricopt.algorithm1.value_function import ValueFunction
from metricopt.errors import ConfigError

GAMMA = 10.0
"""The paper's weight of the regression term, for costs in their own units."""
Mining = Literal["multi-similarity", "hardest", "random", "none"]


@dataclass(frozen=True)
class Recipe:
    """How a value function is meta-trained.

    Attributes:
        tasks: trajectories in all.
        block: trajectories collected in lock-step before the next updates.
        group: tasks of one Reptile update; 1 in the paper.
        inner_steps: gradient steps of one update; 1 in the paper.
        inner_optimizer: "sgd" (the paper) or "adam".
        inner_rate: the inner learning rate alpha.
        outer_rate: Reptile's eta: "linear" from 1 to 0 (the paper), or "constant" 1,
            which is plain training on the trajectories as they come.
        returned: the weights f is used with: "adapted" w~ of the last update (the
            paper), or "initial" w, Reptile's average over many tasks.
        momentum: momentum of batch norm's running statistics, which f uses when it
            predicts. The usual 0.1 forgets all but the last few tasks.
        gamma: weight of the regression term. None gives both terms the same size at
            the start of training; the paper chose 10 to that end, for raw costs.
        standardise_cost: learn standardised costs instead of raw ones. Mean and
            deviation are those of all costs observed so far.
        on_policy: share of trajectories that follow the current value function.
        queries_on: the "observe" split (the paper), or fresh parts of the "train" split
            of the same size (its Fig. S4), which the value function cannot over-fit.
            One more query per part, at phi = 0, corrects for how hard the part is.
        replay: earlier groups added to every update, drawn at random. With a group of
            one task that is one new task per update and so many replayed.
        mining: how triplets are chosen; "none" drops the ordinal term.
        uncertainty: whether the deviations of the interpolation weight the points.
        step_share: on-policy step length, in units of the spread of phi.
        step_jitter: log-normal deviation of that length between trajectories.
        growth: on-policy phi stays within this multiple of the greatest distance from
            the mean that earlier trajectories have reached.
        rollout: length, observations and start of a trajectory.
    """

    tasks: int = 1600
    block: int = 32
    group: int = 8
    inner_steps: int = 5
    inner_optimizer: Literal["sgd", "adam"] = "adam"
    inner_rate: float = 0.005
    outer_rate: Literal["linear", "constant"] = "linear"
    returned: Literal["adapted", "initial"] = "initial"
    momentum: float = 0.02
    gamma: float | None = None
    standardise_cost: bool = True
    on_policy: float = 0.75
    queries_on: Literal["observe", "train"] = "observe"
    replay: int = 0
    mining: Mining = "multi-similarity"
    uncertainty: bool = True
    step_share: float = 0.4
    step_jitter: float = 0.5
    growth: float = 1.5
    rollout: Rollout = field(default_factory=Rollout)

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.block < 1 or self.group < 1:
            raise ConfigError(
                "a recipe needs tasks, block and group >= 1, got "
                f"{self.tasks}, {self.block} and {self.group}"
            )


RECIPE = Recipe()
LITERAL = Recipe(
    tasks=1000,
    group=1,
    inner_steps=1,
    inner_optimizer="sgd",
    returned="adapted",
    momentum=0.1,
    gamma=GAMMA,
    standardise_cost=False,
    on_policy=0.0,
)


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

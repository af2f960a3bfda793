"""What decides how an optimizer of phi is meta-trained."""

from dataclasses import dataclass, field, replace
from typing import Literal

from baselines.optimizers.lstm import LSTMOptimizer, published_training
from baselines.optimizers.mlp import MLPOptimizer
from benchmarks.runs.codec import LATER, changed, later
from benchmarks.runs.spec import Settings
from metricopt.algorithm1.recipe import RECIPE
from metricopt.algorithm_s1.metricopt_learned import TRAINING
from metricopt.algorithm_s1.task_runs import observed_steps
from metricopt.errors import ConfigError, require_choice, require_ranges
from metricopt.learned_optimizers.contract import LEARNED, LearnedOptimizer, kind_of
from metricopt.learned_optimizers.metricopt_mlp import ALL_INPUTS
from metricopt.learned_optimizers.objective import Objective
from metricopt.learned_optimizers.settings import OptimizerTraining
from metricopt.tasks.descent import START_DEVIATION

Supervision = Literal["value function", "metric", "statistics", "loss"]
"""What a run is judged by in meta-training, eq. (6), beside its loss.

"value function": one of phi, which is learned together with the optimizer: Algorithm
S1. "metric": the metric itself at every step, all queries charged. "statistics": a
value function of statistics, fitted to a few queries before. "loss": the loss alone.
"""
OF_THE_LOSS = OptimizerTraining(
    tasks=4, pairs=2, rate=3e-3, objective=Objective(metric_weight=0.0)
)
PUBLISHED = {
    kind_of(LSTMOptimizer()): published_training(),
    kind_of(MLPOptimizer(1)): replace(OF_THE_LOSS, pairs=4, tasks=2),
}
"""How rivals are trained, by kind, as far as their papers say."""


@dataclass(frozen=True, kw_only=True)
class OptimizerLearning:
    """How an optimizer of phi is meta-trained on fine-tunings of one network.

    Attributes:
        steps: length of the fine-tunings: its horizon T.
        kind: registered kind of learned optimizer.
        form: settings of that kind, without the horizon.
        supervision: what runs are judged by beside their loss.
        start_deviation: standard deviation of every coordinate of a random start.
        queries: metric queries that meta-training may make, and one run after it.
        training: changes to `OptimizerTraining`; "value function" cuts the iterations
            to the queries.
        recipe: changes to how Algorithm S1 trains its value function; None for none.
        revision: raised when code changes what is learned, so nothing old is reused.

    Raises:
        ConfigError: if a setting is out of its range, or two do not go together.
    """

    steps: int
    kind: str = "metricopt-mlp"
    form: Settings = field(default_factory=dict, hash=False)
    supervision: Supervision = "value function"
    start_deviation: float = START_DEVIATION
    queries: int = 0
    training: Settings = field(default_factory=dict, hash=False)
    recipe: Settings | None = field(default=None, hash=False, metadata={LATER: True})
    revision: int = later(1)

    def __post_init__(self) -> None:
        require_ranges(
            "learning an optimizer",
            vars(self),
            steps=">= 1",
            queries=">= 0",
            start_deviation="> 0",
        )
        require_choice("supervision", self.supervision, Supervision)
        if self.supervision == "value function":
            inputs = self.fresh(0).inputs
            if inputs != ALL_INPUTS:
                raise ConfigError(
                    "Algorithm S1 trains a metricopt-mlp with the inputs "
                    f"{', '.join(ALL_INPUTS)}; got {self.kind} with "
                    f"{', '.join(inputs)}"
                )
            changed(RECIPE, self.recipe or {})
        elif self.recipe is not None:
            raise ConfigError(
                "a recipe of a value function needs the supervision 'value function', "
                f"got {self.supervision!r}"
            )
        if self.asks_metric and not self.queries:
            raise ConfigError(
                f"supervision by {self.supervision!r} needs queries >= 1, got 0"
            )

    @property
    def asks_metric(self) -> bool:
        """Whether meta-training makes metric queries."""
        return self.supervision != "loss"

    @property
    def label(self) -> str:
        """Kind and supervision, as in names of files."""
        return f"{self.kind}-by-{self.supervision.replace(' ', '-')}"

    @property
    def settings(self) -> OptimizerTraining:
        """How it is trained: as published for its kind, with the changes."""
        usual = TRAINING if self.asks_metric else OF_THE_LOSS
        return changed(PUBLISHED.get(self.kind, usual), self.training)

    @property
    def own_queries(self) -> int:
        """Metric queries of one fine-tuning with the optimizer."""
        return len(observed_steps(self.fresh(0), self.steps))

    def fresh(self, seed: int) -> LearnedOptimizer:
        """Return the optimizer before its training.

        Raises:
            ConfigError: if there is no such kind or setting.
        """
        make = LEARNED.get(self.kind)
        form = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in self.form.items()
        }
        try:
            return make(horizon=self.steps, seed=seed, **form)  # type: ignore[call-arg]
        except TypeError as error:
            raise ConfigError(f"learned optimizer {self.kind!r}: {error}") from error


def metric_queries(training: OptimizerTraining, steps: int) -> int:
    """Return what a training by the metric itself queries: every step of every run."""
    runs = training.tasks * training.copies
    lengths = (training.length(each, steps) for each in range(training.iterations))
    return runs * sum(length + 1 for length in lengths)

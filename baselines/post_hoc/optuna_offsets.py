"""Class offsets found by Optuna: the tool most people would tune a few numbers with.

The plug-in form argmax_k (log p_k + offset_k). Only differences of offsets move a
decision, so the first class keeps 0 and the others are searched.

Source: Optuna's TPE sampler with its defaults, which is called here; Bergstra et al.,
NeurIPS 2011. Differs: nothing; zero offsets are the first trial, as
`Study.enqueue_trial` makes them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.post_hoc.class_scores import (
    Improvement,
    OffsetQueries,
    log_probabilities,
)
from baselines.validation import Validation
from metricopt.errors import require_ranges
from metricopt.methods.evolution import draw_seeds


@dataclass(frozen=True)
class OffsetTrials:
    """How far and how long the offsets are searched.

    Attributes:
        reach: offsets are in [-reach, reach], in units of log-probability.
        max_queries: trials, each a metric query; zero offsets are the first.

    Raises:
        ConfigError: if a setting is out of its range.
    """

    reach: float = 1.0
    max_queries: int = 100

    def __post_init__(self) -> None:
        ranges = {"reach": "in (0, inf)", "max_queries": ">= 1"}
        require_ranges("a study of offsets", vars(self), **ranges)


def study_offsets(
    outputs: Tensor,
    validation: Validation,
    *,
    search: OffsetTrials,
    generator: torch.Generator,
) -> tuple[Improvement, ...]:
    """Return the improvements of a study with the TPE sampler.

    Args:
        outputs: logits on the observe split, shape [N, C]; one logit counts as two
            classes.
        validation: the metric, any black box.
        search: range of the offsets and number of queries, all of which are made.
        generator: source of all randomness.

    Returns:
        Every improvement in order, zero offsets first.

    Raises:
        ShapeError: if outputs have no class axis.
        BudgetExceededError: if the queries would exceed the limit of the validation.
    """
    # Not above: every worker imports this file, and Optuna takes a second.
    import optuna

    log_probs = log_probabilities(outputs)
    (seed,) = draw_seeds(1, generator)
    distribution = optuna.distributions.FloatDistribution(-search.reach, search.reach)
    asked = {f"offset {k}": distribution for k in range(1, log_probs.shape[1])}
    queries = OffsetQueries(log_probs, validation, search.max_queries)
    with _quiet():
        study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
        study.enqueue_trial(dict.fromkeys(asked, 0.0))
        # Zero offsets are queried already.
        study.tell(study.ask(asked), queries.cost)
        while queries.remaining:
            trial = study.ask(asked)
            offsets = [0.0, *(trial.params[name] for name in asked)]
            (cost,) = queries.costs(log_probs.new_tensor([offsets])).tolist()
            study.tell(trial, cost)
    return tuple(queries.trace)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep Optuna from printing a line for every study, within the context."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)

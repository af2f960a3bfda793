"""CWPlugin: class weights from line searches over pairs of classes.

The classifier argmax_k w_k p_k is found one weight at a time. The metric is queried on
the examples of two classes, k and a reference, with decisions restricted to these two.
Where the metric is linear in the diagonal of the confusion matrix, the best weight for
the pair is that of the whole. Queries on chosen examples are more than a scoring
service allows, which judges all of them.

Source: Devic, Hiranandani et al., arXiv 2503.02119, 2025. Written from the abstract;
there is no published code. These are our choices: the examples of a pair, since a
G-mean of all examples is 0 for two classes; the reference, which is the class that is
most frequent on observe; a grid uniform in w_k / (w_k + w_reference), and of equal
values the one nearest to equal weights. The weighted classifier is queried at the end,
and equal weights are kept where it is no better.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.post_hoc.class_scores import (
    Improvement,
    OffsetQueries,
    log_probabilities,
)
from baselines.validation import Validation, labels
from metricopt.errors import ConfigError


@dataclass(frozen=True)
class PairSearch:
    """How long the line searches are.

    Attributes:
        candidates: weights tried per pair, if there is no limit of queries.
        max_queries: most metric queries, as many of which are made as divide evenly
            among the pairs; None for no limit.
    """

    candidates: int = 15
    max_queries: int | None = None

    def per_pair(self, classes: int) -> int:
        """Return how many weights are tried per pair of `classes` classes.

        Two queries are for equal weights and for the result.

        Raises:
            ConfigError: if not even one could be tried.
        """
        found = self.candidates
        if self.max_queries is not None:
            found = (self.max_queries - 2) // (classes - 1)
        if found < 1:
            raise ConfigError(
                f"CWPlugin needs candidates >= 1 and at least {classes + 1} queries "
                f"for {classes} classes, got {self}"
            )
        return found


def pairwise_weights(
    outputs: Tensor, validation: Validation, *, search: PairSearch
) -> tuple[Improvement, ...]:
    """Return equal weights, and the plug-in classifier if it is better.

    Args:
        outputs: logits on the observe split, shape [N, C]; one logit counts as two
            classes.
        validation: the metric, any black box.
        search: length of the line searches.

    Raises:
        ShapeError: if outputs have no class axis.
        ConfigError: if the queries do not suffice for one candidate per pair.
        BudgetExceededError: if the queries would exceed the limit of the validation.
    """
    log_probs = log_probabilities(outputs)
    classes = log_probs.shape[1]
    count = search.per_pair(classes)
    alpha = torch.arange(1, count + 1, dtype=torch.float64) / (count + 1)
    grid = torch.logit(alpha).to(log_probs)
    queries = OffsetQueries(log_probs, validation, search.max_queries)
    targets = labels(validation.observe)
    counts = torch.bincount(targets, minlength=classes)
    reference = int(counts.argmax())
    weights = torch.zeros_like(log_probs[0])
    for label in counts.nonzero().flatten().tolist():
        if label == reference:
            continue
        of_pair = ((targets == label) | (targets == reference)).nonzero().flatten()
        pairs = torch.full((count, classes), -torch.inf).to(log_probs)
        pairs[:, reference], pairs[:, label] = 0.0, grid
        weights[label] = _best(grid, queries.costs_on(of_pair, pairs))
    queries.costs(weights[None])
    return tuple(queries.trace)


def _best(grid: Tensor, costs: Tensor) -> Tensor:
    """Return the log weight of least cost, the one nearest to 0 of equal ones."""
    equal = grid[(costs == costs.min()).to(grid.device)]
    return equal[equal.abs().argmin()]

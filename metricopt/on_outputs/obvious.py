"""The obvious: output offsets that anybody would try first, as candidates for free."""

import torch
from torch import Tensor

from metricopt.methods.attempts import Attempt
from metricopt.on_outputs.cross_fitting import CrossFitted
from metricopt.on_outputs.exact_offsets import (
    EXAMPLES,
    calibrated,
    offsets_of,
)
from metricopt.on_outputs.search import OutputsSearch
from metricopt.reading.outputs import are_labels, class_logits
from metricopt.statistics.many_classes import MANY
from metricopt.tasks.observed_statistics import ObservedStatistics


def obvious(statistics: ObservedStatistics) -> Tensor:
    """Return the phi of logit adjustment by all powers, [S, d]; none without offsets.

    Outputs of more than 30 classes, and of what is no scores of classes, have none.
    """
    none = torch.empty(0, statistics.size)
    place = statistics.parts.get("offsets", slice(0))
    columns = len(range(statistics.size)[place])
    targets = statistics.targets
    scores = statistics.kind.reads == "scores" and are_labels(targets)
    if not scores or not columns == statistics.columns <= MANY:
        return none
    outputs = statistics.outputs(torch.zeros(1, statistics.size)).cpu().float()
    every = -(-len(targets) // EXAMPLES)
    outputs, targets = class_logits(outputs[:, ::every]), targets[::every]
    found = calibrated(outputs, targets, torch.ones(1, len(targets)))
    share = torch.bincount(targets, minlength=outputs.shape[-1]) / len(targets)
    moved = found.adjusted(share[None])[:, 0]
    phi = torch.zeros(len(moved), statistics.size)
    phi[:, place] = offsets_of(moved, columns)
    return phi


def attempts(search: OutputsSearch, fitted: CrossFitted | None) -> tuple[Attempt, ...]:
    """Return how the obvious did in a search, by the best of every kind.

    What was queried was observed. The rest is predicted where the metric is explained
    well enough to be cross-fitted, and not known elsewhere.
    """
    predicted = None
    if fitted is not None and len(search.obvious):
        known = search.explained()
        own = {
            name: values[: len(search.obvious)]
            for name, values in known.of_these(search.candidate_groups).items()
        }
        predicted = known.value.predict(own)[0]
    found = [
        _best("one shift", search.shifted, search, None),
        _best("logit adjustment", search.obvious, search, predicted),
    ]
    fits = () if fitted is None else fitted.obvious
    return (*(each for each in found if each is not None), *fits)


def _best(
    name: str, phi: Tensor, search: OutputsSearch, predicted: Tensor | None
) -> Attempt | None:
    """Return the best of some phi [n, d] with predicted costs [n], if one is known."""
    found = []
    for place, each in enumerate(phi):
        costs = search.costs[(search.phi == each).all(1)]
        if len(costs):
            found.append(Attempt(name, each, costs[-1].item(), observed=True))
        elif predicted is not None:
            found.append(Attempt(name, each, predicted[place].item()))
    return min(found, key=lambda attempt: attempt.cost, default=None)

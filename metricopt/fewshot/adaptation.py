"""Outputs on the queries of new episodes, after adapting to their supports."""

import torch
from torch import Tensor
from torch.func import vmap

from metricopt.errors import require_choice
from metricopt.fewshot.episodes import Episodes, Examples
from metricopt.fewshot.meta_learner import MetaLearner
from metricopt.fewshot.settings import Batching


@torch.no_grad()
def query_outputs(
    learner: MetaLearner,
    episodes: Episodes,
    *,
    steps: int | None = None,
    batching: Batching = "loop",
) -> Tensor:
    """Return the outputs of an adapted network on the query of every episode.

    Args:
        learner: used as it is, in training or evaluation mode.
        episodes: B episodes, on the learner's device.
        steps: inner steps, if not as many as in meta-training.
        batching: "loop" over the episodes, or all at once by "vmap".

    Returns:
        Shape [B, Q, ...].

    Raises:
        ConfigError: if `batching` is not known.
    """
    require_choice("batching", batching, Batching)

    def outputs(support: Examples, query: Examples) -> Tensor:
        phi = learner.adapt(*support, steps=steps).phi[-1]
        return learner.predict(phi, query[0])

    if batching == "loop":
        return torch.stack([outputs(*each) for each in episodes.one_by_one()])
    every: Tensor = vmap(outputs, randomness="different")(
        episodes.support, episodes.query
    )
    return every

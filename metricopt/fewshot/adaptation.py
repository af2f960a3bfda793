"""What a learner makes of many episodes: outputs, and a meta-gradient.

Episodes are adapted to one by one, or all at once by `vmap`.
"""

from functools import partial

import torch
from torch import Tensor
from torch.func import vmap

from metricopt.errors import require_choice, require_kind
from metricopt.fewshot.episodes import Episodes
from metricopt.fewshot.examples import Examples, tried_outputs
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
        ConfigError: if `batching` is not known, or episodes are something else;
            otherwise as `MetaLearner.adapt`.
    """
    require_choice("batching", batching, Batching)
    require_kind("episodes", episodes, Episodes, "Episodes(...)")

    def outputs(support: Examples, query: Examples) -> Tensor:
        phi = learner.adapt(*support, steps=steps).phi[-1]
        return tried_outputs(partial(learner.predict, phi), query[0])

    if batching == "loop":
        return torch.stack([outputs(*each) for each in episodes.one_by_one()])
    every: Tensor = vmap(outputs, randomness="different")(
        episodes.support, episodes.query
    )
    return every


def add_meta_gradient(
    learner: MetaLearner, episodes: Episodes, *, batching: Batching = "loop"
) -> float:
    """Return the mean query loss, and add its gradient to that of the meta-parameters.

    Args:
        learner: used as it is, in training or evaluation mode.
        episodes: B episodes, on the learner's device.
        batching: a "loop" keeps the graph of one episode at a time, "vmap" all of them.

    Raises:
        ConfigError: if `batching` is not known.
    """
    require_choice("batching", batching, Batching)
    if batching == "vmap":
        together = vmap(learner.query_loss, randomness="different")
        mean: Tensor = together(episodes.support, episodes.query).mean()
        mean.backward()
        return mean.item()
    total = 0.0
    for support, query in episodes.one_by_one():
        share = learner.query_loss(support, query) / len(episodes)
        share.backward()
        total += share.item()
    return total

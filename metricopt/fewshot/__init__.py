"""Few-shot learning: meta-learn a start and a geometry over many tasks.

An episode is a task with a few examples to adapt to, the support, and others to be
judged on, the query. `MetaLearner` adapts a network to an episode by a few steps of
mirror descent; `meta_train` learns where these steps start, and their geometry.

What a user needs is offered here; it is imported on first access.

Source: Finn et al., ICML 2017 (MAML); Zhang, Li, Giannakis, "Meta-learning with
versatile loss geometries", arXiv 2312.13486.
"""

from typing import TYPE_CHECKING

from metricopt.late_names import late_names

if TYPE_CHECKING:
    from metricopt.fewshot.adaptation import query_outputs
    from metricopt.fewshot.episodes import Episodes
    from metricopt.fewshot.meta_learner import MetaLearner
    from metricopt.fewshot.meta_training import meta_train
    from metricopt.fewshot.settings import MetaTrained, MetaTraining

__all__ = [
    "Episodes",
    "MetaLearner",
    "MetaTrained",
    "MetaTraining",
    "meta_train",
    "query_outputs",
]

__getattr__ = late_names(
    __name__,
    {
        "Episodes": ".episodes",
        "MetaLearner": ".meta_learner",
        "MetaTrained": ".settings",
        "MetaTraining": ".settings",
        "meta_train": ".meta_training",
        "query_outputs": ".adaptation",
    },
)

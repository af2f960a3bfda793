"""Episodes of publications and of this suite, by the names of their data sets."""

from dataclasses import replace

from benchmarks.data.few_shot.contract import PARTS
from benchmarks.problems.episodes.images import ImageSettings
from metricopt.errors import unknown_name

PROTOCOLS = {
    "miniimagenet": ImageSettings(dataset="miniimagenet"),
    # The public code of MAML turns characters to test, too: "and FLAGS.train" is
    # commented out there.
    "omniglot": ImageSettings(dataset="omniglot", split="maml-omniglot", rotated=PARTS),
    "omniglot-small": ImageSettings(
        dataset="omniglot-small", split="held-out-fifth", rotated=PARTS
    ),
    "tinyimagenet-fewshot100": ImageSettings(
        dataset="tinyimagenet-fewshot100", split="redrawn"
    ),
    "drawn-classes": ImageSettings(dataset="drawn-classes", queries=5),
}
"""5-way 1-shot settings by data set. A replicate draws its split of classes where no
publication fixes one."""


def episodes_of(dataset: str, *, ways: int, shots: int) -> ImageSettings:
    """Return the settings of a data set with 15 queries of a class, also in tests.

    Raises:
        ConfigError: if there is no such data set, or a number is not positive.
    """
    if dataset not in PROTOCOLS:
        raise unknown_name("few-shot data set", dataset, PROTOCOLS)
    return replace(PROTOCOLS[dataset], ways=ways, shots=shots)


def as_the_authors(settings: ImageSettings) -> ImageSettings:
    """Return settings with as many queries as shots of a class in episodes to test.

    Source: zhangyilang/MetaMirrorDescent, the code of the poster on mirror descent.
    """
    return replace(settings, test_queries=settings.shots)

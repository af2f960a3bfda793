"""The contract of a source that makes an episode by its number."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import torch

from benchmarks.data.few_shot.contract import PARTS, TEST
from metricopt.errors import ConfigError, require_counts
from metricopt.fewshot.episodes import Episodes
from metricopt.process.seeding import Seeds

TEST_EPISODES = 600
"""Episodes to test, as in the published tables."""


class EpisodeSource(ABC):
    """Episodes of one problem and replicate, as many as wanted.

    An episode depends on its part and number, the settings and the replicate alone, bit
    for bit. So a training that goes on after a stop needs no state of a generator, and
    all learners meet the same episodes.

    Args:
        seeds: seeds of everything random here, by problem and replicate.
        test_episodes: episodes to test, numbers 0 to `test_episodes` - 1.

    Raises:
        ConfigError: if `test_episodes` is no positive integer.
    """

    def __init__(self, seeds: Seeds, test_episodes: int = TEST_EPISODES) -> None:
        require_counts("a source", {"test_episodes": test_episodes}, "test_episodes")
        self.seeds, self.test_episodes = seeds, test_episodes

    @property
    @abstractmethod
    def data(self) -> dict[str, str]:
        """What records say of the data: `variant` and `digest`."""

    def batch(self, part: str, numbers: Sequence[int]) -> Episodes:
        """Return the episodes of some numbers.

        Args:
            part: `train`, `val` or `test`: no two share a class.
            numbers: from 0 on, at least one.

        Raises:
            ConfigError: if there is no such part, or a number is negative.
        """
        if part not in PARTS:
            raise ConfigError(f"expected a part of {', '.join(PARTS)}, got {part!r}")
        if not numbers or min(numbers) < 0:
            raise ConfigError(
                f"expected at least one episode, numbered from 0 on, got {[*numbers]}"
            )
        made = [self._episode(part, number) for number in numbers]
        parts = zip(*(each.tensors() for each in made), strict=True)
        return Episodes(*(torch.stack(each) for each in parts))

    def tests(self, at_once: int = 1) -> Iterator[Episodes]:
        """Yield all episodes to test, in their order.

        Args:
            at_once: episodes in a batch; the last one may have fewer.

        Raises:
            ConfigError: if `at_once` is no positive integer.
        """
        require_counts("a batch", {"at_once": at_once}, "at_once")
        for start in range(0, self.test_episodes, at_once):
            stop = min(start + at_once, self.test_episodes)
            yield self.batch(TEST, range(start, stop))

    @abstractmethod
    def _episode(self, part: str, number: int) -> Episodes:
        """Return one episode, without the dimension B."""

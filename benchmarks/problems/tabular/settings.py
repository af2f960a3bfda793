"""What decides a tabular pipeline: problem, MLP, biases and fine-tuning."""

from dataclasses import dataclass
from typing import Literal

from benchmarks.data.registry import variant_shape
from benchmarks.runs.codec import later

SPLIT_ENDS = (0.7, 0.8)
"""Where train and observe end, as shares of all examples in random order."""


def split_ends(examples: int) -> list[int]:
    """Return where train and observe end among so many examples in random order."""
    return [int(examples * share) for share in SPLIT_ENDS]


@dataclass(frozen=True)
class BinaryProblem:
    """A binary problem made of a data set.

    Attributes:
        dataset: name of the data set.
        variant: variant of the data set.
        positive: classes that count as positive.
        max_examples: examples used, splits included; None for all.
    """

    dataset: str
    variant: str
    positive: tuple[int, ...]
    max_examples: int | None = None

    @property
    def test_per_train(self) -> float:
        """Examples tested on per example trained on, in the random splits."""
        learned, observed = SPLIT_ENDS
        return (1 - observed) / learned

    @property
    def observed(self) -> int:
        """Examples of the observe split."""
        used, *_ = variant_shape(self.dataset, self.variant)
        learned, observed = split_ends(min(used, self.max_examples or used))
        return observed - learned


@dataclass(frozen=True)
class MLPBackbone:
    """An MLP and how it is trained, by Adam.

    Attributes:
        epochs: length of training, with the best epoch kept.
        batch_size: examples in one mini-batch of training.
        learning_rate: greatest rate.
        hidden: widths of the hidden layers.
        slope: slope of the leaky ReLU.
        dropout: probability of dropping a unit.
    """

    epochs: int
    batch_size: int
    learning_rate: float = 5e-3
    hidden: tuple[int, ...] = (100, 30, 10)
    slope: float = 0.01
    dropout: float = 0.2


@dataclass(frozen=True)
class BiasSettings:
    """The adapter: `size` dynamic input biases; `offsets` stand beside them, or not."""

    size: int = 16
    offsets: bool = later(False)


@dataclass(frozen=True)
class TabularFinetuning:
    """Mini-batches of fine-tuning: `batch_size` examples each."""

    batch_size: int = 64


@dataclass(frozen=True)
class TabularSettings:
    """Everything that decides a tabular pipeline, except its replicate.

    Attributes:
        problem: the data.
        sampling: `natural` or `balanced` mini-batches.
        backbone: the network.
        revision: raised when code changes numbers, so that no old record is reused.
        adapter: dynamic input biases.
        finetune: mini-batches of fine-tuning.
    """

    problem: BinaryProblem
    sampling: Literal["natural", "balanced"]
    backbone: MLPBackbone
    revision: int
    adapter: BiasSettings = BiasSettings()
    finetune: TabularFinetuning = TabularFinetuning()

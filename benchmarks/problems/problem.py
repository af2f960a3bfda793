"""The problem: data, network, training and adapter at a tier, which rows are run on."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Self

from benchmarks.problems.size import Size
from benchmarks.runs.spec import Unit

UNRESOLVED = ""
"""Variant of a data set before it is known which one is here."""


@dataclass(frozen=True, kw_only=True)
class Problem(ABC):
    """One problem at a tier, as tables and rows ask for it.

    Attributes:
        name: short name in the names of columns.
        size: how often, how long and with how many queries rows are run.
        deviation: standard deviation of the first samples of a search; None for the
            default of each search.
        reach: largest offset of a class that the search by coordinates tries.
        classes: number of classes that outputs score; 0 for embeddings and regions.
        has_offsets: whether an adapter can have an offset for every output.
        is_pictured: whether a run can keep a picture of what it changed.
        phi_size: number of parameters d of the adapter, without offsets.
    """

    name: str
    size: Size
    deviation: float | None = None
    reach: float = 1.0
    classes: ClassVar[int] = 0
    has_offsets: ClassVar[bool] = True
    is_pictured: ClassVar[bool] = False
    phi_size: ClassVar[int] = 128

    @property
    def search_settings(self) -> dict[str, float]:
        """Settings of every search by queries here."""
        return {} if self.deviation is None else {"deviation": self.deviation}

    @property
    def test_per_train(self) -> float:
        """Test examples per training example in random splits; 0 for a shared test."""
        return 0.0

    def here(self, offline: bool | None) -> Self:
        """Return the problem with the data that is here, downloaded if it may be.

        Args:
            offline: see `benchmarks.data.registry.resolve_variant`.
        """
        return self

    @abstractmethod
    def pipeline(self, *, offsets: bool = False) -> Unit:
        """Return the pipeline that runs it, with output offsets if they are wanted."""

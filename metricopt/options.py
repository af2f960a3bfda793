"""Everything about `finetune` that has a default."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from torch import Tensor, nn

from metricopt.adapters.auto import auto_adapter
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.errors import ConfigError
from metricopt.methods.contract import Method
from metricopt.tasks.sampling import Sampler

FRAMING_QUERIES = 2
"""Queries outside the method: the untouched network and the method's proposal."""


@dataclass(frozen=True)
class FinetuneOptions:
    """Everything about `finetune` that has a default.

    Attributes:
        method: the name of a method in `METHODS`, or a method with settings of its own.
            "guided-cma" and "cma-es" get further than "metricopt" on few queries.
        queries: metric queries in all, at least 2; no method can make more.
        steps: gradient steps T; None for 50 where d <= 32, else 100.
        adapter: "auto" for `auto_adapter`, or an adapter of the model.
        size: size d of the automatic adapter; None for its default.
        sites: modules the automatic adapter modulates; None for its default.
        sampler: draws mini-batches from train; uniform ones of 128 if None.
        higher_is_better: direction of a metric without one; see `make_metric`.
        seed: seed of all randomness, except in a loader that shuffles.
        progress: whether a terminal shows the queries made and the time left.
    """

    method: str | Method = "metricopt"
    queries: int = 600
    steps: int | None = None
    adapter: NetworkAdapter | Literal["auto"] = "auto"
    size: int | None = None
    sites: Sequence[str] | Literal["stages"] | None = None
    sampler: Sampler | None = None
    higher_is_better: bool | None = None
    seed: int = 0
    progress: bool = True

    def __post_init__(self) -> None:
        if self.queries < FRAMING_QUERIES:
            raise ConfigError(
                "queries must be at least 2, one for the untouched network and one for "
                f"what the method proposes, got {self.queries}"
            )
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"steps must be at least 1, got {self.steps}")
        if not isinstance(self.method, str | Method):
            raise ConfigError(f"method must be a name or a Method, got {self.method!r}")
        if isinstance(self.adapter, NetworkAdapter):
            if self.size is not None or self.sites is not None:
                raise ConfigError(
                    "size and sites are settings of adapter='auto'; leave them out "
                    "with an adapter of your own"
                )
        elif self.adapter != "auto":
            raise ConfigError(
                f"adapter must be 'auto' or an adapter, got {self.adapter!r}"
            )

    def adapter_of(self, model: nn.Module, example_input: Tensor) -> NetworkAdapter:
        """Return the adapter of a model; an automatic one is made now.

        Args:
            model: the network theta.
            example_input: network inputs, shape [N, ...]; a few are enough.

        Raises:
            ConfigError: if the adapter is for another model, or none can be made.
        """
        if isinstance(self.adapter, NetworkAdapter):
            if self.adapter.network is not model:
                raise ConfigError(
                    "the adapter was made for another model; make one for this model"
                )
            return self.adapter
        return auto_adapter(
            model, example_input, size=self.size, sites=self.sites, seed=self.seed
        )

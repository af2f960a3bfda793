"""Everything about `finetune` that has a default."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from metricopt.adapters.auto import auto_adapter
from metricopt.adapters.network_adapter import NetworkAdapter
from metricopt.errors import ConfigError, require_choice
from metricopt.meaning.contract import PLAIN, Kind, Meaning
from metricopt.meaning.decision import meaning_of
from metricopt.methods.contract import Method, resolve_method
from metricopt.metrics.base import Metric
from metricopt.metrics.callables import make_metric
from metricopt.outputs import Reads
from metricopt.tasks.examples import Examples
from metricopt.tasks.row_losses import Loss
from metricopt.tasks.sampling import Sampler
from metricopt.values.known import Known

FRAMING_QUERIES = 3
"""Queries outside the method: the untouched network, the same with the examples in
another order, and the method's proposal."""
AUTO = "auto"
LOOKED_AT = 256
"""Examples whose outputs decide what outputs mean."""


@dataclass(frozen=True)
class FinetuneOptions:
    """Everything about `finetune` that has a default.

    Attributes:
        method: the name of a method in `METHODS`, or a method with settings of its own.
            "auto" is "metricopt-outputs" where the network returns class outputs
            and targets are labels, else "guided-cma".
        queries: metric queries in all, at least 3; no method can make more, and some
            stop before.
        steps: gradient steps T; None for 50 where d <= 32, else 100.
        adapter: "auto" for `auto_adapter`, or an adapter of the model.
        size: size d of the automatic adapter; None for its default.
        sites: modules the automatic adapter modulates; None for its default.
        sampler: draws mini-batches from train; uniform ones of 128 if None.
        higher_is_better: direction of a metric without one; see `make_metric`.
        low: least possible value of a metric; see `make_metric`.
        high: greatest possible value of a metric.
        outputs: what the outputs of the network are; None to decide by the outputs, the
            targets and the loss. See `metricopt.meaning`.
        seed: seed of all randomness, except in a loader that shuffles.
        no_harm: whether the untouched network is returned where there is no evidence
            of a gain on other data. "metricopt-outputs" always asks for it; for other
            methods it takes 12 queries.
        progress: whether a terminal shows the queries made and the time left.
        known: what a call for another network learned of the same metric, `known` of
            its result; see `metricopt.values.known` for what it is good for.
    """

    method: str | Method = AUTO
    queries: int = 50
    steps: int | None = None
    adapter: NetworkAdapter | Literal["auto"] = "auto"
    size: int | None = None
    sites: Sequence[str] | Literal["stages"] | None = None
    sampler: Sampler | None = None
    higher_is_better: bool | None = None
    low: float | None = None
    high: float | None = None
    outputs: Kind | None = None
    seed: int = 0
    no_harm: bool = True
    progress: bool = True
    known: Known | None = None

    def __post_init__(self) -> None:
        self._check_types()
        if self.queries < FRAMING_QUERIES:
            raise ConfigError(
                f"queries must be at least {FRAMING_QUERIES}, two for the untouched "
                "network and one for what the method proposes, got "
                f"{self.queries}"
            )
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"steps must be at least 1, got {self.steps}")
        if not isinstance(self.method, str | Method):
            raise ConfigError(f"method must be a name or a Method, got {self.method!r}")
        if self.outputs is not None:
            require_choice("outputs", self.outputs, Kind)
        if self.method != AUTO:
            resolve_method(self.method)
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

    def _check_types(self) -> None:
        for name in ("queries", "steps", "size", "seed"):
            given = getattr(self, name)
            missing = given is None and name in ("steps", "size")
            if not missing and (isinstance(given, bool) or not isinstance(given, int)):
                raise ConfigError(f"{name} must be a whole number, got {given!r}")
        if self.known is not None and not isinstance(self.known, Known):
            raise ConfigError(f"known must be a Known or None, got {self.known!r}")
        for name in ("no_harm", "progress"):
            if not isinstance(getattr(self, name), bool):
                raise ConfigError(
                    f"{name} must be True or False, got {getattr(self, name)!r}"
                )

    def metric_of(self, metric: object) -> Metric:
        """Return the metric that a user gave, with what is declared about it."""
        return make_metric(
            metric,
            higher_is_better=self.higher_is_better,
            low=self.low,
            high=self.high,
        )

    @torch.no_grad()
    def meaning_of(
        self, model: nn.Module, observe: Examples, loss: Loss, reads: Reads
    ) -> Meaning:
        """Return what the outputs of a model mean, judged by some of them.

        Args:
            model: the network theta; put in evaluation mode.
            observe: examples with all their targets.
            loss: the training loss.
            reads: what the metric reads.

        Raises:
            ConfigError: if it is not clear, or not what `outputs` says.
        """
        if reads != "scores":
            return Meaning("embeddings" if reads == "embeddings" else "raw")
        outputs = model.eval()(observe.batch(slice(LOOKED_AT)))
        return meaning_of(outputs, observe.targets, loss=loss, told=self.outputs)

    def adapter_of(
        self, model: nn.Module, example_input: Tensor, meaning: Meaning = PLAIN
    ) -> NetworkAdapter:
        """Return the adapter of a model; an automatic one is made now.

        Args:
            model: the network theta.
            example_input: network inputs, shape [N, ...]; a few are enough.
            meaning: of its outputs.

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
            model,
            example_input,
            size=self.size,
            sites=self.sites,
            seed=self.seed,
            offsets=meaning,
        )

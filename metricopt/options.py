"""Everything about `finetune` that has a default."""

import inspect
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Real
from typing import Any, Literal

from metricopt.adapters.base import NetworkAdapter
from metricopt.errors import (
    ConfigError,
    described,
    require_choice,
    require_kind,
    require_ranges,
    require_whole,
    unknown_name,
)
from metricopt.methods.contract import METHODS, Method
from metricopt.methods.known import Known
from metricopt.metrics.constrained import CONFIDENCE, Bound
from metricopt.process.watch import Callback
from metricopt.reading.layout import Layout
from metricopt.reading.meaning import Kind
from metricopt.registry import find
from metricopt.tasks.sampling import Sampler

FRAMING_QUERIES = 3
"""Queries outside the method: the untouched network, the same with the examples in
another order, and the method's proposal."""
AUTO = "auto"
MOST = {
    "queries": (100_000, "every queried phi is kept, and learned from"),
    "steps": (100_000, "every phi on the way is kept"),
    "size": (10_000, "a search keeps a covariance matrix, d by d"),
}
"""Greatest numbers, and why."""
KINDS: dict[str, tuple[Any, str]] = {
    "method": (str | Method, "a name or a Method"),
    "adapter": (str | NetworkAdapter, "'auto' or an adapter"),
    "sampler": (Sampler | None, "a Sampler or None"),
    "higher_is_better": (bool | None, "True, False or None"),
    "low": (Real | None, "a number or None"),
    "high": (Real | None, "a number or None"),
    "check_direction": (bool, "True or False"),
    "no_harm": (bool, "True or False"),
    "level": (Real | None, "a number or None"),
    "progress": (bool, "True or False"),
    "known": (Known | None, "what load_known(path) or `known` of a result is, or None"),
    "objective": (str | None, "a key of the metric's dictionary or None"),
    "confidence": (Real, "a number"),
    "clusters": (str | None, "the name of a column or None"),
    "callback": (Callable | None, "a function or None"),
    "timeout": (Real | None, "a number of seconds or None"),
    "checkpoint": (str | os.PathLike | None, "the name of a file or None"),
}
"""Kinds of other options, and what a message calls them."""


@dataclass(frozen=True)
class FinetuneOptions:
    """Everything about `finetune` that has a default.

    Attributes:
        method: the name of a method in `METHODS`, or a method with settings of its own.
            "auto" is "metricopt-outputs" for class outputs with labels, several
            labels, predicted values, embeddings and detections, else "guided-cma". By
            name, "metricopt-outputs" ends as soon as it knows the metric well enough; a
            `MetricOptOutputs` of your own ends as its `search.enough` says.
        queries: metric queries in all, up to 100,000; no method can make more, and
            some stop before. "metricopt-outputs" needs 4, any other method 16 or more,
            or 3 or more without `no_harm`; a declared direction takes up to 2.
        steps: gradient steps T, up to 100,000; None for 50 where d <= 32, else 100.
        adapter: "auto" for `auto_adapter`, or an adapter of the model.
        size: size d of the automatic adapter, up to 10,000; None for its default.
        sites: modules the automatic adapter modulates; None for its default.
        sampler: draws mini-batches from train; uniform ones of 128 if None.
        higher_is_better: direction of a metric without one; see `make_metric`.
        check_direction: whether a declared direction is tried on perfect predictions,
            which takes up to 2 queries. Some metrics, such as a gap between groups, are
            not best there. One that fails there is not checked, with a warning.
        low: a promise that no value of a callable is less; see `make_metric`.
        high: a promise that no value of a callable is greater.
        constraints: bounds on further metrics, `at_least(metric, value)` and
            `at_most(metric, value)`, which every query observes, too.
        objective: the number to improve, if the metric is a function that returns a
            dictionary of numbers: its key. Bounds name others.
        confidence: probability with which all bounds are to be met on other data.
        outputs: what the outputs of the network are; None to decide by the outputs, the
            targets and the loss. See `metricopt.Meaning`.
        clusters: a column of observe that names what its examples belong to, such as
            a patient with several images: at least ten. Folds and bootstrap samples
            then hold whole clusters, and the expected gain is that on new ones. None
            if each example stands for itself.
        layout: where the classes of outputs for every pixel or token are: "channels"
            for [N, C, ...], "tokens" for [N, ..., C]; None to decide by the shapes, and
            by the loss where they leave a doubt.
        seed: seed of all randomness, except in a loader that shuffles.
        no_harm: whether phi is 0 where there is no evidence of a gain on other data.
            "metricopt-outputs" always asks for it, also if this is False; for other
            methods it takes 12 queries.
        level: standard errors by which the expected gain has to exceed 0, or phi is 0;
            1.96 asks for significance. None asks for 2/3 of an error, and before the
            gain has paid for the choice of the best of several descents.
        progress: whether a terminal shows the queries made and the time left; without a
            terminal, a line every 30 seconds does.
        callback: called as f(query, value, best) after every query of the whole observe
            split, in the metric's own unit. If it returns True, the search ends there.
        timeout: seconds after which the call should have ended. The search stops asking
            before, and "metricopt-outputs" concludes from what it knows then; any other
            method returns the best phi it observed. A long conclusion ends early, too,
            and a check on parts of observe makes as many queries as there is time for.
            Where the network is too slow for that, the automatic adapter is output
            offsets alone.
        known: what a call for another network learned of the same metric, `known` of
            its result; see `metricopt.methods.known` for what it is good for.
        checkpoint: a file in which every answer of the metric is kept as soon as it is
            there. The same call, made again after whatever ended it, goes on where it
            was, and has the same result to the last bit. After a search that the
            timeout or the callback ended, it searches on. None for no file.
        retries: how often a query that fails is asked again at once; that is not
            counted as a query. Whatever it is, one query in three may fail: it counts
            as the worst value so far, and the result says so.
    """

    method: str | Method = AUTO
    queries: int = 50
    steps: int | None = None
    adapter: NetworkAdapter | Literal["auto"] = "auto"
    size: int | None = None
    sites: Sequence[str] | Literal["stages"] | None = None
    sampler: Sampler | None = None
    higher_is_better: bool | None = None
    check_direction: bool = True
    low: float | None = None
    high: float | None = None
    constraints: Sequence[Bound] = ()
    objective: str | None = None
    confidence: float = CONFIDENCE
    outputs: Kind | None = None
    layout: Layout | None = None
    clusters: str | None = None
    seed: int = 0
    no_harm: bool = True
    level: float | None = None
    progress: bool = True
    callback: Callback | None = None
    timeout: float | None = None
    known: Known | None = None
    checkpoint: str | os.PathLike[str] | None = None
    retries: int = 0

    def __post_init__(self) -> None:
        self._check_numbers()
        self._check_kinds()
        if self.queries < FRAMING_QUERIES:
            raise ConfigError(
                f"queries must be at least {FRAMING_QUERIES}, two for the untouched "
                "network and one for what the method proposes, got "
                f"{self.queries}"
            )
        own = isinstance(self.adapter, NetworkAdapter)
        if own and not (self.size is None and self.sites is None):
            raise ConfigError(
                "size and sites are settings of adapter='auto'; leave them out with an "
                "adapter of your own"
            )
        if self.outputs is not None:
            require_choice("outputs", self.outputs, Kind)
        if self.layout is not None:
            require_choice("layout", self.layout, Layout)
        if self.level is not None:
            require_ranges("finetune", vars(self), level="in [0, inf)")

    def _check_numbers(self) -> None:
        for name in ("queries", "steps", "size", "seed", "retries"):
            given = getattr(self, name)
            if given is None and name in ("steps", "size"):
                continue
            whole = require_whole(name, given)
            object.__setattr__(self, name, whole)  # numpy's whole numbers, too
            most, reason = MOST.get(name, (whole, ""))
            if whole > most:
                raise ConfigError(
                    f"{name} must be at most {most:,}, as {reason}, got {whole:,}"
                )
            least = {"steps": 1, "size": 1, "retries": 0}.get(name, whole)
            if whole < least:
                raise ConfigError(f"{name} must be at least {least}, got {whole}")

    def _check_kinds(self) -> None:
        for name, (kind, expected) in KINDS.items():
            require_kind(name, getattr(self, name), kind, expected)
        if self.checkpoint is not None and not os.fspath(self.checkpoint):
            raise ConfigError("checkpoint must be the name of a file or None, got ''")
        if self.callback is not None and not _takes_queries(self.callback):
            raise ConfigError(
                "callback is called as f(query, value, best) and must take these three "
                f"by position, got {described(self.callback)}"
            )
        method = self.method
        if isinstance(method, str) and method != AUTO:
            find(method, METHODS, also=(AUTO,))
        if isinstance(self.adapter, str) and self.adapter != AUTO:
            raise ConfigError(
                f"adapter must be 'auto' or an adapter, got {self.adapter!r}"
            )
        require_ranges("finetune", vars(self), confidence="in (0, 1)", timeout="> 0")
        if not _are_bounds(self.constraints):
            raise ConfigError(
                "constraints must be a list of at_least(metric, value) and "
                f"at_most(metric, value), got {described(self.constraints)}"
            )
        if self.constraints and self.known is not None:
            raise ConfigError(
                "what is known of a metric says nothing of bounds on others: leave out "
                "known= or constraints="
            )
        if not _are_sites(self.sites):
            raise ConfigError(
                "sites must be a list of module names, 'stages' or None, got "
                f"{described(self.sites)}"
            )

    def changed(self, **settings: Any) -> "FinetuneOptions":
        """Return these options with others for some; ConfigError for unknown ones."""
        known = [field.name for field in fields(self)]
        for name in settings:
            if name not in known:
                raise unknown_name("option", name, known)
        return replace(self, **settings)


def _are_sites(sites: object) -> bool:
    if isinstance(sites, str) or not isinstance(sites, Sequence):
        return sites in (None, "stages")
    return all(isinstance(name, str) for name in sites)


def _are_bounds(constraints: object) -> bool:
    if isinstance(constraints, str) or not isinstance(constraints, Sequence):
        return False
    return all(isinstance(bound, Bound) for bound in constraints)


def _takes_queries(callback: Callback) -> bool:
    try:
        inspect.signature(callback).bind(1, 0.0, 0.0)
    except TypeError:
        return False
    except ValueError:
        pass  # a built-in function that does not say what it takes
    return True

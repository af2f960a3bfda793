"""What queries on one network revealed of a metric, for use on another network.

Of statistics: a metric is the same function of outputs and labels whichever network
makes the outputs. So queries on any network with the same classes can be looked up on
another; no adapter has to be shared. A search holds what is known against its own
queries, and forgets what does not predict them.

Of phi: a value function of phi says something of another network only as far as phi
does the same there. It needs the same size d and one generator: form "shared" of
`FiLM`. Even then nothing makes the channels of two networks mean the same.

Of steps: a learned optimizer moves phi of any size, on any network. It was trained on
one, for one length of runs, and is at its best there.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace

from safetensors.torch import save
from torch import Tensor

from metricopt.errors import ConfigError, require_kind
from metricopt.files import read_own, told, user_path, write_atomically
from metricopt.learned_optimizers.contract import LearnedOptimizer
from metricopt.learned_optimizers.saved import (
    FORMAT,
    load_optimizer,
    save_optimizer,
)
from metricopt.metrics.base import from_cost, to_cost
from metricopt.metrics.scale import Scale
from metricopt.statistics.contract import Groups

STATISTICS, PHI = "metricopt-known-statistics-1", "metricopt-known-phi-1"
COSTS = "costs"
PHI_MEANS = {
    "adapter": "kind of adapter",
    "size": "size d of phi",
    "form": "form of FiLM",
    "seed": "seed of the generator",
}
"""What two adapters have in common whose phi means about the same, by name."""


class Known:
    """What is known of a metric: of statistics, of phi, or of the steps towards it."""

    def made_for(self, adapter: Mapping[str, str]) -> "Known":
        """Return the same, with the adapter it was learned with where that matters."""
        return self


@dataclass(frozen=True)
class KnownStatistics(Known):
    """Statistics of outputs, with what the metric said of them.

    Attributes:
        groups: statistics of n queries, float64, [n, q] each.
        costs: costs of these queries, float64, shape [n].
        scale: on which the metric's values had these costs; None if that is not known,
            as in files of earlier versions.
    """

    groups: Groups
    costs: Tensor
    scale: Scale | None = None

    def on(self, scale: Scale) -> "KnownStatistics":
        """Return the same with costs on another scale; as it is if its own is unknown.

        A metric without a range has a scale of its own in every call.
        """
        if self.scale in (None, scale):
            return self
        costs = to_cost(scale, from_cost(self.scale, self.costs))
        return KnownStatistics(self.groups, costs, scale)

    def check(self, groups: Groups) -> None:
        """Check that statistics [B, q] each, of another network, are the same.

        ConfigError is raised if a group is missing on one side, or has another size, as
        with another number of classes.
        """
        before = {name: values.shape[1] for name, values in self.groups.items()}
        now = {name: values.shape[1] for name, values in groups.items()}
        for name in sorted(before.keys() | now.keys()):
            if before.get(name) != now.get(name):
                raise ConfigError(
                    "what is known of a metric can be used on a network with the same "
                    "statistics, and so the same number of classes: expected "
                    f"{_numbers(name, now)}, got {_numbers(name, before)}"
                )


@dataclass(frozen=True)
class KnownValueFunction(Known):
    """A value function of phi.

    Attributes:
        tensors: weights of the value function, by name.
        facts: numbers that go with it, by name.
        adapter: what gives phi its meaning; see `NetworkAdapter.describe`.
    """

    tensors: dict[str, Tensor]
    facts: dict[str, float]
    adapter: Mapping[str, str] = field(default_factory=dict)

    def made_for(self, adapter: Mapping[str, str]) -> "KnownValueFunction":
        """Return the same with what gives phi its meaning."""
        return replace(self, adapter=dict(adapter))

    def check(self, adapter: Mapping[str, str]) -> None:
        """Raise ConfigError if phi has another size or generator in an adapter."""
        for name, meaning in PHI_MEANS.items():
            before, now = self.adapter.get(name), adapter.get(name)
            if before != now:
                raise ConfigError(
                    "a value function of phi can be used on a network with the same "
                    f"{meaning}: expected {now or 'none'}, got {before or 'none'}"
                )


@dataclass(frozen=True)
class KnownOptimizer(Known):
    """A learned optimizer of phi, which was meta-trained before.

    Attributes:
        optimizer: any, with whatever inputs.
        tasks: what it was trained on, in words.
    """

    optimizer: LearnedOptimizer
    tasks: str


def save_known(path: str | os.PathLike[str], known: Known) -> None:
    """Write what is known to a safetensors file, which is complete or absent.

    The file of an optimizer is the one that `save_optimizer` writes.

    Raises:
        ConfigError: if nothing is known, as from a method that learns nothing.
    """
    require_kind("known", known, Known, "what a result has in `known`")
    if isinstance(known, KnownOptimizer):
        save_optimizer(path, known.optimizer, tasks=known.tasks)
        return
    if isinstance(known, KnownStatistics):
        tensors = {**known.groups, COSTS: known.costs}
        facts = {"format": STATISTICS}
        if known.scale is not None:
            facts["scale"] = json.dumps(asdict(known.scale))
    else:
        assert isinstance(known, KnownValueFunction)
        tensors = known.tensors
        facts = {
            "format": PHI,
            "facts": json.dumps(known.facts),
            "adapter": json.dumps(dict(known.adapter)),
        }
    whole = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(user_path(path), save(whole, metadata=facts))


def load_known(path: str | os.PathLike[str]) -> Known:
    """Read what `save_known` or `save_optimizer` wrote.

    Raises:
        ConfigError: if there is no such file, or neither of them wrote it.
    """
    path = user_path(path)
    tensors, metadata = read_own(path, "save_known")
    written = metadata.get("format", "of another program")
    if written == FORMAT:
        saved = load_optimizer(path)
        return KnownOptimizer(saved.optimizer, saved.tasks)
    readers = {STATISTICS: _statistics, PHI: _value_function}
    if written not in readers:
        raise ConfigError(
            f"{path} must hold what save_known writes, got the format {written}"
        )
    try:
        return readers[written](tensors, metadata)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ConfigError(
            f"{path} is damaged, no part of it is used: {told(error)}; save it again"
        ) from error


def _statistics(
    tensors: dict[str, Tensor], metadata: Mapping[str, str]
) -> KnownStatistics:
    """Return the statistics in a file; raise what the damage raises."""
    costs = tensors.pop(COSTS)
    queries = costs.shape[0] if costs.ndim == 1 else 0
    for name, values in {COSTS: costs[:, None], **tensors}.items():
        if values.ndim != 2 or len(values) != queries or not _is_finite(values):
            raise ValueError(f"{name} must hold finite numbers of every query")
    if "scale" not in metadata:
        return KnownStatistics(tensors, costs)
    scale = Scale(**json.loads(metadata["scale"]))
    if not math.isfinite(scale.high - scale.low) or scale.low >= scale.high:
        raise ValueError("scale must have finite ends low < high")
    return KnownStatistics(tensors, costs, scale)


def _value_function(
    tensors: dict[str, Tensor], metadata: Mapping[str, str]
) -> KnownValueFunction:
    """Return the value function in a file; raise what the damage raises."""
    facts, adapter = (json.loads(metadata[name]) for name in ("facts", "adapter"))
    if not (isinstance(facts, dict) and isinstance(adapter, dict)):
        raise TypeError("facts and adapter must be named")
    for name, fact in facts.items():
        if not math.isfinite(fact):
            raise ValueError(f"{name} must be finite")
    for name, values in tensors.items():
        if not _is_finite(values):
            raise ValueError(f"{name} must be finite")
    return KnownValueFunction(tensors, facts, adapter)


def _is_finite(values: Tensor) -> bool:
    return bool(values.isfinite().all())


def _numbers(name: str, sizes: Mapping[str, int]) -> str:
    if name not in sizes:
        return f"no group {name!r}"
    return f"{sizes[name]} numbers in the group {name!r}"

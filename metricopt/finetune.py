"""The library's one call: fine-tune a model towards the metric it is judged by."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn
from tqdm import tqdm

from metricopt.adapters.auto import auto_adapter
from metricopt.adapters.site_adapter import SiteAdapter
from metricopt.errors import ConfigError, MetricOptError
from metricopt.examples import Examples, as_split
from metricopt.finetuned import Finetuned, Spent
from metricopt.method import METHODS, Method
from metricopt.metrics import from_cost, make_metric
from metricopt.network_task import Loss
from metricopt.observations import Budget
from metricopt.recorded_task import RecordedTask
from metricopt.registry import import_units
from metricopt.result import FinetuneResult
from metricopt.sampling import Sampler
from metricopt.seeding import make_generator

EXAMPLES = 4
"""Examples an adapter is fitted to the network with."""
SMALL = 32
"""Greatest size of phi for which 50 steps are taken, and not 100."""
FRAMING_QUERIES = 2
"""Queries of the untouched network and of what the method proposes."""


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
        higher_is_better: direction of a metric that does not tell; see `make_metric`.
        seed: of all randomness but that of a shuffling loader.
        progress: whether a terminal shows the queries made and the time left.
    """

    method: str | Method = "metricopt"
    queries: int = 600
    steps: int | None = None
    adapter: SiteAdapter | Literal["auto"] = "auto"
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
                f"what replaces it, got {self.queries}"
            )
        if self.steps is not None and self.steps < 1:
            raise ConfigError(f"steps must be at least 1, got {self.steps}")
        if not isinstance(self.method, str | Method):
            raise ConfigError(f"method must be a name or a Method, got {self.method!r}")
        if isinstance(self.adapter, SiteAdapter):
            if self.size is not None or self.sites is not None:
                raise ConfigError(
                    "size and sites belong to adapter='auto', got an adapter with them"
                )
        elif self.adapter != "auto":
            raise ConfigError(
                f"adapter must be 'auto' or an adapter, got {self.adapter!r}"
            )


DEFAULTS = FinetuneOptions()
CPU = torch.device("cpu")


def finetune(
    model: nn.Module,
    *,
    train: Examples,
    observe: Examples,
    loss: Loss,
    metric: object,
    options: FinetuneOptions = DEFAULTS,
) -> Finetuned:
    """Find a small phi that improves a metric of a pre-trained model.

    The model is frozen and put in evaluation mode; its weights do not change. One
    query each goes to the untouched network and to what the method proposes, and the
    better of the two is returned.

    Args:
        model: the network theta, from inputs [n, ...] to outputs [n, C].
        train: examples the loss gradients come from; see `as_split` for the forms.
        observe: examples the metric is queried on; best not those of `train`.
        loss: `(outputs [n, C], targets [n]) -> scalar`, differentiable.
        metric: the black box: whatever `make_metric` accepts, such as the name of a
            metric, a function of `sklearn.metrics`, or a `Metric`.
        options: everything else.

    Returns:
        phi with what it gained and cost; `apply` puts it into the model.

    Raises:
        ConfigError: if a setting or name is not possible.
        DataError: if a split is empty, or holds one class where the metric needs two.
        MetricError: if the metric fails, or declares the wrong direction.
        DivergedError: if the loss becomes non-finite.
        BudgetExceededError: if a method of the user's asks for too many queries.

        All raised after the first query carry the best phi observed until then, as a
        `Finetuned` in their attribute `partial`.

    Source: Huang et al., CVPR 2021, Alg. 1. Differs: keeps the untouched network where
        what the method proposes is worse.
    """
    started = time.perf_counter()
    method = resolve_method(options.method)
    black_box = make_metric(metric, higher_is_better=options.higher_is_better)
    device = next((weight.device for weight in model.parameters()), CPU)
    train = as_split(train, name="train", device=device)
    observe = as_split(observe, name="observe", device=device)
    adapter = _adapter(model, train.inputs[:EXAMPLES], options)
    task = RecordedTask(
        adapter,
        loss,
        black_box,
        train=train,
        observe=observe,
        sampler=options.sampler,
    )
    hidden = None if options.progress else True  # None: hidden where no one looks
    with tqdm(total=options.queries, unit=" queries", disable=hidden) as bar:
        task.on_query = bar.update
        untouched = _untouched(task, adapter, options)
        try:
            found = _improve(task, method, untouched, options)
        except MetricOptError as error:
            error.partial = _best_so_far(task, untouched, started)
            error.add_note(f"best so far, in `partial`: {error.partial.summary()}")
            raise
    return replace(found, spent=_spent(task, found.spent.gradient_steps, started))


def resolve_method(method: str | Method) -> Method:
    """Return a method by its name, with its default settings, or as it is.

    Raises:
        ConfigError: if there is no method of that name; the message lists the known.
    """
    if isinstance(method, Method):
        return method
    # Not imported before it is needed: gpytorch and scipy take seconds.
    import metricopt.methods

    import_units(metricopt.methods)
    return METHODS.get(method)()


def suited(method: Method, budget: Budget) -> Method:
    """Return a method with the length of its trajectories suited to a budget.

    MetricOpt learns from trajectories as long as the run it then guides, each observed
    at 5 % of its steps, three at the least; a twentieth of the queries goes to a check
    of its value function, where that makes four trajectories or more.
    """
    from metricopt.methods.metricopt import LiteralMetricOpt, MetricOpt

    if not isinstance(method, MetricOpt | LiteralMetricOpt):
        return method
    steps = budget.gradient_steps
    observations = min(steps, max(3, math.ceil(steps / 20)))
    rollout = replace(method.recipe.rollout, steps=steps, observations=observations)
    method = replace(method, recipe=replace(method.recipe, rollout=rollout))
    checked = budget.queries // (20 * observations)
    if isinstance(method, MetricOpt) and checked >= 4:
        method = replace(method, health_tasks=checked)
    return method


def _adapter(
    model: nn.Module, example_input: Tensor, options: FinetuneOptions
) -> SiteAdapter:
    if isinstance(options.adapter, str):
        return auto_adapter(
            model,
            example_input,
            size=options.size,
            sites=options.sites,
            seed=options.seed,
        )
    if options.adapter.network is not model:
        raise ConfigError("the adapter must be one of the model, not of another one")
    return options.adapter


def _untouched(
    task: RecordedTask, adapter: SiteAdapter, options: FinetuneOptions
) -> Finetuned:
    value = task.observe_untouched()
    name = options.method
    return Finetuned(
        adapter=adapter,
        phi=torch.zeros(task.size, device=task.device),
        metric=task.metric,
        metric_before=value,
        metric_after=value,
        metric_proposed=value,
        method=name if isinstance(name, str) else _registered_name(name),
        spent=Spent(1, 0, 0.0),
    )


def _registered_name(method: Method) -> str:
    names = [name for name in METHODS if METHODS.get(name) is type(method)]
    return names[0] if names else type(method).__name__


def _improve(
    task: RecordedTask, method: Method, untouched: Finetuned, options: FinetuneOptions
) -> Finetuned:
    """Return the proposal of a method, or the untouched network where that is worse."""
    steps = options.steps or (50 if task.size <= SMALL else 100)
    budget = Budget(options.queries - FRAMING_QUERIES, steps)
    if isinstance(options.method, str):
        method = suited(method, budget)
    # The last query is kept from the method: it judges what the method proposes.
    task.query_limit = options.queries - 1
    result = method.run(task, budget, make_generator("finetune", options.seed))
    task.query_limit = options.queries
    proposed = replace(
        untouched,
        metric_proposed=from_cost(task.metric, task.observe(result.phi[:1])).item(),
        spent=replace(untouched.spent, gradient_steps=result.gradient_steps),
        history=result.checkpoints,
        notes=result.notes,
        health=_health(result),
    )
    if proposed.turned_down:
        return proposed
    phi = result.phi[0].detach().clone().to(task.device)
    return replace(proposed, phi=phi, metric_after=proposed.metric_proposed)


def _health(result: FinetuneResult) -> str | None:
    """Return the sentence of a value function's health, if the method noted it."""
    notes, nothing = result.notes, torch.empty(0)
    if "health_spread" not in notes:
        return None
    from metricopt.health import Health

    figures = notes["spearman"], notes["value_error"], notes["health_spread"]
    return Health(*figures, predicted=nothing, observed=nothing).sentence


def _best_so_far(task: RecordedTask, untouched: Finetuned, started: float) -> Finetuned:
    assert task.best is not None  # the untouched network was observed
    cost, phi = task.best
    value = from_cost(task.metric, torch.tensor(cost, dtype=torch.float64)).item()
    return replace(
        untouched,
        phi=phi[0].to(task.device),
        metric_after=value,
        metric_proposed=value,
        spent=_spent(task, 0, started),
    )


def _spent(task: RecordedTask, steps: int, started: float) -> Spent:
    return Spent(task.measured, steps, time.perf_counter() - started)

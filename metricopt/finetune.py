"""The library's one call: fine-tune a model towards the metric it is judged by."""

import time
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor, nn
from tqdm import tqdm

from metricopt.adapters.site_adapter import SiteAdapter
from metricopt.errors import ConfigError
from metricopt.finetuned import Finetuned, Spent
from metricopt.methods.budget import Budget
from metricopt.methods.contract import Method, method_name, resolve_method
from metricopt.metrics.base import Metric, from_cost
from metricopt.metrics.callables import CallableMetric, make_metric
from metricopt.metrics.checks import (
    DIRECTION_QUERIES,
    check_direction,
    check_targets,
    direction_can_be_tried,
)
from metricopt.options import FRAMING_QUERIES, FinetuneOptions
from metricopt.outputs import Outputs, each
from metricopt.seeding import Seeds, make_generator
from metricopt.tasks.examples import Examples, GivenExamples, as_split
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.recorded_task import OnQuery, RecordedTask
from metricopt.tasks.row_losses import Loss
from metricopt.threads import one_thread
from metricopt.values.health import verdict

EXAMPLES = 4
"""Number of examples the automatic adapter is made with."""
SMALL = 32
"""Largest d for which the default is 50 gradient steps instead of 100."""
DEFAULTS = FinetuneOptions()
TINY = 2**18
"""Most weights with which a network on vectors still runs in one thread."""
CPU = torch.device("cpu")


def finetune(
    model: nn.Module,
    *,
    train: GivenExamples,
    observe: GivenExamples,
    loss: Loss,
    metric: object,
    options: FinetuneOptions = DEFAULTS,
) -> Finetuned:
    """Find a small phi that improves a metric of a pre-trained model.

    The model is frozen and put in evaluation mode; its weights do not change. One
    query each goes to the untouched network and to the method's proposal, and the
    better of the two is returned. Two more check a direction that the user declared.

    Args:
        model: the network theta, from inputs [n, ...] to outputs [n, C].
        train: examples the loss gradients come from; see `as_split` for the forms.
        observe: examples the metric is queried on; preferably not those of `train`.
        loss: `(outputs [n, C], targets [n]) -> scalar`, differentiable.
        metric: the black box: whatever `make_metric` accepts, such as the name of a
            metric, a function of `sklearn.metrics`, or a `Metric`.
        options: everything else.

    Returns:
        phi with what it gained and cost; `apply` puts it into the model.

    Raises:
        ConfigError: if a setting or name is not valid.
        DataError: if a split is empty, or holds one class where the metric needs two.
        MetricError: if the metric fails, or declares the wrong direction.
        DivergedError: if the loss becomes non-finite.
        BudgetExceededError: if a user-defined method asks for too many queries.

        Every exception, including those of the model, the loss, the data and
        interrupts, has an attribute `partial`: a `Finetuned` with the best phi
        observed so far, or None before the first query.

    Source: Huang et al., CVPR 2021, Alg. 1. Differs: keeps the untouched network if
        the method's proposal is worse.
    """
    method = resolve_method(options.method)
    black_box = make_metric(metric, higher_is_better=options.higher_is_better)
    hidden = None if options.progress else True  # None: hidden without a terminal
    search: Search | None = None
    started = time.perf_counter()
    with tqdm(total=options.queries, unit=" queries", disable=hidden) as bar:
        try:
            device = next((weight.device for weight in model.parameters()), CPU)
            data = Data(
                as_split(train, name="train", device=device),
                as_split(observe, name="observe", device=device),
                loss,
            )
            adapter = options.adapter_of(model, data.train.batch(slice(EXAMPLES)))
            with one_thread() if _is_tiny(model, data) else nullcontext():
                search = Search(adapter, data, black_box, options, started, bar.update)
                return search.run(method)
        except BaseException as error:
            _attach(error, None if search is None else search.best())
            raise


@dataclass(frozen=True)
class Data:
    """What phi is learned from.

    Attributes:
        train: examples the loss gradients come from.
        observe: examples the metric is queried on.
        loss: from outputs and targets to a scalar.
    """

    train: Examples
    observe: Examples
    loss: Loss


class Search:
    """The state of one call of `finetune`.

    Args:
        adapter: the adapter of the model.
        data: what phi is learned from.
        metric: the black box.
        options: everything else.
        started: when the call began, by `time.perf_counter`.
        on_query: called with the number of queries just made.
    """

    def __init__(
        self,
        adapter: SiteAdapter,
        data: Data,
        metric: Metric,
        options: FinetuneOptions,
        started: float,
        on_query: OnQuery,
    ) -> None:
        self.started = started
        self.adapter, self.metric, self.options = adapter, metric, options
        self.observe = data.observe
        self.untouched: Finetuned | None = None
        seeds = Seeds("finetune", options.seed)
        task = NetworkTask(
            adapter,
            data.loss,
            metric,
            train=data.train,
            observe=data.observe,
            drawing=Drawing(options.sampler, seeds),
        )
        # A user's metric may fail at any phi; one row at a time loses no earlier row.
        # It is no slower: such a metric is called row by row in any case.
        rows = 1 if isinstance(metric, CallableMetric) else None
        self.task = RecordedTask(task, rows=rows, on_query=on_query)

    def run(self, method: Method) -> Finetuned:
        """Return a method's proposal; the untouched network if the proposal is worse.

        Raises:
            ConfigError: if the method does not suit the network, or there are too few
                queries for those made outside the method.
        """
        framing = FRAMING_QUERIES + self._tried
        if self.options.queries < framing:
            raise ConfigError(
                f"queries must be at least {framing}, as two of them check the "
                f"declared direction of the metric, got {self.options.queries}"
            )
        if not method.suits(self.task):
            name = type(method).__name__
            raise ConfigError(f"{name} cannot work on this network and its metric")
        check_targets(self.metric, self.observe.targets)
        self.task.meter.limit = self.options.queries
        self.untouched = untouched = self._untouched()
        if self._tried:
            self._try_direction(untouched.metric_before)
        steps = self.options.steps or (50 if self.task.size <= SMALL else 100)
        return self._improved(method, Budget(self.options.queries - framing, steps))

    def best(self) -> Finetuned | None:
        """Return the best result so far; None before the first query."""
        if self.task.best is None or self.untouched is None:
            return None
        cost, phi = self.task.best
        value = self._native(cost)
        return replace(
            self.untouched,
            phi=phi[0].to(self.untouched.phi.device),
            metric_after=value,
            metric_proposed=value,
            spent=self._spent(0),
        )

    def _untouched(self) -> Finetuned:
        value = self._native(self.task.observe_untouched())
        weight = next(self.adapter.network.parameters(), torch.empty(0))
        return Finetuned(
            adapter=self.adapter,
            phi=torch.zeros(self.task.size, device=weight.device),
            metric=self.metric,
            metric_before=value,
            metric_after=value,
            metric_proposed=value,
            method=method_name(self.options.method),
            spent=self._spent(0),
        )

    @cached_property
    def _sample(self) -> Outputs:
        """Outputs of the untouched network for one example, [1, C]."""
        features = self.adapter.encode(self.observe.batch(slice(1)))
        weight = next(self.adapter.network.parameters(), torch.empty(0))
        phi = torch.zeros(1, self.task.size, device=weight.device)
        return each(lambda part: part[0].detach(), self.adapter.predict(features, phi))

    @property
    def _tried(self) -> int:
        """Number of queries that check the declared direction of the metric."""
        if not self.metric.direction_declared:
            return 0
        known = direction_can_be_tried(self._sample, self.observe.targets)
        return DIRECTION_QUERIES if known else 0

    def _try_direction(self, initial: float) -> None:
        outputs, targets = self._sample, self.observe.targets
        assert isinstance(outputs, Tensor) and isinstance(targets, Tensor)
        self.task.count(self._tried)
        check_direction(self.metric, outputs, targets, initial)

    def _improved(self, method: Method, budget: Budget) -> Finetuned:
        assert self.untouched is not None
        if isinstance(self.options.method, str):
            method = method.fitted(budget)
        generator = make_generator("finetune", self.options.seed)
        # The last query is withheld from the method: it judges the method's proposal.
        self.task.meter.limit = self.options.queries - 1
        result = method.run(self.task, budget, generator)
        self.task.meter.limit = self.options.queries
        cost = self.task.observe(result.phi[:1]).item()
        proposed = replace(
            self.untouched,
            metric_proposed=self._native(cost),
            spent=self._spent(result.gradient_steps),
            history=result.checkpoints,
            notes=result.notes,
            health=verdict(result.notes),
        )
        if proposed.turned_down:
            return proposed
        phi = result.phi[0].detach().clone().to(self.untouched.phi.device)
        return replace(proposed, phi=phi, metric_after=proposed.metric_proposed)

    def _native(self, cost: float) -> float:
        return from_cost(self.metric, torch.tensor(cost, dtype=torch.float64)).item()

    def _spent(self, steps: int) -> Spent:
        seconds = time.perf_counter() - self.started
        return Spent(self.task.measured, steps, seconds)


def _is_tiny(model: nn.Module, data: Data) -> bool:
    """Return whether the whole model is too small for more than one thread."""
    weights = sum(weight.numel() for weight in model.parameters())
    return data.train.batch(slice(1)).ndim <= 2 and weights <= TINY


def _attach(error: BaseException, best: Finetuned | None) -> None:
    """Attach the best result so far to an exception."""
    # Some exceptions refuse new attributes; the exception itself matters more.
    with suppress(AttributeError):
        error.partial = best  # type: ignore[attr-defined]
        if best is not None:
            error.add_note(f"best so far, in `partial`: {best.summary()}")

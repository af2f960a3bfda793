"""The run of one call of `finetune`, from the untouched network to the result."""

from dataclasses import replace

import torch
from torch import Tensor

from metricopt.adapters.applied.agreement import check_applied, tried
from metricopt.adapters.base import NetworkAdapter
from metricopt.algorithm1.health import verdict
from metricopt.errors import ConfigError
from metricopt.finetuned import Finetuned, Spent
from metricopt.given import Given
from metricopt.journal.journal import Journal, journalled
from metricopt.losses.portfolio import make_portfolio
from metricopt.methods.bounds import is_worse, native, reports
from metricopt.methods.contract import Method, method_name, resolve_method
from metricopt.methods.enough_queries import require_queries
from metricopt.methods.guided_cma import GuidedCMA
from metricopt.methods.lines_of_phi import shift_lines
from metricopt.methods.result import Budget, FinetuneResult
from metricopt.metrics.base import Metric, from_cost
from metricopt.metrics.confusion import confusion_matrices
from metricopt.metrics.constrained import met, metrics_of
from metricopt.on_outputs.cross_fitting import CrossFitting
from metricopt.on_outputs.no_harm import RESERVED, NoHarm
from metricopt.options import AUTO, FRAMING_QUERIES, FinetuneOptions
from metricopt.process.seeding import Seeds, make_generator
from metricopt.process.watch import SearchEnded, Watch
from metricopt.reading.columns import columned
from metricopt.reading.metric import (
    check_direction,
    check_targets,
    direction_queries,
    doubts_of_adapter,
    doubts_of_columns,
    doubts_of_failures,
    doubts_of_metric,
    remedy_of,
)
from metricopt.reading.network import FEW, check_finite, first_run
from metricopt.reading.outputs import Standard, each
from metricopt.reading.splits import (
    differing_shares,
    doubts_of_absence,
    doubts_of_decisions,
    doubts_of_splits,
)
from metricopt.tasks.failed_queries import forgiving
from metricopt.tasks.judge import bound_metric
from metricopt.tasks.network_task import Drawing, NetworkTask
from metricopt.tasks.recorded_task import RecordedTask, rows_together

FORGIVEN = 3
"""One query in so many may fail."""
SMALL = 32
"""Largest d, without offsets, for which the default is 50 gradient steps, not 100."""


class FinetuneCall:
    """The run of one call of `finetune`, which is watched.

    Answers of the metric are kept in a journal, if there is one.

    Raises:
        ConfigError: if the method does not suit the network, there are too few queries
            for it, or the network with phi in it does not do what is predicted of it.
        LossError: if the loss does not work.
        DataError: if the network does not run on the examples, or returns NaN.
    """

    confirming = 0  # queries after the search, of more examples than it has seen

    def __init__(
        self,
        adapter: NetworkAdapter,
        given: Given,
        options: FinetuneOptions,
        journal: Journal | None = None,
        *,
        watch: Watch,
    ) -> None:
        self.adapter, self.options, self.meaning = adapter, options, given.meaning
        self.metric = asked = bound_metric(given.metric, given.meaning, given.columns)
        if journal is not None:
            asked = journalled(self.metric, journal)
        self._limit = options.queries - self.confirming
        retries, remedy = options.retries, remedy_of(given.meaning)
        self._asked = forgiving(metrics_of(asked)[0], 0, retries)
        self._forgiving = forgiving(asked, self._limit // FORGIVEN, retries, remedy)
        self._watch, self._journal, self._given = watch, journal, given
        self.train, self.observe = given.train, given.observe
        check_finite(adapter, given.train, "train")
        check_finite(adapter, given.observe, "observe")
        self._few = few = given.observe.batch(slice(FEW))
        made = first_run(lambda: tried(adapter, few), adapter.network, few, "observe")
        check_applied(adapter, few, made)
        task = self._network_task(given, self._forgiving)
        start = watch.seconds
        task.check()  # one pass over observe
        watch.estimate(watch.seconds - start)
        self._plain = task
        self.task = RecordedTask(
            task, rows=rows_together(given.metric), on_query=self._queried, watch=watch
        )
        self.budget = Budget(options.queries - self._framing, self._steps)
        self.name, self.method = self._named_method()
        watch.say(
            f"{self.name} asks for {self.metric.name} of {len(given.observe)} examples "
            f"up to {self._limit} times. {given.meaning.describe()}"
        )

    def _network_task(self, given: Given, metric: Metric) -> NetworkTask:
        drawing = Drawing(
            self.options.sampler,
            Seeds("finetune", self.options.seed),
            portfolio=make_portfolio if given.network else None,
            meaning=given.meaning,
            clusters=given.clusters.of,
        )
        return NetworkTask(
            self.adapter,
            given.loss,
            metric,
            train=given.train,
            observe=given.observe,
            drawing=drawing,
        )

    def run(self) -> Finetuned:
        """Return the method's proposal, or the untouched network.

        A worse proposal is rejected; an equal one needs evidence of a gain.

        Raises:
            DataError: if the targets do not suit the metric.
            MetricError: see `finetune`.
        """
        check_targets(self.metric, self.observe.targets)
        self.task.meter.limit = self._limit
        self.task.observe_untouched()
        untouched = self._untouched()
        shuffled = self._shuffled_value()
        direction = self._try_direction(untouched.metric_before)
        try:
            found = self._improved(untouched)
        except SearchEnded:
            found = self.interrupted(f"ended by {self._watch.reason}") or untouched
        doubts = *self._warnings(found, shuffled), *direction
        found = replace(found, warnings=found.warnings + doubts)
        self._watch.say(found.summary())
        return found

    def best(self) -> Finetuned | None:
        """Return the best result so far; None before the first query."""
        if self.task.best is None:
            return None
        cost, phi = self.task.best
        place = int((self.task.costs == cost).nonzero()[0])
        value, untouched = self._values[place].item(), self._untouched()
        return replace(
            untouched,
            phi=phi[0].to(untouched.phi.device),
            metric_after=value,
            metric_proposed=value,
            bounds=reports(self.metric, self.task.each[0], self.task.each[place]),
            is_worse=None if self.task.bounds is None else False,
        )

    def interrupted(self, how: str = "interrupted") -> Finetuned | None:
        """Return the best result so far, which says how it was interrupted."""
        if (best := self.best()) is None:
            return None
        warning = (
            f"{how} after {best.spent.queries} of {self._watch.total} queries; "
            f"{self._unshown}"
        )
        if self._journal is not None:
            warning += f"; the same call goes on from {self._journal.path}"
        return replace(best, warnings=(*best.warnings, f"{warning}."))

    @property
    def _unshown(self) -> str:
        return (
            "phi is the best one observed until then, and nothing shows that it is "
            "better on other data"
        )

    @property
    def _framing(self) -> int:
        """Queries made outside the method."""
        framing = FRAMING_QUERIES + self._tried + self.confirming
        if self.options.queries < framing:
            least = framing + (self.options.method == AUTO)
            raise ConfigError(
                f"queries must be at least {least}, as {self._tried} of them check the "
                f"declared direction of the metric, got {self.options.queries}"
            )
        return framing

    @property
    def _steps(self) -> int:
        place = self.adapter.parts.get("adapter", slice(0))
        size = len(range(self.adapter.size)[place])
        return self.options.steps or (50 if size <= SMALL else 100)

    def _named_method(self) -> tuple[str, Method]:
        """Return the method, fitted to the budget, and checked for harm if wanted."""
        if (asked := self.options.method) == AUTO:
            known = self.task.statistics is not None
            if self.budget.queries < 1:
                raise ConfigError(
                    f"queries must be at least {self._framing + 1} to search with, got "
                    f"{self.options.queries}"
                )
            asked = "metricopt-outputs" if known else GuidedCMA(lines=self._lines)
        method, name = resolve_method(asked), method_name(asked)
        if self.options.known is not None:
            method = method.knowing(self.options.known, self.adapter.describe())
        if not method.suits(self.task):
            raise ConfigError(f"{name} cannot work on this network and its metric")
        if self.options.no_harm and not method.asks_for_evidence:
            if self.budget.queries <= RESERVED:
                doubt = self.meaning.doubt and f"{self.meaning.doubt} As they are, "
                raise ConfigError(
                    f"{doubt}no_harm takes {RESERVED} queries and leaves none of "
                    f"{self.options.queries} to the method: give at least "
                    f"{self._framing + RESERVED + 1}, or set no_harm=False"
                )
            method = NoHarm(method, CrossFitting(second=True))
        if self.options.level is not None:
            method = method.asking(self.options.level)
        is_open = isinstance(asked, str)
        method = method.fitted(self.budget) if is_open else method
        require_queries(method, name, self.budget, self._framing)
        return name, method

    @property
    def _lines(self) -> Tensor | None:
        """Lines along which outputs are shifted; None where phi has no offsets."""
        outputs = each(lambda part: part[0], self._plain.untouched())
        place = self.adapter.parts.get("offsets")
        if place is None or not isinstance(outputs, Tensor):
            return None
        size = self.adapter.size
        standard = self.adapter.standard or Standard.plain(outputs.shape[1])
        return shift_lines(standard.seen(outputs), place, size, standard.unit)

    def _untouched(self) -> Finetuned:
        """Return the untouched network, the first query, as a result."""
        first = self.task.each[0]
        value = self._objective(first)
        weight = next(self.adapter.network.parameters(), torch.empty(0))
        shares = differing_shares(self.train.targets, self.observe.targets)
        kinds = shares, self._given.clusters.new
        return Finetuned(
            adapter=self.adapter,
            phi=torch.zeros(self.task.size, device=weight.device),
            metric=metrics_of(self.metric)[0],
            metric_before=value,
            metric_after=value,
            metric_proposed=value,
            method=self.name,
            meaning=self.meaning,
            theta=self._given.theta,
            kind=", ".join(filter(None, kinds)),
            few=self._few,
            spent=self._spent(0),
            values=self._values,
            bounds=reports(self.metric, first, first),
            met=met(self.task.each),
            examples=len(self.observe),
        )

    def _shuffled_value(self) -> float:
        """Return the metric of the untouched network with the examples shuffled."""
        generator = make_generator("shuffle", self.options.seed)
        order = torch.randperm(self.task.examples, generator=generator)
        untouched = torch.zeros(1, self.task.size)
        cost = self.task.observe_part(untouched, order)
        # A failure says nothing of the order.
        cost = self.task.costs[:1] if self.task.failures else cost
        return from_cost(self.metric, cost).item()

    @property
    def _tried(self) -> int:
        """Number of queries that check the declared direction of the metric."""
        wanted = self.metric.direction_declared and self.options.check_direction
        return direction_queries(self.meaning) if wanted else 0

    def _try_direction(self, initial: float) -> list[str]:
        if not self._tried:
            return []
        outputs = each(lambda part: part[0], self._plain.untouched())
        columns = self._given.columns
        targets = columned(self.observe.targets, columns, self._asked.columns)
        assert isinstance(outputs, Tensor)
        self.task.count(self._tried)
        return check_direction(self._asked, self.meaning, outputs, targets, initial)

    def _improved(self, untouched: Finetuned) -> Finetuned:
        generator = make_generator("finetune", self.options.seed)
        # The last query is withheld from the method: it judges the method's proposal.
        self.task.meter.limit = self._limit - 1
        with self._watch.searching(looks=self.method.looks_at_clock):
            result = self.method.run(self.task, self.budget, generator)
        self.task.meter.limit = self._limit
        each, first = self.task.observe_each(result.phi[:1])[0], self.task.each[0]
        if not result.phi[0].any():
            # Asked again, a noisy metric says something else of the same network.
            each = first
        proposed = replace(
            self._found(untouched, result), metric_proposed=self._objective(each)
        )
        evidence = proposed.evidence
        chances = evidence.met if evidence else ()
        if self.task.bounds is not None:
            worse = is_worse(first, each, judged=bool(chances))
            proposed = replace(proposed, is_worse=worse)
        equal = proposed.metric_proposed == untouched.metric_before
        equal = equal and torch.equal(each[1:], first[1:])
        if proposed.turned_down or (equal and evidence is None):
            return proposed
        phi = result.phi[0].detach().clone().to(untouched.phi.device)
        return replace(
            proposed,
            phi=phi,
            metric_after=proposed.metric_proposed,
            bounds=reports(self.metric, first, each, chances),
        )

    def _found(self, untouched: Finetuned, result: FinetuneResult) -> Finetuned:
        """Return the untouched network with all that a method has found out."""
        evidence = result.evidence[0] if result.evidence else None
        first, adapter = self.task.each[0], self.adapter.describe()
        chances = evidence.met_before if evidence else ()
        return replace(
            untouched,
            spent=self._spent(result.gradient_steps),
            history=result.checkpoints,
            notes=result.notes,
            health=verdict(result.notes),
            evidence=evidence,
            known=result.known[0].made_for(adapter) if result.known else None,
            attempts=result.obvious[0] if result.obvious else (),
            values=self._values,
            confusion=self._confusion(result),
            bounds=reports(self.metric, first, first, chances),
            met=met(self.task.each),
            front=native(self.metric, evidence.front if evidence else None),
        )

    def _confusion(self, result: FinetuneResult) -> tuple[Tensor, Tensor] | None:
        statistics = self.task.statistics
        if statistics is None or statistics.kind.reads != "scores":
            return None
        both = torch.cat([torch.zeros(1, self.task.size), result.phi[:1].cpu()])
        outputs = statistics.outputs(both).cpu()
        before, after = confusion_matrices(outputs, statistics.targets).long()
        return before, after

    def _warnings(self, found: Finetuned, shuffled: float) -> list[str]:
        """Return what is wrong with the metric or the observe split, if anything."""
        same = from_cost(self.metric, self.task.costs[(self.task.phi == 0).all(1)])
        doubts = doubts_of_failures(
            self.task.failures, self.task.measured, self.meaning
        )
        if not doubts:
            doubts += doubts_of_metric(self.metric.name, same, shuffled)
        clusters = self.options.clusters
        doubts += doubts_of_columns(self.observe, self.metric.columns, clusters)
        doubts += self._watch.doubts(self.task.measured, said=bool(found.warnings))
        if self._given.dear:
            doubts.append(self._given.dear)
        elif self._given.network:
            doubts += doubts_of_adapter(self.adapter.parts)
        doubts += self._given.clusters.doubts
        doubts += doubts_of_absence(found.confusion)
        if not self.confirming:
            doubts += doubts_of_decisions(found.confusion, found.phi, found.bounds)
        splits = self.train, self.observe
        doubts += doubts_of_splits(*splits, self.meaning, compares=self.task.compares)
        return doubts

    def _queried(self, count: int) -> None:
        self._watch.queried(count, self._values, self.task.costs)

    @property
    def _values(self) -> Tensor:
        return from_cost(metrics_of(self.metric)[0], self.task.each[:, 0])

    def _objective(self, each: Tensor) -> float:
        """Return the native value of the objective where this was observed."""
        return from_cost(metrics_of(self.metric)[0], each[0]).item()

    def _spent(self, steps: int) -> Spent:
        replayed = 0 if self._journal is None else self._journal.replayed
        return Spent(self.task.measured, steps, self._watch.seconds, replayed)

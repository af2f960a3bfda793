"""ReLoss: a surrogate learns to rank outputs as the metric does, then it is the loss.

A training with the usual loss records its outputs; a surrogate is fitted to them; then
the network is trained again, from the same start, with the surrogate instead.

Source: Huang et al., ICLR 2022. Differs: the published code fits the surrogate once, to
recorded logits of ImageNet. The epoch of best metric is kept, as for the other methods
here; theirs is the last. The paper records a whole training; `recording` can shorten
it.
"""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from baselines.learned_losses.reloss_surrogate import (
    FittedSurrogate,
    Fitting,
    fit_surrogate,
)
from baselines.learned_losses.set_surrogate import agreement
from baselines.learned_losses.surrogates.contract import (
    KINDS,
    Groups,
    Surrogate,
    SurrogateKind,
)
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
    Notes,
    significant,
)
from baselines.training.loop import Hooks
from baselines.training.optimization import Training
from baselines.training.prediction import predict_examples
from baselines.validation import labels
from metricopt.errors import require_ranges
from metricopt.process.seeding import drawn_seed, globally_seeded


@NETWORK_METHODS.register("reloss")
@dataclass(frozen=True, kw_only=True)
class ReLoss(NetworkMethod):
    """Train with a loss that was fitted to rank groups of outputs as the metric does.

    The surrogate costs one metric query a group, on `group_size` examples; the notes
    count these. With `keep_best` the metric is queried on the whole observe split after
    every epoch of the last training.

    The notes also give the rank correlation of the surrogate and of the usual loss with
    the metric: on groups held out from the recorded outputs, and, `_plain`, at the end
    on groups of the observe split with their own targets, one query each (0 where the
    metric does not vary). They list cost, loss before it is scaled, and usual loss of
    the held-out groups, `held_out_`. They also hold the factor of the loss,
    `surrogate_scale`, the mean slopes `slope` and `slope_base` of `FittedSurrogate`,
    and what the surrogate itself notes.

    Attributes:
        kind: what the outputs are, which decides the surrogate and the usual loss.
        fitting: settings of the surrogate.
        recorded: most outputs that are recorded, drawn evenly over the training.
        recording: share of the epochs that the recorded training has, at least one.
            The paper records a whole training.
        recording_rate: greatest rate of the recorded training; None for the given one.
            If it is set, trainings at different rates record the same outputs.
    """

    kind: str = "classes"
    fitting: Fitting = field(default_factory=Fitting)
    recorded: int = 2_000_000
    recording: float = 1.0
    recording_rate: float | None = None

    def __post_init__(self) -> None:
        require_ranges(
            "ReLoss",
            vars(self),
            recorded=">= 1",
            recording="in (0, 1]",
            recording_rate="> 0",
        )

    @property
    def _kind(self) -> SurrogateKind:
        return KINDS.get(self.kind)()

    def check_suits(self, outputs: Any, targets: Tensor) -> None:
        """Check that outputs and targets are of the kind of the surrogate."""
        self._kind.check(outputs, targets[: len(outputs)])

    def _train(self, given: Assignment) -> NetworkResult:
        kind = self._kind
        training = self._recorded_training(given.training)
        recorder = _Recorder(kind, self.recorded, given, training)
        fitted = self._fit(kind, recorder.recorded, given)
        notes: Notes = {
            "rank_correlation": fitted.rank_correlation,
            f"rank_correlation_{kind.base}": fitted.base,
            "rank_correlations": fitted.course,
            "group_queries": given.validation.queries,
            "surrogate_scale": float(fitted.surrogate.scale),
            "slope": fitted.slope,
            "slope_base": fitted.slope_base,
        }
        lines = zip(("cost", "loss", "base"), fitted.held_out.tolist(), strict=True)
        notes |= {f"held_out_{name}": significant(line) for name, line in lines}
        notes |= fitted.surrogate.noted()
        network, surrogate = copy.deepcopy(given.network), fitted.surrogate
        run = given.trained(network, kind.beside(surrogate), given.metric_score())
        notes |= run.best.noted("observe_cost")
        notes |= self._plain(network, surrogate, given)
        return given.result(network, recorder.steps + run.steps, notes)

    def _recorded_training(self, training: Training) -> Training:
        """Return the training whose outputs are recorded, for the given one."""
        return replace(
            training,
            epochs=max(1, round(self.recording * training.epochs)),
            learning_rate=self.recording_rate or training.learning_rate,
        )

    def _fit(
        self, kind: SurrogateKind, recorded: Groups, given: Assignment
    ) -> FittedSurrogate:
        validation, generator = given.validation, given.generator

        def costs(groups: Groups) -> Tensor:
            pairs = zip(*groups, strict=True)
            found = [validation.costs(one[None], targets) for one, targets in pairs]
            return torch.cat(found)

        with globally_seeded(drawn_seed(generator)):
            return fit_surrogate(kind, recorded, costs, self.fitting, generator)

    def _plain(
        self, network: nn.Module, surrogate: Surrogate, given: Assignment
    ) -> dict[str, float]:
        """Return rank correlations on groups of the observe split: a query for each."""
        validation, kind = given.validation, self._kind
        outputs = predict_examples(network, validation.observe)
        targets = labels(validation.observe)
        size = min(self.fitting.group_size, len(targets))
        order = torch.randperm(len(targets), generator=given.generator)
        groups = order.to(targets.device).split(size)[: len(targets) // size]
        parts = [Groups(outputs[places], targets[places]) for places in groups]
        pairs = zip(groups, parts, strict=True)
        values = [validation.values_on(at, part.outputs[None]) for at, part in pairs]
        costs = validation.as_costs(torch.cat(values))
        ours = torch.stack([surrogate(*part) for part in parts])
        plain = torch.stack([kind.base_losses(part) for part in parts])
        return {
            "rank_correlation_plain": agreement(ours, costs),
            f"rank_correlation_plain_{kind.base}": agreement(plain, costs),
        }


@NETWORK_METHODS.register("usual-loss")
@dataclass(frozen=True, kw_only=True)
class UsualLoss(NetworkMethod):
    """Train with the loss that a surrogate of ReLoss takes the place of.

    It makes no metric query.

    Attributes:
        kind: what the outputs are.
    """

    kind: str = "classes"

    def check_suits(self, outputs: Any, targets: Tensor) -> None:
        """Check that outputs and targets are of the kind."""
        KINDS.get(self.kind)().check(outputs, targets[: len(outputs)])

    def _train(self, given: Assignment) -> NetworkResult:
        network, loss = copy.deepcopy(given.network), KINDS.get(self.kind).loss
        run = given.trained(network, loss, given.loss_score(loss))
        return given.result(network, run.steps, {**run.best.noted("observe_loss")})


class _Recorder(Hooks):
    """A training with the usual loss, and a share of its outputs.

    All forms of ReLoss that record the same share it.

    Args:
        kind: what the outputs are, and the usual loss.
        most: outputs that are recorded at the most, as many of each mini-batch.
        given: what is trained.
        training: length and rate.

    Attributes:
        steps: taken.
    """

    def __init__(
        self, kind: SurrogateKind, most: int, given: Assignment, training: Training
    ) -> None:
        super().__init__(given.hooks.on_epoch)
        batches = given.batches
        total = training.epochs * batches.steps_per_epoch * batches.batch_size
        self._kind = kind
        self._parts: list[Groups] = []
        self._share = min(1.0, most / total)
        self._device = batches.targets.device
        network, observe = copy.deepcopy(given.network), given.loss_score(kind.loss)
        run = given.run(network, self._loss, observe, training)
        self.steps = run.steps
        given.finish(run, self, f"{type(kind).__name__} {self._share} {training}")

    @property
    def recorded(self) -> Groups:
        """Outputs in the order of time with their targets, in one piece."""
        outputs, targets = zip(*self._parts, strict=True)
        return Groups(torch.cat(outputs), torch.cat(targets))

    def state(self) -> dict[str, Any]:
        """Return the outputs so far, in one piece."""
        return self.recorded._asdict()

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self._parts = [Groups(*(state[n].to(self._device) for n in Groups._fields))]

    def _loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        first = slice(max(1, round(self._share * len(outputs))))
        kept = outputs[first].detach().to(self._kind.dtype).clone()
        self._parts.append(Groups(kept, targets[first].clone()))
        return self._kind.loss(outputs, targets)

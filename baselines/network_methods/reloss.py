"""ReLoss: a surrogate learns to rank outputs as the metric does, then it is the loss.

A training with cross-entropy records its logits; a surrogate is fitted to them; then
the network is trained again, from the same start, with the surrogate instead.

Source: Huang et al., ICLR 2022. Differs: the published code fits the surrogate once, to
recorded logits of ImageNet. The epoch of best metric is kept, as for the other methods
here; theirs is the last.
"""

import copy
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from baselines.learned_losses.logit_groups import Groups, group_cross_entropy
from baselines.learned_losses.reloss_surrogate import (
    FittedSurrogate,
    Fitting,
    ReLossSurrogate,
    fit_surrogate,
)
from baselines.learned_losses.set_surrogate import agreement
from baselines.losses.cross_entropy import cross_entropy
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
    Notes,
)
from baselines.training.loop import Hooks
from baselines.training.prediction import predict_examples
from baselines.validation import labels
from metricopt.errors import require_ranges
from metricopt.process.seeding import drawn_seed, globally_seeded


@NETWORK_METHODS.register("reloss")
@dataclass(frozen=True, kw_only=True)
class ReLoss(NetworkMethod):
    """Train with a loss that was fitted to rank groups of outputs as the metric does.

    The surrogate costs one metric query a group, on `group_size` examples with made-up
    labels; the notes count these. With `keep_best` the metric is queried on the whole
    observe split after every epoch of the last training.

    The notes also give the rank correlation of the surrogate and of cross-entropy with
    the metric: on groups held out from the recorded logits, and, `_plain`, at the end
    on groups of the observe split with their own labels, one query each (0 where the
    metric does not vary).

    Attributes:
        fitting: settings of the surrogate.
        recorded: most logits that are recorded, drawn evenly over the training.
    """

    fitting: Fitting = field(default_factory=Fitting)
    recorded: int = 2_000_000

    def __post_init__(self) -> None:
        require_ranges("ReLoss", vars(self), recorded=">= 1")

    def _train(self, given: Assignment) -> NetworkResult:
        recorder = _Recorder(self.recorded, given)
        fitted = self._fit(torch.cat(recorder.logits), given)
        notes: Notes = {
            "rank_correlation": fitted.rank_correlation,
            "rank_correlation_cross_entropy": fitted.cross_entropy,
            "rank_correlations": fitted.course,
            "group_queries": given.validation.queries,
        }
        network, surrogate = copy.deepcopy(given.network), fitted.surrogate
        run = given.trained(network, surrogate.forward, given.metric_score())
        notes |= run.best.noted("observe_cost")
        notes |= self._plain(network, surrogate, given)
        return given.result(network, recorder.steps + run.steps, notes)

    def _fit(self, logits: Tensor, given: Assignment) -> FittedSurrogate:
        validation, generator = given.validation, given.generator

        def costs(groups: Groups) -> Tensor:
            pairs = zip(*groups, strict=True)
            found = [validation.costs(one[None], targets) for one, targets in pairs]
            return torch.cat(found)

        with globally_seeded(drawn_seed(generator)):
            return fit_surrogate(logits, costs, self.fitting, generator)

    def _plain(
        self, network: nn.Module, surrogate: ReLossSurrogate, given: Assignment
    ) -> dict[str, float]:
        """Return rank correlations on groups of the observe split: a query for each."""
        validation = given.validation
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
        plain = torch.stack([group_cross_entropy(part) for part in parts])
        return {
            "rank_correlation_plain": agreement(ours, costs),
            "rank_correlation_plain_cross_entropy": agreement(plain, costs),
        }


class _Recorder(Hooks):
    """A training with cross-entropy, and a share of its logits.

    Args:
        most: logits that are recorded at the most, as many of each mini-batch.
        given: what is trained.

    Attributes:
        logits: logits of every mini-batch, shape [n, C].
        steps: taken.
    """

    def __init__(self, most: int, given: Assignment) -> None:
        super().__init__(given.hooks.on_epoch)
        batches = given.batches
        total = given.training.epochs * batches.steps_per_epoch * batches.batch_size
        self.logits: list[Tensor] = []
        self._share = min(1.0, most / total)
        self._device = batches.targets.device
        network, observe = copy.deepcopy(given.network), given.loss_score(cross_entropy)
        run = given.run(network, self._loss, observe)
        self.steps = run.steps
        given.finish(run, self)

    def state(self) -> dict[str, Any]:
        """Return the logits so far, in one piece."""
        return {"logits": torch.cat(self.logits)}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.logits = [state["logits"].to(self._device)]

    def _loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        kept = outputs[: max(1, round(self._share * len(outputs)))]
        self.logits.append(kept.detach().float().clone())
        return cross_entropy(outputs, targets)

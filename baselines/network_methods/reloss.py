"""ReLoss: a surrogate learns to rank outputs as the metric does, then it is the loss.

A training with cross-entropy records its logits; a surrogate is fitted to them; then
the network is trained again, from the same start, with the surrogate instead.

Source: Huang et al., ICLR 2022. The published code fits the surrogate to logits of
ImageNet recorded beforehand; `logits` names such a file. The epoch of best metric is
kept, as for the other methods here; theirs is the last.
"""

import copy
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor, nn

from baselines.learned_losses.logit_groups import Groups, group_cross_entropy
from baselines.learned_losses.reloss_surrogate import (
    FittedSurrogate,
    Fitting,
    ReLossSurrogate,
    fit_surrogate,
)
from baselines.learned_losses.set_surrogate import agreement
from baselines.losses.contract import make_loss
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    NetworkMethod,
    NetworkResult,
)
from baselines.training.batches import Batches
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from baselines.training.prediction import predict, predict_examples
from baselines.training.selection import (
    BestState,
    ObserveLoss,
    ObserveMetric,
    balanced_once,
)
from baselines.validation import Validation, labels
from metricopt.errors import ConfigError, DataError, ShapeError
from metricopt.files import read_tensors, write_atomically
from metricopt.process.seeding import drawn_seed, globally_seeded

LOGITS = "logits"
"""Name of the tensor in a file of recorded logits."""


@dataclass(frozen=True, kw_only=True)
class ReLossResult(NetworkResult):
    """A network trained with a surrogate, with that surrogate and what it was made of.

    Attributes:
        surrogate: maps outputs and labels to the loss; frozen.
        logits: that it was fitted to, shape [N, C].
    """

    surrogate: ReLossSurrogate
    logits: Tensor

    def save_logits(self, path: Path) -> None:
        """Write the recorded logits, for `ReLoss(logits=...)`."""
        write_atomically(path, save({LOGITS: self.logits.contiguous()}))


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
        fitting: of the surrogate.
        logits: file with logits recorded before; empty to record those of a training
            with cross-entropy.
        recorded: most logits that are recorded, drawn evenly over the training.
    """

    fitting: Fitting = field(default_factory=Fitting)
    logits: str = ""
    recorded: int = 2_000_000

    def __post_init__(self) -> None:
        if self.recorded < 1:
            raise ConfigError(f"recorded must be >= 1, got {self.recorded}")

    def train(
        self,
        network: nn.Module,
        batches: Batches,
        validation: Validation,
        *,
        training: Training,
        generator: torch.Generator,
    ) -> ReLossResult:
        """Train a copy of the network; see `NetworkMethod.train`.

        Raises:
            DataError: if `logits` names no file with logits, or there are too few.
            ShapeError: if they are of another number of classes.
        """
        self.check_problem(network, batches, validation)
        spent = 0
        if self.logits:
            logits = read_logits(Path(self.logits), network, batches)
        else:
            logits, spent = self._record(
                network, batches, validation, training, generator
            )
        fitted = self._fit(logits, validation, generator)
        on_groups = validation.queries
        network, surrogate = copy.deepcopy(network), fitted.surrogate
        run = TrainingRun(
            network,
            surrogate.forward,
            batches,
            training,
            generator=generator,
            observe=ObserveMetric(validation) if training.keep_best else None,
        )
        best = train(run, hooks=Hooks(self.on_epoch))
        notes = _notes(fitted, best) | {"group_queries": on_groups}
        notes |= self._plain(network, surrogate, validation, generator)
        return ReLossResult(
            network,
            threshold=0.0,
            queries=validation.queries,
            gradient_steps=spent + run.steps,
            notes=notes,
            surrogate=surrogate,
            logits=logits,
        )

    def _record(
        self,
        network: nn.Module,
        batches: Batches,
        validation: Validation,
        training: Training,
        generator: torch.Generator,
    ) -> tuple[Tensor, int]:
        """Return logits of a training with cross-entropy, and the steps it took."""
        loss, found = make_loss("cross-entropy", classes=1), list[Tensor]()
        total = training.epochs * batches.steps_per_epoch * batches.batch_size
        share = min(1.0, self.recorded / total)

        def recording(outputs: Tensor, targets: Tensor) -> Tensor:
            kept = outputs[: max(1, round(share * len(outputs)))]
            found.append(kept.detach().float().clone())
            value: Tensor = loss(outputs, targets)
            return value

        observe = validation.observe
        if batches.balanced:
            observe = balanced_once(observe, generator)
        run = TrainingRun(
            copy.deepcopy(network),
            recording,
            batches,
            training,
            generator=generator,
            observe=ObserveLoss(loss, observe) if training.keep_best else None,
        )
        train(run, hooks=Hooks(self.on_epoch))
        return torch.cat(found), run.steps

    def _fit(
        self, logits: Tensor, validation: Validation, generator: torch.Generator
    ) -> FittedSurrogate:
        def costs(groups: Groups) -> Tensor:
            pairs = zip(*groups, strict=True)
            found = [validation.costs(one[None], targets) for one, targets in pairs]
            return torch.cat(found)

        with globally_seeded(drawn_seed(generator)):
            return fit_surrogate(logits, costs, self.fitting, generator)

    def _plain(
        self,
        network: nn.Module,
        surrogate: ReLossSurrogate,
        validation: Validation,
        generator: torch.Generator,
    ) -> dict[str, float]:
        """Return rank correlations on groups of the observe split: a query for each."""
        outputs = predict_examples(network, validation.observe)
        targets = labels(validation.observe)
        size = min(self.fitting.group_size, len(targets))
        order = torch.randperm(len(targets), generator=generator).to(targets.device)
        groups = order.split(size)[: len(targets) // size]
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


def read_logits(path: Path, network: nn.Module, batches: Batches) -> Tensor:
    """Return recorded logits, shape [N, C], for a network with as many outputs.

    Raises:
        DataError: if the file holds none.
        ShapeError: if they have another number of classes than the network.
    """
    try:
        logits = read_tensors(path).tensors[LOGITS]
    except (OSError, KeyError, DataError) as error:
        raise DataError(f"{path} holds no recorded logits: {error}") from error
    classes = predict(copy.deepcopy(network), batches.plain(1)).shape[1]
    if logits.ndim != 2 or logits.shape[1] != classes:
        raise ShapeError(
            f"{path} must hold logits [N, {classes}], as many classes as the network "
            f"has, got {list(logits.shape)}"
        )
    if not bool(logits.isfinite().all()):
        raise DataError(f"{path} holds logits that are not finite")
    return logits.to(batches.targets.device)


def _notes(fitted: FittedSurrogate, best: BestState) -> dict[str, float | list[float]]:
    return {
        **best.noted("observe_cost"),
        "rank_correlation": fitted.rank_correlation,
        "rank_correlation_cross_entropy": fitted.cross_entropy,
        "rank_correlations": fitted.course,
    }

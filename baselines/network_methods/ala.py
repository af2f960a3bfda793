"""Adaptive loss alignment: a controller changes the loss while the network trains.

Every K = 200 steps the policy sees, for each pair of classes, the mean -log probability
of one on observed examples of the other, and lowers, keeps or raises the pair's loss
parameter. Its reward is whether the metric has improved since the period before.

Source: Huang et al., ICML 2019, Sec. 3 to 5; no official code is known. Differs: the
loss, see `class_correlation`; the metric is measured 0, 5, 10 and 15 steps before the
end of a period, a sample of the last 20 steps, which hold 88 % of the weight in eq. 4;
the epoch of best metric may be kept. `ala_controller` says what the paper leaves open.
"""

import copy
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from baselines.learned_losses.ala_controller import (
    Controller,
    Decision,
    PairPolicy,
    PairStates,
    discounted,
    moved,
)
from baselines.learned_losses.class_correlation import (
    confusion,
    correlation_loss,
    log_probabilities,
    noisy_identity,
)
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    NetworkMethod,
    NetworkResult,
    class_count,
)
from baselines.training.batches import Batches
from baselines.training.children import Children, siblings
from baselines.training.loop import Hooks, TrainingRun, train
from baselines.training.optimization import Training
from baselines.validation import Validation, labels
from metricopt.errors import ConfigError, require_choice
from metricopt.process.seeding import drawn_seed, globally_seeded

Form = Literal["policy", "noise", "confusion"]
SecondRun = Literal["none", "reuse", "finetune"]
APART = 5
"""Steps between two measurements of the metric in a period."""
NOISE = 0.1
SNAPSHOTS = 9


@dataclass(frozen=True)
class AlaResult(NetworkResult):
    """A trained network, with the policy that its loss was changed by.

    Attributes:
        policy: what `PairPolicy.save` can write; None where there is none.
    """

    policy: PairPolicy | None = None


@NETWORK_METHODS.register("ala")
@dataclass(frozen=True, kw_only=True)
class AdaptiveLossAlignment(NetworkMethod):
    """Train with a loss between classes that a learned policy adapts to the metric.

    All metric queries are on the whole observe split: `measured` a period for each
    network, none if the policy does not learn, and with `keep_best` one after every
    epoch for the first network. The notes give, period by period,
    the reward, the entropy of the policy and how many pairs were lowered and raised;
    and the loss parameters of the first network at nine times. `collapsed` is 1 where
    the policy ended almost certain of every action. Pairs with a class that the observe
    split lacks are left alone.

    Attributes:
        period: steps K between two decisions.
        step: how far an action moves a loss parameter, beta.
        gamma: discount of the metric per step.
        measured: times the metric is measured in a period, at its end and before.
        updates: of the policy, after every period.
        diagonal: whether Phi(i, i) changes, too; the paper does not say.
        literal: whether the loss is eq. 6 as it is printed; see `class_correlation`.
        form: what sets the loss parameters: the "policy"; "noise", the identity with
            10 % noise, fixed; or "confusion", eq. 7 in units of log C, at most 1.
        children: networks that share the controller; the first one is returned, the
            others begin with random weights.
        batched: whether the children are computed as one; see `Children`.
        second: whether a second training follows, from the same start, whose policy is
            the first one's, fixed ("reuse") or learning on ("finetune").
        policy: file of a policy to begin with; empty for a random one.
        learns: whether the policy learns.
    """

    period: int = 200
    step: float = 0.1
    gamma: float = 0.9
    measured: int = 4
    updates: int = 1
    diagonal: bool = False
    literal: bool = False
    form: Form = "policy"
    children: int = 1
    batched: bool = False
    second: SecondRun = "none"
    policy: str = ""
    learns: bool = True

    def __post_init__(self) -> None:
        counts = (self.period, self.measured, self.updates, self.children)
        if min(counts) < 1 or not 0 < self.step <= 1:
            raise ConfigError(
                "ALA needs period, measured, updates and children >= 1 and step in "
                f"(0, 1], got period={self.period}, measured={self.measured}, "
                f"updates={self.updates}, children={self.children}, step={self.step}"
            )
        rewarded = self.form == "policy" and self.learns
        if rewarded and APART * (self.measured - 1) >= self.period:
            raise ConfigError(
                f"a period of {self.period} steps is too short to measure the metric "
                f"{self.measured} times, {APART} steps apart"
            )
        if not 0 < self.gamma <= 1:
            raise ConfigError(f"gamma must be in (0, 1], got {self.gamma}")
        require_choice("form", self.form, Form)
        require_choice("second", self.second, SecondRun)

    def train(
        self,
        network: nn.Module,
        batches: Batches,
        validation: Validation,
        *,
        training: Training,
        generator: torch.Generator,
    ) -> AlaResult:
        """Train a copy of the network; see `NetworkMethod.train`.

        Raises:
            DataError: if `policy` names no file with a policy.
        """
        self.check_problem(network, batches, validation)
        with globally_seeded(drawn_seed(generator)):
            policy = PairPolicy.load(Path(self.policy)) if self.policy else PairPolicy()
            networks = siblings(network, self.children)
        if self.batched:
            # Stacked weights have a dimension more than images.
            training = replace(training, channels_last=False)
        runs = 1 if self.second == "none" else 2
        for number in range(runs):
            learns = self.learns and (number == 0 or self.second == "finetune")
            children = Children(networks, batched=self.batched)
            controller = Controller(
                policy, generator, learns=learns, updates=self.updates
            )
            alignment = _Alignment(self, controller, validation)
            run = alignment.begin(children, batches, training, generator)
            best = train(run, hooks=alignment)
        return AlaResult(
            children.network(0),
            threshold=0.0,
            queries=validation.queries,
            gradient_steps=runs * self.children * run.steps,
            notes=best.noted("observe_cost") | alignment.notes(),
            policy=copy.deepcopy(policy) if self.form == "policy" else None,
        )


class _Alignment(Hooks):
    """The loss parameters of all networks, and what changes them between the steps.

    Args:
        settings: of the method.
        controller: decides for all networks.
        validation: counts the queries.
    """

    run: TrainingRun
    pairs: PairStates
    phi: Tensor

    def __init__(
        self,
        settings: AdaptiveLossAlignment,
        controller: Controller,
        validation: Validation,
    ) -> None:
        super().__init__(settings.on_epoch)
        self.settings, self.controller = settings, controller
        self.validation = validation
        self.snapshots: dict[int, Tensor] = {}
        self.decision: Decision | None = None
        self.previous: Tensor | None = None
        self.costs: list[tuple[int, Tensor]] = []

    def begin(
        self,
        children: Children,
        batches: Batches,
        training: Training,
        generator: torch.Generator,
    ) -> TrainingRun:
        """Make the run of the networks, and the loss parameters they begin with."""
        classes = class_count(children, batches)
        self.pairs = PairStates(classes, diagonal=self.settings.diagonal)
        noise = NOISE if self.settings.form == "noise" else 0.0
        phi = noisy_identity(self.settings.children, classes, noise, generator)
        self.phi = phi.to(batches.targets.device)
        observe = self.observe if training.keep_best else None
        self.run = TrainingRun(
            children, self.loss, batches, training, generator=generator, observe=observe
        )
        return self.run

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of the networks' losses: each follows its own gradient."""
        log_p = log_probabilities(outputs).transpose(0, 1)
        literal = self.settings.literal
        return correlation_loss(log_p, targets, self.phi, literal=literal).sum()

    def observe(self, network: nn.Module) -> float:
        """Return the metric's cost of the first network on the observe split."""
        return float(self._measure(self._outputs()[:1])[0])

    def before_step(self, step: int, steps: int) -> None:
        """Measure the metric near the end of a period, and decide at its end."""
        self._snapshot(step, steps)
        age, form = -step % self.settings.period, self.settings.form
        measured = range(0, APART * self.settings.measured, APART)
        if form == "noise" or age not in measured or (age and form == "confusion"):
            return
        if step + age >= steps:  # the end of the period is not reached
            return
        outputs = self._outputs()
        if step and form == "policy" and self.controller.learns:
            self.costs.append((age, self._measure(outputs)))
        if age == 0:
            self._decide(outputs, step / steps)
        self.run.network.train()

    def notes(self) -> dict[str, float | list[float]]:
        """Return what the records say of the way."""
        self.snapshots[self.run.steps] = self.phi[0].cpu()
        phi = torch.stack(list(self.snapshots.values()))
        return {
            "phi_steps": [float(step) for step in self.snapshots],
            "phi": [round(value, 4) for value in phi.flatten().tolist()],
        } | self.controller.notes()

    def _decide(self, outputs: Tensor, done: float) -> None:
        """Reward the last decision, if there is one to compare with, and make one."""
        log_p = log_probabilities(outputs).cpu()
        confusions = confusion(log_p, labels(self.validation.observe).cpu())
        seen = ~confusions[0, :, 0].isnan()
        phi = self.phi.cpu()
        if self.settings.form == "confusion":
            scaled = (confusions / math.log(len(seen))).clamp(max=1)
            self.phi = scaled.where(seen[:, None], phi).to(self.phi)
            return
        if self.costs:
            self._reward()
        self.pairs.observe(confusions)
        allowed = seen[self.pairs.first] & seen[self.pairs.second]
        self.decision = self.controller.decide(self.pairs.states(phi, done), allowed)
        phi = moved(phi, self.decision, self.pairs, self.settings.step)
        self.phi = phi.to(self.phi)

    def _reward(self) -> None:
        ages = torch.tensor([age for age, _ in self.costs])
        costs = torch.stack([cost for _, cost in self.costs], -1)
        total = discounted(costs, ages, self.settings.gamma)
        if self.previous is not None and self.decision is not None:
            rewards = (self.previous - total).sign().nan_to_num(0.0)
            self.controller.reward(self.decision, rewards.float())
        self.previous, self.costs = total, []

    def _outputs(self) -> Tensor:
        """Return the networks' outputs for the observe split, shape [k, N, C]."""
        found: Tensor = self.run.outputs(self.validation.observe)
        return found.transpose(0, 1)

    def _measure(self, outputs: Tensor) -> Tensor:
        """Return the metric's cost of every network, shape [k]: as many queries."""
        if not bool(outputs.isfinite().all()):
            # A metric may refuse NaN. The loss of the epoch reports the divergence.
            return torch.full((len(outputs),), math.nan, dtype=torch.float64)
        return self.validation.costs(outputs).cpu()

    def _snapshot(self, step: int, steps: int) -> None:
        if step * (SNAPSHOTS - 1) // steps >= len(self.snapshots):
            self.snapshots[step] = self.phi[0].cpu()

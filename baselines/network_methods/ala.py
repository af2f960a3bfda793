"""Adaptive loss alignment: a controller changes the loss while the network trains.

Every K = 200 steps the policy sees, for each pair of classes, the mean -log probability
of one on observed examples of the other, and lowers, keeps or raises the pair's loss
parameter. For embeddings it sees functions of observed distances, and moves the weight
of each. Its reward is whether the metric has improved since the period before.

Source: Huang et al., ICML 2019, Sec. 3 to 5; no official code is known. Differs: the
loss of classes, see `class_correlation`; the metric is measured 0, 5, 10 and 15 steps
before the end of a period, a sample of the last 20 steps, which hold 88 % of the weight
in eq. 4; the epoch of best metric may be kept. `ala_controller` and
`adaptive_distances` say what the paper leaves open.
"""

import copy
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from baselines.embedding_losses.margin import Margin
from baselines.embedding_losses.triplet import Triplet
from baselines.learned_losses.adaptive_correlation import (
    SURENESS,
    AdaptiveCorrelation,
)
from baselines.learned_losses.adaptive_distances import (
    DistanceMixture,
    FocalWeighting,
    Sample,
)
from baselines.learned_losses.adaptive_loss import AdaptiveLoss
from baselines.learned_losses.ala_controller import (
    Controller,
    Decision,
    Policy,
    discounted,
)
from baselines.learned_losses.distance_mixture import FunctionSet
from baselines.network_methods.contract import (
    NETWORK_METHODS,
    Assignment,
    NetworkMethod,
    NetworkResult,
    Notes,
    significant,
)
from baselines.network_methods.snapshots import Snapshots
from baselines.training.children import Children, siblings
from baselines.training.loop import Hooks
from baselines.training.prediction import predict
from baselines.validation import labels
from metricopt.errors import ConfigError, require_choice, require_ranges
from metricopt.process.seeding import drawn_seed, globally_seeded

Form = Literal["policy", "walk", "noise", "confusion", "level"]
SecondRun = Literal["none", "reuse", "finetune"]
LossName = Literal["class-correlation", "distance-mixture", "focal-weighting"]
Framework = Literal["triplet", "margin"]
Rewarded = Literal["metric", "loss"]
Split = Literal["observe", "train"]
LOSSES: Mapping[LossName, type[AdaptiveLoss]] = {
    "class-correlation": AdaptiveCorrelation,
    "distance-mixture": DistanceMixture,
    "focal-weighting": FocalWeighting,
}
DECIMALS = 6
"""Digits of the weights of a policy that are kept."""
APART = 5
"""Steps between two measurements of the metric in a period."""
NOISE = 0.1


@NETWORK_METHODS.register("ala")
@dataclass(frozen=True, kw_only=True)
class AdaptiveLossAlignment(NetworkMethod):
    """Train with a loss that a learned policy adapts to the metric.

    All metric queries are on the whole observe split, or on as many training examples:
    `measured` a period for each network, none if the policy does not learn or learns
    from a loss, and with `keep_best` one after every epoch for the first network, on
    observe. The notes give, period by period,
    the reward, the entropy of the policy, how many parameters were lowered and raised,
    and what was rewarded, of all networks in turn; of the first network, the loss
    parameters at nine times, and the slopes of the loss of classes then. `collapsed` is
    1 where the policy ended almost certain of every action. Names of notes of a first
    training of two begin with `first_`. The last slopes are of the network that is
    kept. Pairs with a class that the observe split lacks are left alone. The result
    holds the policy, for other data.

    Attributes:
        period: steps K between two decisions.
        step: how far an action moves a loss parameter, beta.
        gamma: discount of the metric per step.
        measured: times the metric is measured in a period, at its end and before.
        updates: steps of the policy after every period.
        literal: whether the loss is eq. 6 as it is printed; see `class_correlation`.
        form: what sets the loss parameters: the "policy"; a "walk", one whose actions
            are drawn evenly, whatever it sees; "noise", the default with 10 % noise,
            fixed; or, of classes alone, "confusion", eq. 7 in units of log C, at most
            1, or "level", 1 for the true class and `level` for all others, fixed.
        level: loss parameter of pairs of classes, of form "level" alone.
        children: networks that share the controller; the first one is returned, the
            others begin with random weights.
        batched: whether the children are computed as one; see `Children`.
        second: whether a second training follows, from the same start, whose policy is
            the first one's, fixed ("reuse") or learning on ("finetune").
        loss: what is adapted: the loss of classes, or one of two of embeddings.
        framework: loss of embeddings whose sampling of pairs is used.
        functions: name of the functions of a distance mixture.
        policy: weights of a policy that was learned on other data, which stays as it
            is; empty for one that learns here.
        reward: whether the policy is rewarded by the "metric", or by cross-entropy.
        rewarded_on: where the reward is measured: "observe", or the first training
            examples as they are, as many. The paper measures all of them.
    """

    period: int = 200
    step: float = 0.1
    gamma: float = 0.9
    measured: int = 4
    updates: int = 1
    literal: bool = False
    form: Form = "policy"
    level: float = 0.0
    children: int = 1
    batched: bool = False
    second: SecondRun = "none"
    loss: LossName = "class-correlation"
    framework: Framework = "margin"
    functions: FunctionSet = "shapes"
    policy: Sequence[float] = ()
    reward: Rewarded = "metric"
    rewarded_on: Split = "observe"

    def __post_init__(self) -> None:
        require_ranges(
            "ALA",
            vars(self),
            period=">= 1",
            step="in (0, 1]",
            gamma="in (0, 1]",
            measured=">= 1",
            updates=">= 1",
            children=">= 1",
            level="in [-1, 1]",
        )
        require_choice("form", self.form, Form)
        require_choice("second", self.second, SecondRun)
        require_choice("loss", self.loss, LossName)
        require_choice("framework", self.framework, Framework)
        require_choice("functions", self.functions, FunctionSet)
        require_choice("reward", self.reward, Rewarded)
        require_choice("rewarded_on", self.rewarded_on, Split)
        classes = self.loss == "class-correlation"
        fixed = self.form in ("confusion", "level")
        if not classes and (self.literal or fixed or self.reward == "loss"):
            raise ConfigError(
                "literal, forms 'confusion' and 'level' and reward 'loss' are of the "
                f"loss of classes, got loss {self.loss!r}"
            )
        if self.form == "walk" and self.policy:
            raise ConfigError("a walk has no policy; give one to form 'policy'")
        if self.form == "policy" and APART * (self.measured - 1) >= self.period:
            raise ConfigError(
                f"a period of {self.period} steps is too short to measure the metric "
                f"{self.measured} times, {APART} steps apart"
            )

    def _train(self, given: Assignment) -> NetworkResult:
        with globally_seeded(drawn_seed(given.generator)):
            policy = Policy(LOSSES[self.loss].features)
            networks = siblings(given.network, self.children)
        self._take(policy)
        controller = Controller(policy, given.generator, updates=self.updates)
        if self.batched:
            # Stacked weights have a dimension more than images.
            training = replace(given.training, channels_last=False)
            given = replace(given, training=training)
        runs, notes = 1 if self.second == "none" else 2, Notes()
        learns = self.form == "policy" and not self.policy
        for number in range(runs):
            goes_on = number == 0 or self.second == "finetune"
            controller.begin(learns=goes_on and learns)
            children = Children(networks, batched=self.batched)
            alignment = _Alignment(self, controller, given, children)
            best = given.finish(alignment.run, alignment)
            notes = {f"first_{name}": value for name, value in notes.items()}
            notes |= best.noted("observe_cost") | alignment.notes()
        steps = runs * self.children * alignment.run.steps
        weights = parameters_to_vector(policy.parameters()).tolist()
        learned = [round(weight, DECIMALS) for weight in weights]
        return replace(given.result(children.network(0), steps, notes), learned=learned)

    def adapted(self, given: Assignment) -> AdaptiveLoss:
        """Return the loss whose parameters are moved, for what is trained."""
        if self.loss == "class-correlation":
            return AdaptiveCorrelation(given.class_count(), literal=self.literal)
        network = copy.deepcopy(given.network)
        size = int(predict(network, given.batches.plain(2)).shape[-1])
        classes = int(given.batches.targets.max()) + 1
        base = Triplet if self.framework == "triplet" else Margin
        sample: Sample = base(classes, size).triplets
        if self.loss == "focal-weighting":
            return FocalWeighting(sample)
        return DistanceMixture(sample, self.functions)

    def _take(self, policy: Policy) -> None:
        """Give a policy the weights that it got on other data, if there are any."""
        expected = sum(weight.numel() for weight in policy.parameters())
        if self.form == "walk":
            # With weights of 0 all actions are as likely.
            vector_to_parameters(torch.zeros(expected), policy.parameters())
        if not self.policy:
            return
        if len(self.policy) != expected:
            raise ConfigError(
                f"a policy of loss {self.loss!r} needs {expected} weights, got "
                f"{len(self.policy)}: one of another kind of loss does not fit"
            )
        vector_to_parameters(torch.tensor(self.policy), policy.parameters())


class _Alignment(Hooks):
    """The loss parameters of all networks, and what changes them between the steps.

    Args:
        settings: settings of the method.
        controller: decides for all networks.
        given: what is trained, and what counts the queries.
        children: the networks.
    """

    def __init__(
        self,
        settings: AdaptiveLossAlignment,
        controller: Controller,
        given: Assignment,
        children: Children,
    ) -> None:
        super().__init__(settings.on_epoch)
        self.settings, self.controller = settings, controller
        self.validation, self.batches = given.validation, given.batches
        self.snapshots, self.slopes = Snapshots(), list[float]()
        self.decision: Decision | None = None
        self.previous: Tensor | None = None
        self.costs: list[tuple[int, Tensor]] = []
        self.rewarded: list[float] = []
        self.adapted = settings.adapted(given)
        noise = NOISE if settings.form == "noise" else 0.0
        phi = self.adapted.start(settings.children, noise, given.generator)
        if settings.form == "level":
            phi = phi.where(phi > 0, settings.level)
        self.phi = phi.to(given.batches.targets.device)
        observe = self.observe if given.training.keep_best else None
        self.run = given.run(children, self.loss, observe)

    def state(self) -> dict[str, Any]:
        """Return the loss parameters, the controller, and what both have seen."""
        names = ("phi", "previous", "costs", "rewarded", "slopes")
        decision = self.decision and tuple(self.decision)
        return {
            **{name: getattr(self, name) for name in names},
            "snapshots": self.snapshots.taken,
            "decision": decision,
            # The key that checkpoints have had from the beginning.
            "pairs": self.adapted.state(),
            "controller": self.controller.state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.adapted.restore(state.pop("pairs"))
        self.controller.restore(state.pop("controller"))
        decision = state.pop("decision")
        self.decision = decision and Decision(*decision)
        self.snapshots.taken = state.pop("snapshots")
        vars(self).update(state, phi=state["phi"].to(self.phi))

    def loss(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of the networks' losses: each follows its own gradient."""
        return self.adapted.loss(outputs, targets, self.phi).sum()

    def observe(self, network: nn.Module) -> float:
        """Return the metric's cost of the first network on the observe split."""
        return float(self._measure(self._outputs()[:1])[0])

    def before_step(self, step: int, steps: int) -> None:
        """Measure the metric near the end of a period, and decide at its end."""
        if self.snapshots.take(step, steps, self.phi[0]):
            self._note_slopes()
            self.run.network.train()
        age, form = -step % self.settings.period, self.settings.form
        measured = range(0, APART * self.settings.measured, APART)
        if form in ("noise", "level") or age not in measured:
            return
        if age and not self.controller.learns:
            return
        if step + age >= steps:  # the end of the period is not reached
            return
        outputs = self._outputs()
        if step and self.controller.learns:
            self.costs.append((age, self._rewarded(outputs)))
        if age == 0:
            self._decide(outputs, step / steps)
        self.run.network.train()

    def notes(self) -> Notes:
        """Return what the records say of the way."""
        if self.snapshots.take(self.run.steps, self.run.steps, self.phi[0]):
            self._note_slopes()
        found = self.snapshots.notes(self.adapted.noted) | self.controller.notes()
        if self.rewarded:
            found["rewarded"] = self.rewarded
        if self.slopes:
            found |= {"slopes": self.slopes, "slope_bounds": [*SURENESS]}
        return found

    def _note_slopes(self) -> None:
        if not isinstance(self.adapted, AdaptiveCorrelation):
            return
        outputs, targets = self._outputs()[:1], labels(self.validation.observe)
        if outputs.shape[-1] > 1:
            slopes = self.adapted.slopes(outputs, targets, self.phi[:1])
            self.slopes += significant(slopes.tolist())

    def _decide(self, outputs: Tensor, done: float) -> None:
        """Reward the last decision, if there is one to compare with, and make one."""
        allowed = self.adapted.observe(outputs, labels(self.validation.observe))
        phi = self.phi.cpu()
        if self.settings.form == "confusion":
            self.phi = self.adapted.followed(phi).to(self.phi)
            return
        if self.costs:
            self._reward()
        states = self.adapted.states(phi, done)
        self.decision = self.controller.decide(states, allowed)
        changes = self.decision.changes(self.settings.step)
        self.phi = self.adapted.moved(phi, changes).to(self.phi)

    def _reward(self) -> None:
        ages = torch.tensor([age for age, _ in self.costs])
        costs = torch.stack([cost for _, cost in self.costs], -1)
        total = discounted(costs, ages, self.settings.gamma)
        if self.previous is not None and self.decision is not None:
            rewards = (self.previous - total).sign().nan_to_num(0.0)
            self.controller.reward(self.decision, rewards.float())
        self.rewarded += significant(total.tolist())
        self.previous, self.costs = total, []

    def _outputs(self) -> Tensor:
        """Return the networks' outputs for the observe split, shape [k, N, C]."""
        found: Tensor = self.run.outputs(self.validation.observe)
        return found.transpose(0, 1)

    def _rewarded(self, outputs: Tensor) -> Tensor:
        """Return what rewards are made of, lower is better, shape [k].

        Args:
            outputs: of the networks for the observe split, shape [k, N, C].
        """
        targets = labels(self.validation.observe)
        trained_on = self.settings.rewarded_on == "train"
        if trained_on:
            count = min(len(targets), len(self.batches.targets))
            targets = self.batches.targets[:count]
            inputs = self.batches.plain(count)
            found = predict(self.run.network, inputs, self.run.forward)
            outputs = found.transpose(0, 1)
        if self.settings.reward == "metric":
            return self._measure(outputs, targets if trained_on else None)
        every = targets.expand(len(outputs), -1)
        losses = cross_entropy(outputs.mT, every, reduction="none")
        return losses.mean(1).double().cpu()

    def _measure(self, outputs: Tensor, targets: Tensor | None = None) -> Tensor:
        """Return the metric's cost of every network, shape [k]: as many queries."""
        if not bool(outputs.isfinite().all()):
            # A metric may refuse NaN. The loss of the epoch reports the divergence.
            return torch.full((len(outputs),), math.nan, dtype=torch.float64)
        return self.validation.costs(outputs, targets).cpu()

"""The teacher of L2T-DLF, the loss it gives to a student, and the way back to it.

The loss is that of `class_correlation` with parameters W and, if literal, an offset b
inside the sigmoid; both follow from the student's state by attention over slots.

Source: Wu et al., NeurIPS 2018. Differs: without `literal` there is no sigmoid, and b
has no effect. The state is not given in full there; ours has 13 numbers.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.func import functional_call

from baselines.learned_losses.class_correlation import (
    correlation_loss,
    log_probabilities,
)
from metricopt.process.seeding import globally_seeded

STATE = 13
DECAY = 0.9
IDENTITY_NOISE = 0.05
"""Deviation of the slots from the identity, at first."""


class LossParameters(NamedTuple):
    """W, shape [C, C], rows by true class, and the offset b, a scalar."""

    weights: Tensor
    offset: Tensor


class Teacher(nn.Module):
    """Maps a student's state to the parameters of its loss.

    Args:
        classes: number of classes C >= 2.
        slots: number of matrices that attention mixes.
    """

    def __init__(self, classes: int, slots: int = 10) -> None:
        super().__init__()
        self.attention = nn.Linear(STATE, slots, bias=False)
        noise = IDENTITY_NOISE * torch.randn(slots, classes, classes)
        self.slots = nn.Parameter(torch.eye(classes) + noise)
        self.offsets = nn.Parameter(torch.zeros(slots))

    def forward(self, state: Tensor) -> LossParameters:
        """Return the loss of a student in a state, shape [13]."""
        shares = self.attention(state).softmax(-1)
        mixed = torch.einsum("k,kij->ij", shares, self.slots)
        return LossParameters(mixed, shares @ self.offsets)


def dynamic_loss(
    outputs: Tensor,
    targets: Tensor,
    parameters: LossParameters,
    *,
    literal: bool = False,
) -> Tensor:
    """Return the student's loss, a scalar; see `correlation_loss`.

    Args:
        outputs: class logits [n, C] or one logit [n, 1].
        targets: labels, shape [n].
        parameters: parameters of the loss.
        literal: whether it is the published one, times 4.
    """
    phi, offset = parameters
    log_p = log_probabilities(outputs)
    return correlation_loss(log_p, targets, phi, literal=literal, offset=offset)


def true_probability(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return the mean probability of the true class: a smooth accuracy."""
    log_p = log_probabilities(outputs)
    return log_p.gather(-1, targets.long()[:, None]).exp().mean()


class StudentState:
    """What the teacher sees of a student.

    The share of its training that is done; loss and accuracy of the last mini-batch and
    their moving averages; loss, accuracy, mean true probability and mean entropy on
    examples held out, the best of the first two so far, and their last changes. Losses
    and entropies are in units of log C.
    """

    def __init__(self) -> None:
        self._train = torch.zeros(2)
        self._average: Tensor | None = None
        self._held = torch.zeros(4)
        self._best = torch.tensor([math.inf, 0.0])
        self._change = torch.zeros(2)
        self._seen = False

    def train(self, outputs: Tensor, targets: Tensor) -> None:
        """Take note of a mini-batch."""
        self._train = _figures(outputs, targets)[:2]
        average = self._train if self._average is None else self._average
        self._average = DECAY * average + (1 - DECAY) * self._train

    def hold_out(self, outputs: Tensor, targets: Tensor) -> None:
        """Take note of examples that are held out."""
        found = _figures(outputs, targets)
        if self._seen:
            self._change = found[:2] - self._held[:2]
        self._held, self._seen = found, True
        loss, accuracy = found[:2]
        self._best = torch.stack(
            [self._best[0].minimum(loss), self._best[1].maximum(accuracy)]
        )

    def state(self) -> dict[str, Any]:
        """Return all of it, for checkpoints."""
        return vars(self)

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        vars(self).update(state)

    def vector(self, done: float) -> Tensor:
        """Return the state, shape [13], after `hold_out`.

        Args:
            done: share of the training.
        """
        average = self._train if self._average is None else self._average
        parts = [torch.tensor([done]), self._train, average, self._held]
        return torch.cat([*parts, self._best, self._change])


class _Step(NamedTuple):
    inputs: Tensor
    targets: Tensor
    state: Tensor
    weights: dict[str, Tensor]
    buffers: dict[str, Tensor]
    seed: int


class Window:
    """Plain steps of a student under a teacher, and the gradient back through them.

    Gradients do not pass through the student's state, nor through the running
    statistics of batch norm.

    Args:
        student: trained in place; dropout and batch norm are those of training.
        teacher: gives the loss.
        rate: rate of a step.
        literal: see `dynamic_loss`.
    """

    def __init__(
        self,
        student: nn.Module,
        teacher: Teacher,
        rate: float,
        *,
        literal: bool = False,
    ) -> None:
        self.student, self.teacher, self.rate = student, teacher, rate
        self.literal = literal
        self._steps: list[_Step] = []

    def step(
        self, inputs: Tensor, targets: Tensor, state: Tensor, seed: int
    ) -> tuple[Tensor, Tensor]:
        """Take a step of the student; return its loss and its outputs, detached.

        Args:
            inputs: inputs of a mini-batch, shape [n, ...].
            targets: labels of the mini-batch, shape [n].
            state: state of the student, shape [13].
            seed: seed for what the layers draw.
        """
        weights = dict(self.student.named_parameters())
        before = {name: weight.detach().clone() for name, weight in weights.items()}
        buffers = {n: b.clone() for n, b in self.student.named_buffers()}
        self._steps.append(_Step(inputs, targets, state, before, buffers, seed))
        self.student.train()
        with globally_seeded(seed, inputs.device):
            outputs = self.student(inputs)
        with torch.no_grad():
            parameters = self.teacher(state)
        loss = dynamic_loss(outputs, targets, parameters, literal=self.literal)
        gradients = torch.autograd.grad(loss, list(weights.values()))
        with torch.no_grad():
            for weight, gradient in zip(weights.values(), gradients, strict=True):
                weight -= self.rate * gradient
        return loss.detach(), outputs.detach()

    def hypergradient(self, inputs: Tensor, targets: Tensor) -> list[Tensor]:
        """Return the gradient of minus the true probability after the steps.

        It is with respect to the teacher's weights, in their order: reverse-mode
        differentiation by Hessian-vector products, a step recomputed at a time.

        Args:
            inputs: inputs of examples that are held out.
            targets: their labels.
        """
        self.student.eval()
        weights = list(self.student.parameters())
        cost = -true_probability(self.student(inputs), targets)
        back = list(torch.autograd.grad(cost, weights))
        learned = list(self.teacher.parameters())
        found = [torch.zeros_like(weight) for weight in learned]
        self.student.train()
        for step in reversed(self._steps):
            pulled = self._pull(step, back, learned)
            for total, part in zip(found, pulled[: len(learned)], strict=True):
                total -= self.rate * part
            parts = zip(back, pulled[len(learned) :], strict=True)
            back = [old - self.rate * part for old, part in parts]
        return found

    def _pull(
        self, step: _Step, back: Sequence[Tensor], learned: Sequence[Tensor]
    ) -> list[Tensor]:
        """Return back' times the derivatives of the step's gradient."""
        weights = {
            name: weight.requires_grad_() for name, weight in step.weights.items()
        }
        with globally_seeded(step.seed, step.inputs.device):
            outputs = functional_call(
                self.student, weights | step.buffers, (step.inputs,)
            )
        parameters = self.teacher(step.state)
        loss = dynamic_loss(outputs, step.targets, parameters, literal=self.literal)
        own = list(weights.values())
        gradients = torch.autograd.grad(loss, own, create_graph=True)
        pairs = zip(back, gradients, strict=True)
        product = torch.stack([(old * new).sum() for old, new in pairs]).sum()
        inputs = [*learned, *own]
        pulled = torch.autograd.grad(
            product, inputs, allow_unused=True, materialize_grads=True
        )
        return list(pulled)


def _figures(outputs: Tensor, targets: Tensor) -> Tensor:
    """Return loss, accuracy, mean true probability and mean entropy, shape [4]."""
    with torch.no_grad():
        log_p = log_probabilities(outputs.float()).cpu()
        targets = targets.long().cpu()
        true = log_p.gather(-1, targets[:, None])[:, 0]
        unit = math.log(log_p.shape[-1])
        right = (log_p.argmax(-1) == targets).float()
        entropy = -(log_p.exp() * log_p.clamp(min=-100)).sum(-1)
        parts = [-true / unit, right, true.exp(), entropy / unit]
        return torch.stack([part.mean() for part in parts])

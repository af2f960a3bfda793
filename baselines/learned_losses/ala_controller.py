"""The controller of ALA: its policy, what it decides, how it learns.

Source: Huang et al., ICML 2019, Sec. 3 and 5. Where the paper is silent we chose: the
baseline decays by 0.9; the policy learns by Adam, after every period, from 256
decisions drawn from the last 20 periods of all networks; the ratio of new to old
probabilities of their actions is clipped to [0.5, 2].
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from baselines.learned_losses.adaptive_loss import DECAY

HIDDEN = 32
ACTIONS = (-1, 0, 1)
MEMORY, SAMPLE = 20, 256
RATE = 1e-3
RATIO = (0.5, 2.0)
COLLAPSED = 0.1
"""Entropy of a collapsed policy, as a share of the greatest, log 3."""


class Policy(nn.Module):
    """Maps the state of a loss parameter to logits of its three actions.

    All parameters of a loss share it, however many there are.

    Args:
        features: numbers in a state, F.
    """

    def __init__(self, features: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(features, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, len(ACTIONS)),
        )

    def forward(self, states: Tensor) -> Tensor:
        """Return logits [..., 3] for states [..., F]."""
        logits: Tensor = self.layers(states)
        return logits


class Decision(NamedTuple):
    """The actions drawn for all P parameters of k networks, and the states they answer.

    Attributes:
        states: shape [k, P, F].
        actions: places in `ACTIONS`, shape [k, P].
        log_p: log-probabilities of the actions when they were drawn, shape [k, P].
        allowed: parameters that may change, shape [P].
    """

    states: Tensor
    actions: Tensor
    log_p: Tensor
    allowed: Tensor

    def changes(self, step: float) -> Tensor:
        """Return what is added to the parameters, shape [k, P].

        Args:
            step: how far an action moves a parameter, beta.
        """
        return step * (self.actions - 1).to(self.log_p) * self.allowed


class _Experience(NamedTuple):
    states: Tensor
    actions: Tensor
    log_p: Tensor
    advantages: Tensor


@dataclass
class Course:
    """What a controller went through, one number a period."""

    rewards: list[float]
    entropies: list[float]
    lowered: list[float]
    raised: list[float]


class Controller:
    """Draws actions and learns from their rewards by REINFORCE: eq. 3, T = 1.

    Args:
        policy: what decides; learned in place.
        generator: source of all randomness; on the CPU.
        updates: steps of the policy after every period.

    Attributes:
        course: what happened in the training so far.
        learns: whether rewards change the policy.
    """

    def __init__(
        self,
        policy: Policy,
        generator: torch.Generator,
        *,
        updates: int = 1,
    ) -> None:
        self.policy, self.learns, self.updates = policy, True, updates
        self.course = Course([], [], [], [])
        self._generator = generator
        self._optimizer = torch.optim.Adam(policy.parameters(), lr=RATE)
        self._memory: deque[_Experience] = deque(maxlen=MEMORY)
        self._baseline = 0.0

    def begin(self, *, learns: bool = True) -> None:
        """Begin a training, with what was learned before.

        Args:
            learns: whether its rewards change the policy.
        """
        self.learns, self.course = learns, Course([], [], [], [])

    def decide(self, states: Tensor, allowed: Tensor) -> Decision:
        """Draw an action for every loss parameter.

        Args:
            states: shape [k, P, F].
            allowed: parameters that may change, shape [P].
        """
        with torch.no_grad():
            log_p = self.policy(states).log_softmax(-1)
        flat = log_p.exp().flatten(0, 1)
        drawn = torch.multinomial(flat, 1, generator=self._generator)
        actions = drawn.view(log_p.shape[:-1])
        share = [float((actions[:, allowed] == a).float().mean()) for a in (0, 2)]
        self.course.lowered.append(share[0])
        self.course.raised.append(share[1])
        entropy = -(log_p.exp() * log_p).sum(-1)[:, allowed].mean()
        self.course.entropies.append(float(entropy))
        chosen = log_p.gather(-1, actions[..., None])[..., 0]
        return Decision(states, actions, chosen, allowed)

    def reward(self, decision: Decision, rewards: Tensor) -> None:
        """Remember what a decision earned and learn from the memory.

        Args:
            decision: decision of k networks.
            rewards: rewards of the k networks, each -1, 0 or 1, shape [k].
        """
        self.course.rewards.append(float(rewards.mean()))
        if not self.learns:
            return
        states, actions, log_p, allowed = decision
        advantages = (rewards - self._baseline)[:, None].expand_as(log_p)
        kept = (item[:, allowed].flatten(0, 1) for item in (states, actions, log_p))
        self._memory.append(_Experience(*kept, advantages[:, allowed].flatten()))
        mean = float(rewards.mean())
        self._baseline = DECAY * self._baseline + (1 - DECAY) * mean
        for _ in range(self.updates):
            self._learn()

    def state(self) -> dict[str, Any]:
        """Return the policy, its optimiser and its memory, for checkpoints."""
        return {
            "policy": self.policy.state_dict(),
            "optimizer": self._optimizer.state_dict(),
            "memory": [tuple(each) for each in self._memory],
            "baseline": self._baseline,
            "course": vars(self.course),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self.policy.load_state_dict(state["policy"])
        self._optimizer.load_state_dict(state["optimizer"])
        self._memory.clear()
        self._memory.extend(_Experience(*each) for each in state["memory"])
        self._baseline = state["baseline"]
        self.course = Course(**state["course"])

    @property
    def entropy(self) -> float:
        """Entropy of the latest decision, as a share of the greatest one."""
        return self.course.entropies[-1] / math.log(len(ACTIONS))

    def notes(self) -> dict[str, float | list[float]]:
        """Return what records say of the course; empty if nothing was decided."""
        if not self.course.entropies:
            return {}
        ends = {
            "entropy": self.entropy,
            "collapsed": float(self.entropy < COLLAPSED),
        }
        return vars(self.course) | ends

    def _learn(self) -> None:
        columns = zip(*self._memory, strict=True)
        states, actions, old, advantages = (torch.cat(column) for column in columns)
        order = torch.randperm(len(states), generator=self._generator)[:SAMPLE]
        log_p = self.policy(states[order]).log_softmax(-1)
        chosen = log_p.gather(-1, actions[order, None])[:, 0]
        ratio = (chosen.detach() - old[order]).exp().clamp(*RATIO)
        loss = -(ratio * chosen * advantages[order]).mean()
        self._optimizer.zero_grad()
        loss.backward()
        self._optimizer.step()


def discounted(costs: Tensor, ages: Tensor, gamma: float) -> Tensor:
    """Return sum_j gamma^age_j cost_j, shape [...]: eq. 4 at the given ages K - j.

    Args:
        costs: costs of a metric, lower is better, shape [..., m].
        ages: iterations since each was measured, shape [m].
        gamma: the discount factor, in (0, 1].
    """
    return (costs * gamma ** ages.to(costs)).sum(-1)

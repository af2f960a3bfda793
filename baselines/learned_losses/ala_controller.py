"""The controller of ALA: what it sees of a pair of classes, its policy, how it learns.

Source: Huang et al., ICML 2019, Sec. 3 and 5. Where the paper is silent we chose: the
baseline and the moving average decay by 0.9; the policy learns by Adam, after every
period, from 256 pairs drawn from the last 20 periods of all networks; the ratio of new
to old probabilities of their actions is clipped to [0.5, 2].
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

PAST = 10
"""Periods whose statistics a state holds."""
FEATURES = 2 * PAST + 4
HIDDEN = 32
ACTIONS = (-1, 0, 1)
DECAY = 0.9
MEMORY, SAMPLE = 20, 256
RATE = 1e-3
RATIO = (0.5, 2.0)
COLLAPSED = 0.1
"""Entropy of a collapsed policy, as a share of the greatest, log 3."""
LARGEST = 10.0
"""Greatest statistic, in units of log C."""


class PairPolicy(nn.Module):
    """Maps the state of a pair of classes to logits of its three actions.

    All pairs share it, whatever the number of classes is.
    """

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(FEATURES, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, len(ACTIONS)),
        )

    def forward(self, states: Tensor) -> Tensor:
        """Return logits [..., 3] for states [..., 24]."""
        logits: Tensor = self.layers(states)
        return logits


class PairStates:
    """What the controller sees of each pair of classes i < j.

    The statistics of both directions over the last ten periods, their relative changes
    from their moving averages, Phi(i, j), and the share of the training that is done.

    Args:
        classes: number of classes C.
    """

    def __init__(self, classes: int) -> None:
        self.first, self.second = torch.triu_indices(classes, classes, offset=1)
        self._unit = math.log(classes)
        self._past: deque[Tensor] = deque(maxlen=PAST)
        self._average: Tensor | None = None

    def observe(self, confusions: Tensor) -> None:
        """Take note of the confusions of k networks, shape [k, C, C], NaN as 0."""
        known = (confusions / self._unit).nan_to_num(0.0).clamp(0, LARGEST)
        self._past.append(known)
        previous = known if self._average is None else self._average
        self._average = DECAY * previous + (1 - DECAY) * known

    def state(self) -> dict[str, Any]:
        """Return what was observed, for checkpoints."""
        return {"past": list(self._past), "average": self._average}

    def restore(self, state: dict[str, Any]) -> None:
        """Take back what `state` returned."""
        self._past.extend(state["past"])
        self._average = state["average"]

    def states(self, phi: Tensor, done: float) -> Tensor:
        """Return the states of the P pairs, shape [k, P, 24].

        Args:
            phi: loss parameters, shape [k, C, C].
            done: share of the training that is over, in [0, 1].
        """
        assert self._average is not None
        missing = PAST - len(self._past)
        past = torch.stack([self._past[0]] * missing + list(self._past), -1)
        change = (self._past[-1] - self._average) / self._average.clamp(min=1e-6)
        i, j = self.first, self.second
        own = phi[:, i, j, None]
        return torch.cat(
            [
                past[:, i, j],
                past[:, j, i],
                change[:, i, j, None].clamp(-1, 1),
                change[:, j, i, None].clamp(-1, 1),
                own,
                torch.full_like(own, done),
            ],
            -1,
        )


class Decision(NamedTuple):
    """The actions drawn for all pairs of k networks, and the states they were drawn in.

    Attributes:
        states: shape [k, P, 24].
        actions: places in `ACTIONS`, shape [k, P].
        log_p: log-probabilities of the actions when they were drawn, shape [k, P].
        allowed: pairs whose classes were seen, shape [P].
    """

    states: Tensor
    actions: Tensor
    log_p: Tensor
    allowed: Tensor


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
        learns: whether rewards change the policy.
        updates: steps of the policy after every period.

    Attributes:
        course: what happened so far.
    """

    def __init__(
        self,
        policy: PairPolicy,
        generator: torch.Generator,
        *,
        learns: bool = True,
        updates: int = 1,
    ) -> None:
        self.policy, self.learns, self.updates = policy, learns, updates
        self.course = Course([], [], [], [])
        self._generator = generator
        self._optimizer = torch.optim.Adam(policy.parameters(), lr=RATE)
        self._memory: deque[_Experience] = deque(maxlen=MEMORY)
        self._baseline = 0.0

    def decide(self, states: Tensor, allowed: Tensor) -> Decision:
        """Draw an action for every pair.

        Args:
            states: shape [k, P, 24].
            allowed: pairs that may change, shape [P].
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


def moved(phi: Tensor, decision: Decision, pairs: PairStates, step: float) -> Tensor:
    """Return the loss parameters after a decision, symmetric, in [-1, 1].

    Args:
        phi: shape [k, C, C].
        decision: decision of the k networks.
        pairs: which pair is where.
        step: how far an action moves a parameter, beta.
    """
    changes = step * (decision.actions - 1).to(phi) * decision.allowed
    found = phi.clone()
    value = phi[:, pairs.first, pairs.second] + changes
    found[:, pairs.first, pairs.second] = value
    found[:, pairs.second, pairs.first] = value
    return found.clamp(-1, 1)


def discounted(costs: Tensor, ages: Tensor, gamma: float) -> Tensor:
    """Return sum_j gamma^age_j cost_j, shape [...]: eq. 4 at the given ages K - j.

    Args:
        costs: costs of a metric, lower is better, shape [..., m].
        ages: iterations since each was measured, shape [m].
        gamma: the discount factor, in (0, 1].
    """
    return (costs * gamma ** ages.to(costs)).sum(-1)

"""Frank-Wolfe with elicited gradients (FW-EG) on the decisions of a trained network.

A metric of the diagonal of the confusion matrix has a gain beta_k for every right
prediction of class k, locally. Probes elicit it: each edits a share of the predictions
to one class, which changes the diagonal by a known dC and the metric by a queried dM;
beta solves dC beta = dM. The best answer to a linear metric is argmax_k beta_k p_k, and
Frank-Wolfe mixes these answers into a randomised classifier.

Source: Hiranandani et al., ICML 2021; the authors' code is `stair-lab/fweg`. Differs:
there is one group, as our data have no attributes. Gains are elicited on the observe
split, so outputs must be calibrated there; the paper elicits them on training examples,
which corrects for other class shares on the way. The first iterate is the network's own
decisions. The mixture is drawn once per example instead of averaged, since a metric
reads decisions. The best observed iterate is returned.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from baselines.post_hoc.class_scores import log_probabilities
from baselines.validation import Validation, labels
from metricopt.errors import ConfigError


@dataclass(frozen=True)
class FrankWolfe:
    """How long Frank-Wolfe goes on, and how much a probe edits.

    Attributes:
        iterations: elicitations, if there is no limit of queries; each takes K probes
            and one query of its result.
        edited: share of the predictions that a probe edits.
        max_queries: most metric queries, for as many iterations as they suffice for;
            None for no limit.
    """

    iterations: int = 10
    edited: float = 0.1
    max_queries: int | None = None

    def affordable(self, classes: int) -> int:
        """Return the number of iterations for K classes.

        Raises:
            ConfigError: if a setting is out of its range, or not one is affordable.
        """
        found = self.iterations
        if self.max_queries is not None:
            found = (self.max_queries - 1) // (classes + 1)
        if found < 1 or not 0 < self.edited <= 1:
            raise ConfigError(
                "FW-EG needs iterations >= 1, edited in (0, 1] and at least "
                f"{classes + 2} queries for {classes} classes, got {self}"
            )
        return found


@dataclass(frozen=True)
class Mixture:
    """A randomised classifier: argmax_k gain_k p_k with gains drawn per example.

    Attributes:
        gains: gains of every iterate, float64, shape [T, K].
        weights: probabilities of the iterates, float64, shape [T].
        seed: seed of the draw.
    """

    gains: Tensor
    weights: Tensor
    seed: int

    def decide(self, outputs: Tensor) -> Tensor:
        """Return the decisions for logits [N, C], shape [N]."""
        probabilities = log_probabilities(outputs).double().exp()
        generator = torch.Generator().manual_seed(self.seed)
        draw = torch.rand(len(outputs), generator=generator, dtype=torch.float64)
        drawn = torch.searchsorted(self.weights.cumsum(0), draw, right=True)
        gains = self.gains[drawn.clamp_max(len(self.gains) - 1)]
        return (probabilities * gains.to(probabilities.device)).argmax(-1)

    def shift(self, outputs: Tensor) -> Tensor:
        """Return the decisions for logits [N, C] as scores 0 and 1, shape [N, K]."""
        return one_hot(self.decide(outputs), self.gains.shape[1]).to(outputs)

    def towards(self, gains: Tensor, step: float) -> "Mixture":
        """Return the mixture with a share `step` of another classifier."""
        return Mixture(
            torch.cat([self.gains, gains[None]]),
            torch.cat([(1 - step) * self.weights, self.weights.new_tensor([step])]),
            self.seed,
        )


class Iterate(NamedTuple):
    """A classifier with a new best value, and the queries made until then.

    Attributes:
        queries: metric queries made so far.
        value: the metric there, in native units, on the examples it was tuned on.
        mixture: the classifier.
    """

    queries: int
    value: float
    mixture: Mixture


def frank_wolfe(
    outputs: Tensor,
    validation: Validation,
    *,
    search: FrankWolfe,
    generator: torch.Generator,
) -> tuple[Iterate, ...]:
    """Return the improvements on the way of Frank-Wolfe with elicited gradients.

    The network's own decisions come first, the best classifier last.

    Args:
        outputs: logits on the observe split, calibrated to its class shares, shape
            [N, C]; one logit counts as two classes.
        validation: the metric, a function of decisions.
        search: iterations and probes.
        generator: source of all randomness.

    Raises:
        ShapeError: if outputs have no class axis.
        ConfigError: if a setting is out of its range, or the queries do not suffice.
        BudgetExceededError: if the queries would exceed the limit of the validation.
    """
    classes = log_probabilities(outputs[:1]).shape[1]
    iterations = search.affordable(classes)
    seed = int(torch.randint(2**31, (), generator=generator))
    equal = torch.ones(1, classes, dtype=torch.float64)
    mixture = Mixture(equal, torch.ones(1, dtype=torch.float64), seed)
    oracle = _Oracle(outputs, validation, generator)
    cost, value = oracle.query(mixture.decide(outputs)[None])
    best, trace = cost[0], [Iterate(1, value[0].item(), mixture)]
    for step in range(iterations):
        gains = oracle.elicit(mixture.decide(outputs), cost, search.edited)
        mixture = mixture.towards(gains, 2 / (step + 2))
        cost, value = oracle.query(mixture.decide(outputs)[None])
        if cost[0] < best:
            best = cost[0]
            trace.append(Iterate(oracle.queries, value[0].item(), mixture))
    return tuple(trace)


def diagonal(decisions: Tensor, targets: Tensor, classes: int) -> Tensor:
    """Return shares of right predictions by class for decisions [R, N], [R, K]."""
    hits = one_hot(targets.long(), classes) * (decisions == targets)[..., None]
    return hits.double().mean(1)


class _Oracle:
    """Decisions on the observe split, judged and probed."""

    def __init__(
        self, outputs: Tensor, validation: Validation, generator: torch.Generator
    ) -> None:
        self._like = outputs
        self._classes = max(outputs.shape[1], 2)
        self._validation = validation
        self._targets = labels(validation.observe)
        self._generator = generator
        self.queries = 0

    def query(self, decisions: Tensor) -> tuple[Tensor, Tensor]:
        """Return costs and native values of decisions [R, N], each [R]."""
        scores = one_hot(decisions, self._classes).to(self._like)
        values = self._validation.values(scores)
        self.queries += len(decisions)
        return self._validation.as_costs(values), values

    def elicit(self, decisions: Tensor, cost: Tensor, edited: float) -> Tensor:
        """Return the gain of a right prediction of every class, shape [K].

        Args:
            decisions: where the gains are wanted, shape [N].
            cost: cost of these decisions, shape [1].
            edited: share of the predictions that a probe edits.
        """
        count = max(1, round(edited * len(decisions)))
        order = torch.randperm(len(decisions), generator=self._generator)
        probes = decisions.repeat(self._classes, 1)
        every_class = torch.arange(self._classes, device=decisions.device)
        probes[:, order[:count].to(decisions.device)] = every_class[:, None]
        costs, _ = self.query(probes)
        after = diagonal(probes, self._targets, self._classes)
        before = diagonal(decisions[None], self._targets, self._classes)
        # Least squares of least norm: a class without edited examples has gain 0.
        found = torch.linalg.lstsq(
            (after - before).cpu(), (cost - costs).cpu()[:, None], driver="gelsd"
        )
        gains: Tensor = found.solution[:, 0]
        return gains

"""Bayesian optimisation in a trust region, with a prior that knows the dimension.

A Gaussian process on all queried phi. Its length scales have a log-normal prior whose
median grows with sqrt(d), without which a process in many dimensions knows nothing
between its points. A function drawn from the process says which of many candidates in a
box around the best phi is queried next; the box grows with successes and shrinks with
failures.

Source: Hvarfner et al., ICML 2024 (prior); Eriksson et al., NeurIPS 2019 (TuRBO-1 with
Thompson sampling). Differs: phi = 0 is the first point and the others of the
first block lie in the box around it, not all over the domain. The box shrinks after
`patience` failures instead of d, which few queries would never reach, and is never
restarted. Hyper-parameters are found by a few warm-started steps of Adam.
"""

import math
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from baselines.phi_methods.contract import RIVALS
from metricopt.methods.contract import Method, Preparation
from metricopt.methods.evolution import draw_seeds
from metricopt.methods.result import Archive, Budget, FinetuneResult
from metricopt.process.keeping import one_thread
from metricopt.tasks.task import Task

with warnings.catch_warnings():
    # gpytorch scripts its solvers on import; torch warns that this is deprecated.
    warnings.simplefilter("ignore", FutureWarning)
    import gpytorch

MOVED = 20
"""About how many coordinates of a candidate differ from the best phi."""
LONGEST = 1.6
"""Greatest side of the box, in units of the domain."""


@RIVALS.register("trust-region-bo")
@dataclass(frozen=True)
class TrustRegionBO(Method):
    """Bayesian optimisation from phi = 0; returns the best observed phi.

    Attributes:
        reach: the domain is [-reach, reach] in every coordinate.
        first_points: queries before the process is asked, phi = 0 included; at most a
            quarter of the budget.
        side: side of the first box, in units of the domain.
        candidates: points that one query is chosen from.
        fit_steps: steps of Adam on the hyper-parameters before a query.
        successes: new bests in a row after which the box grows by 2.
        patience: failures in a row after which it shrinks by 2.
    """

    reach: float = 1.0
    first_points: int = 10
    side: float = 0.8
    candidates: int = 1_000
    fit_steps: int = 20
    successes: int = 3
    patience: int = 5

    def run(
        self,
        task: Task,
        budget: Budget,
        generator: torch.Generator,
        *,
        rows: int = 1,
        prepared: Preparation | None = None,
    ) -> FinetuneResult:
        """Spend all queries of the budget on every row."""
        archive = Archive(task, budget, rows)
        first = min(self.first_points, max(1, budget.queries // 4))
        searches = [
            _Search(self, task.size, seed) for seed in draw_seeds(rows, generator)
        ]
        with one_thread():
            while archive.remaining:
                known = archive.spent >= max(2, first)
                asked = [
                    search.ask(archive.phi[row], archive.costs[row], known=known)
                    for row, search in enumerate(searches)
                ]
                archive.query(torch.stack(asked)[:, None])
        return archive.result()


class _Search:
    """The trust region of one row, in the unit cube."""

    def __init__(self, settings: TrustRegionBO, size: int, seed: int) -> None:
        self._settings = settings
        self._size = size
        self._side = settings.side
        self._streak = 0
        self._generator = torch.Generator().manual_seed(seed)
        self._sobol = torch.quasirandom.SobolEngine(size, scramble=True, seed=seed)
        self._hyper_parameters: dict[str, Tensor] | None = None

    def ask(self, phi: Tensor, costs: Tensor, *, known: bool) -> Tensor:
        """Return the phi [d] to query next.

        Args:
            phi: queried so far, shape [n, d].
            costs: their costs, shape [n].
            known: whether the process is asked; if not, a candidate is as good as any.
        """
        points = (phi.double() / self._settings.reach + 1) / 2
        centre = points[costs.argmin()]
        if not known:
            chosen = self._candidates(centre, torch.ones_like(centre), count=1)[0]
        else:
            self._resize(costs)
            process = self._fitted(points, costs)
            scales = process.covar_module.lengthscale.detach()[0]
            candidates = self._candidates(centre, scales, self._settings.candidates)
            drawn = self._draw(process, candidates)
            chosen = candidates[drawn.argmin()]
        return ((2 * chosen - 1) * self._settings.reach).float()

    def _resize(self, costs: Tensor) -> None:
        """Count the last query as a success or a failure, and resize the box."""
        better = bool(costs[-1] < costs[:-1].min())
        step = 1 if better else -1
        self._streak = self._streak + step if self._streak * step > 0 else step
        if self._streak == self._settings.successes:
            self._side, self._streak = min(2 * self._side, LONGEST), 0
        elif self._streak == -self._settings.patience:
            self._side, self._streak = self._side / 2, 0

    def _candidates(self, centre: Tensor, scales: Tensor, count: int) -> Tensor:
        """Return points in the box, longer where the process varies less, [count, d].

        Every point keeps most coordinates of the centre where there are many.
        """
        weight = scales / scales.log().mean().exp()
        half = 0.5 * self._side * weight
        low, high = (centre - half).clamp(0, 1), (centre + half).clamp(0, 1)
        inside = low + (high - low) * self._sobol.draw(count, dtype=torch.float64)
        share = min(1.0, MOVED / self._size)
        moved = torch.rand(count, self._size, generator=self._generator) < share
        # One coordinate moves at least.
        some = torch.randint(self._size, (count, 1), generator=self._generator)
        moved.scatter_(1, some, True)
        return torch.where(moved, inside, centre)

    def _fitted(self, points: Tensor, costs: Tensor) -> "_Process":
        """Return the process of greatest posterior, started from the last one's."""
        scaled = (costs - costs.mean()) / costs.std().clamp_min(1e-9)
        process = _Process(points, scaled)
        if self._hyper_parameters is not None:
            process.load_state_dict(self._hyper_parameters)
        process.fit(self._settings.fit_steps)
        self._hyper_parameters = process.state_dict()
        return process

    def _draw(self, process: "_Process", points: Tensor) -> Tensor:
        """Return a function drawn from the process, at points [n, d]."""
        settings = gpytorch.settings
        exact = settings.fast_computations(False, False, False)
        with torch.no_grad(), exact, settings.debug(False):
            latent = process.eval()(points)
            covariance = latent.covariance_matrix
        covariance.diagonal().add_(1e-6)
        noise = torch.randn(len(points), generator=self._generator, dtype=torch.float64)
        drawn: Tensor = latent.mean + torch.linalg.cholesky(covariance) @ noise
        return drawn


class _Process(gpytorch.models.ExactGP):
    """A process on the unit cube, of standardised costs."""

    def __init__(self, points: Tensor, costs: Tensor) -> None:
        priors = gpytorch.priors
        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_prior=priors.LogNormalPrior(-4.0, 1.0),
            noise_constraint=gpytorch.constraints.GreaterThan(1e-4),
        )
        super().__init__(points, costs, likelihood)
        size = points.shape[1]
        place, spread = math.sqrt(2) + 0.5 * math.log(size), math.sqrt(3)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.RBFKernel(
            ard_num_dims=size,
            lengthscale_prior=priors.LogNormalPrior(place, spread),
            lengthscale_constraint=gpytorch.constraints.GreaterThan(0.025),
        )
        self.to(torch.float64)
        # The modes of the priors.
        self.covar_module.lengthscale = math.exp(place - spread**2)
        likelihood.noise = math.exp(-4.0 - 1.0)

    def forward(self, points: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(points), self.covar_module(points)
        )

    def fit(self, steps: int) -> None:
        """Ascend the posterior of the hyper-parameters."""
        self.train()
        posterior = gpytorch.mlls.ExactMarginalLogLikelihood(self.likelihood, self)
        optimizer = torch.optim.Adam(self.parameters(), lr=0.1)
        exact = gpytorch.settings.fast_computations(False, False, False)
        with exact, gpytorch.settings.debug(False):
            for _ in range(steps):
                optimizer.zero_grad()
                loss = -posterior(self(self.train_inputs[0]), self.train_targets)
                loss.backward()
                optimizer.step()

"""Exact Gaussian processes over time, a row each, with one kernel for all of them.

No registry imports it: who meta-trains no value function needs no gpytorch.

Source: Huang et al., CVPR 2021, Sec. 3.1, "Metric interpolation": an RBF kernel.
"""

import math
import warnings
from dataclasses import dataclass

import torch
from torch import Tensor

from metricopt.errors import ConfigError

try:
    with warnings.catch_warnings():
        # gpytorch scripts its solvers on import; torch warns that this is deprecated.
        warnings.simplefilter("ignore", FutureWarning)
        import gpytorch
except ModuleNotFoundError as error:
    raise ConfigError(
        "to meta-train a value function, metricopt needs gpytorch: "
        "pip install 'metricopt[paper]'"
    ) from error

LENGTH_SCALE = (0.05, 1.0)
NOISE_SHARE = (1e-6, 1e-2)
FALLBACK_LENGTH_SCALE = 0.2
DEVIATION_FLOOR = 0.05
"""Least deviation of an interpolated cost, as a share of the spread of all costs.

Costs that differ by less than twice the floor can never be told apart by the Fisher
ratio, so an absolute floor would silence metrics that move little.
"""
LEAST_DEVIATION = 1e-6
"""The floor where costs do not differ at all, in units of cost."""
LEAST_NOISE = 1e-12
"""Variance below which a nearly constant metric would make the kernel singular."""


@dataclass(frozen=True)
class Kernel:
    """Hyper-parameters of the process on x = t / T.

    Attributes:
        length_scale: length scale of the RBF kernel, in fractions of a trajectory.
        signal_variance: variance of the noise-free function, in squared cost.
        noise_variance: variance of an observation, in squared cost.
    """

    length_scale: float
    signal_variance: float
    noise_variance: float


class _Process(gpytorch.models.ExactGP):
    """Batched exact process with one kernel for all rows and a zero mean."""

    def __init__(self, x: Tensor, y: Tensor, kernel: Kernel) -> None:
        likelihood = gpytorch.likelihoods.GaussianLikelihood(
            noise_constraint=gpytorch.constraints.GreaterThan(LEAST_NOISE)
        )
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
        self.to(torch.float64)
        self.covar_module.base_kernel.lengthscale = kernel.length_scale
        self.covar_module.outputscale = kernel.signal_variance
        likelihood.noise = max(kernel.noise_variance, 2 * LEAST_NOISE)

    def forward(self, x: Tensor) -> gpytorch.distributions.MultivariateNormal:
        return gpytorch.distributions.MultivariateNormal(
            self.mean_module(x), self.covar_module(x)
        )


def posterior(
    steps: Tensor, costs: Tensor, grid: Tensor, kernel: Kernel
) -> tuple[Tensor, Tensor]:
    """Return mean and variance of the noise-free cost on a grid, for each row, [B, G].

    Observed times t / T and costs, [B, K], and the grid [G] are float64; the prior mean
    is taken off the costs, and so off the mean.
    """
    process = _Process(steps[..., None], costs, kernel).eval()
    times = grid.expand(len(steps), -1)[..., None]
    settings = gpytorch.settings
    # Exact solves: K is small, and iterative ones would only add error. Debug mode
    # would warn if the grid is the observed times, `latent.variance` of its rounding.
    exact = settings.fast_computations(False, False, False)
    with torch.no_grad(), exact, settings.debug(False):
        latent = process(times)
        covariance = latent.lazy_covariance_matrix
        return latent.mean, covariance.diagonal(dim1=-2, dim2=-1).clamp_min(0.0)


def fit_kernel(steps: Tensor, costs: Tensor, iterations: int = 40) -> Kernel:
    """Fit one kernel to all rows by their summed marginal likelihood.

    Observed times t / T and costs are [B, K], float64. The hyper-parameters are within
    `LENGTH_SCALE` and `NOISE_SHARE` of the observed variance; the kernel is a fixed one
    where every row is constant or K = 1.
    """
    centred = costs - costs.mean(1, keepdim=True)
    freedom = max(costs.shape[1] - 1, 1) / costs.shape[1]
    variance = float(centred.square().mean()) / freedom
    if costs.shape[1] < 2 or variance < 1e-16:
        floor = max(variance, deviation_floor(costs) ** 2)
        return Kernel(FALLBACK_LENGTH_SCALE, floor, floor * NOISE_SHARE[0])
    scale = math.sqrt(variance)
    start = Kernel(FALLBACK_LENGTH_SCALE, 1.0, 1e-3)
    process = _Process(steps[..., None], centred / scale, start)
    _constrain(process)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gpytorch.utils.warnings.NumericalWarning)
        _maximise_likelihood(process, iterations)
    base = process.covar_module
    return Kernel(
        base.base_kernel.lengthscale.item(),
        base.outputscale.item() * variance,
        process.likelihood.noise.item() * variance,
    )


def deviation_floor(costs: Tensor) -> float:
    """Return `DEVIATION_FLOOR` of the standard deviation of costs [B, K]."""
    spread = costs.std().item() if costs.numel() > 1 else 0.0
    return max(DEVIATION_FLOOR * spread, LEAST_DEVIATION)


def _constrain(process: _Process) -> None:
    interval = gpytorch.constraints.Interval
    kernel, likelihood = process.covar_module, process.likelihood
    kernel.base_kernel.register_constraint("raw_lengthscale", interval(*LENGTH_SCALE))
    kernel.base_kernel.lengthscale = FALLBACK_LENGTH_SCALE
    likelihood.noise_covar.register_constraint("raw_noise", interval(*NOISE_SHARE))
    likelihood.noise = 1e-3
    process.to(torch.float64)


def _maximise_likelihood(process: _Process, iterations: int) -> None:
    process.train()
    likelihood = gpytorch.mlls.ExactMarginalLogLikelihood(process.likelihood, process)
    optimizer = torch.optim.Adam(process.parameters(), lr=0.1)
    with gpytorch.settings.fast_computations(False, False, False):
        for _ in range(iterations):
            optimizer.zero_grad()
            negative = -likelihood(
                process(*process.train_inputs), process.train_targets
            )
            negative.sum().backward()
            optimizer.step()

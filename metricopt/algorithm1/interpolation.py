"""Line 4: Gaussian-process interpolation of sparse metric observations over time.

Source: Huang et al., CVPR 2021, Sec. 3.1, "Metric interpolation": the mean M_t and
deviation sigma_t at every step. Differs: with a handful of observations a trajectory
cannot fit its own kernel, so hyper-parameters are pooled over trajectories.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from metricopt.algorithm1.trajectories import Trajectories

if TYPE_CHECKING:
    from metricopt.gaussian_processes.over_time import Kernel


class Interpolator:
    """Interpolates trajectories of one kind, with a kernel pooled over them.

    The kernel is fitted on all rows seen so far (the last `pool`), each time their
    number has doubled: many refits would cost more than they tell. Guided costs vary
    many times as much as those along the loss, so every kind has its own interpolator.

    Attributes:
        kernel: the current hyper-parameters; None before the first trajectories.
        floor: least deviation, in units of cost; see `deviation_floor`.
    """

    def __init__(self, pool: int = 64) -> None:
        # Late, here and below, since other methods need no gpytorch.
        from metricopt.gaussian_processes.over_time import LEAST_DEVIATION

        self.pool = pool
        self.kernel: Kernel | None = None
        self.floor = LEAST_DEVIATION
        self._seen = 0
        self._refit_at = 1
        self._recent: list[tuple[Tensor, Tensor]] = []

    def interpolate(self, trajectories: Trajectories) -> tuple[Tensor, Tensor]:
        """Return mean and deviation of the cost at every step, float32, each [B, T].

        The deviation is that of the noise-free cost, and at least `floor`.
        """
        from metricopt.gaussian_processes.over_time import posterior

        length = trajectories.phi.shape[1]
        times = trajectories.steps.to(torch.float64) / length
        self._update(times, trajectories.costs)
        assert self.kernel is not None
        grid = torch.arange(length, dtype=torch.float64) / length
        centre = trajectories.costs.mean(1, keepdim=True)
        mean, variance = posterior(
            times, trajectories.costs - centre, grid, self.kernel
        )
        deviation = variance.sqrt().clamp_min(self.floor)
        return (mean + centre).float(), deviation.float()

    def _update(self, times: Tensor, costs: Tensor) -> None:
        from metricopt.gaussian_processes.over_time import deviation_floor, fit_kernel

        self._recent.append((times, costs))
        self._seen += len(times)
        if self._seen < self._refit_at:
            return
        pooled_times = torch.cat([part for part, _ in self._recent])[-self.pool :]
        pooled_costs = torch.cat([part for _, part in self._recent])[-self.pool :]
        self._recent = [(pooled_times, pooled_costs)]
        self._refit_at = 2 * self._seen
        self.floor = deviation_floor(pooled_costs)
        self.kernel = fit_kernel(pooled_times, pooled_costs)

"""A pre-trained network as a prerequisite of runs."""

from tqdm import tqdm

from baselines.training.selection import Epoch
from baselines.training.team import team
from benchmarks.problems.contract import Prerequisite
from benchmarks.problems.pretrained.theta import (
    PretrainedSpec,
    is_ready,
    is_trained,
    release_theta,
    trained_here,
)


class PretrainedNetwork(Prerequisite):
    """A network that runs start from.

    Args:
        spec: which one.
    """

    def __init__(self, spec: PretrainedSpec) -> None:
        self.spec = spec
        self.name = spec.name
        self.digest = spec.digest

    @property
    def is_ready(self) -> bool:
        """Whether it was trained here, or is released."""
        return is_ready(self.spec)

    @property
    def is_made(self) -> bool:
        """Whether it was trained on this machine."""
        return is_trained(self.spec)

    def make(self) -> None:
        """Train it, with a bar of its epochs."""
        hidden = not team().leads
        with tqdm(
            total=self.spec.epochs, unit="epoch", desc=self.name, disable=hidden
        ) as bar:

            def show(epoch: Epoch) -> None:
                bar.update(epoch.number - bar.n)
                bar.set_postfix(loss=f"{epoch.train_loss:.4f}")

            trained_here(self.spec, show)

    def release(self) -> dict[str, str]:
        """Write it to the released weights, and return what a table says of it."""
        facts = trained_here(self.spec).facts
        path = release_theta(self.spec)
        return {
            "network": self.name,
            "epochs": str(self.spec.epochs),
            "minutes": f"{float(str(facts['seconds'])) / 60:.1f}",
            **self.spec.told(facts),
            "MB": f"{path.stat().st_size / 1e6:.2f}",
        }

"""The UCI protocol as a bench: an MLP with dynamic input biases on a binary problem.

Random 70/10/20 split, features standardised with the train split's statistics, an MLP
trained with cross-entropy.
"""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from baselines.losses import LOSSES
from baselines.network_method import Recipe, Schedule, fit
from benchmarks.artifacts import Artifact, get_or_make
from benchmarks.backbones import deployed, initialise, mlp, state_of
from benchmarks.bench import Bench, Splits
from benchmarks.datasets import load_dataset
from metricopt.adapters import DynamicBias
from metricopt.errors import DataError
from metricopt.sampling import Split
from metricopt.seeding import make_generator


def load_splits(problem: dict[str, Any], replicate: int) -> Splits:
    """Return the splits of a problem for one replicate.

    Args:
        problem: `dataset`, `variant`, `positive` (classes that count as 1) and
            `max_examples` (None for all).
        replicate: decides the random split.

    Raises:
        DataError: if a split has one class only.
    """
    data = load_dataset(problem["dataset"], problem["variant"], True)
    targets = torch.isin(data.targets, torch.tensor(problem["positive"])).long()
    generator = make_generator("split", problem["dataset"], replicate)
    order = torch.randperm(len(targets), generator=generator)
    order = order[: problem["max_examples"]]
    ends = [int(len(order) * share) for share in (0.7, 0.8)]
    parts = order.tensor_split(ends)
    inputs = data.inputs.flatten(1)
    centre, scale = standardisation(inputs[parts[0]])
    splits = [Split((inputs[part] - centre) / scale, targets[part]) for part in parts]
    for name, split in zip(("train", "observe", "test"), splits, strict=True):
        if len(split.targets.unique()) < 2:
            raise DataError(
                f"the {name} split of {data.label} holds one class only; expected "
                f"examples of classes {problem['positive']} and of others"
            )
    return Splits(*splits, data.label, data.digest)


def standardisation(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Return centre and scale of every feature [N, F]; 0/1 features stay as they are.

    A rare indicator, divided by its deviation, would dominate all other inputs.
    """
    binary = ((inputs == 0) | (inputs == 1)).all(0)
    centre = torch.where(binary, 0.0, inputs.mean(0))
    scale = torch.where(binary, 1.0, inputs.std(0).clamp_min(1e-6))
    return centre, scale


class UCIBench(Bench):
    """A binary problem with its MLP; see `Bench`."""

    loss = nn.BCEWithLogitsLoss()

    @cached_property
    def splits(self) -> Splits:
        """The three splits."""
        return load_splits(self.settings["problem"], self.replicate)

    @property
    def place(self) -> tuple[object, ...]:
        """What the seeds of this bench depend on, its replicate excepted."""
        problem = self.settings["problem"]
        return problem["dataset"], problem["positive"], self.settings["sampling"]

    def fresh_network(self) -> nn.Sequential:
        """Return the backbone with random weights."""
        backbone = self.settings["backbone"]
        network = mlp(
            self.splits.train.inputs.shape[1],
            tuple(backbone["hidden"]),
            slope=backbone["slope"],
            dropout=backbone["dropout"],
        )
        initialise(network, self.seed("theta"))
        return network

    def schedule(self, **changes: Any) -> Schedule:
        """Return the backbone's training schedule, with changes."""
        names = ("epochs", "batch_size", "learning_rate")
        schedule = {name: self.settings["backbone"][name] for name in names}
        return Schedule(**schedule | changes, balanced=self.balanced)

    @cached_property
    def theta(self) -> nn.Sequential:
        """The network trained with cross-entropy."""
        network = self.fresh_network()

        def train() -> Artifact:
            recipe = Recipe(LOSSES.get("cross-entropy"), self.schedule())
            best = fit(
                network,
                self.splits.train,
                self.splits.observe,
                recipe=recipe,
                generator=self.generator("pre-training"),
            )
            return Artifact(state_of(network), {"epoch": best.epoch})

        network.load_state_dict(get_or_make("theta", self.key, train).tensors)
        return network.eval()

    @cached_property
    def adapter(self) -> DynamicBias:
        """The dynamic biases of the deployed theta."""
        return DynamicBias(
            deployed(self.theta),
            size=self.settings["adapter"]["size"],
            seed=self.seed("adapter"),
            example_input=self.splits.train.inputs[:64],
        )

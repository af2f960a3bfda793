"""Image networks that network methods train towards a metric, and their sizes.

Every method trains the same network on the same images from the same weights, for as
many steps as cross-entropy. Tables share these networks: each is trained once.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from benchmarks.data.registry import find_source
from benchmarks.problems.images import tiers
from benchmarks.problems.images.settings import (
    ImageBackbone,
    ImageProblem,
    ImageTraining,
)
from benchmarks.problems.images.tiers import (
    CLASSIC,
    PRETRAINING_REVISION,
    SHORT,
    Images,
    ImageSize,
)
from benchmarks.problems.pretrained.method_training import TrainedByMethod
from benchmarks.runs.codec import merged
from benchmarks.runs.spec import Settings, Unit

MCR, AUCPR = "mcr", "aucpr"
CE = "ce"
METRIC_FREE = (CE, "self-paced", "self-paced-global")
"""Methods that never query the metric: one network serves all of them."""
UNIT_SLOPE = {"unit_slope": True}
"""Setting of ReLoss, whose own penalty asks for a slope of n per example, n in a group.

The slope is 1 with labels that are made, and steeper with those that outputs have.
"""


@dataclass(frozen=True)
class Tuned:
    """What is chosen for a method by short trainings; see `trials`.

    Attributes:
        rate: greatest learning rate; None for the usual one.
        settings: of the method, beside its usual ones.
    """

    rate: float | None = None
    settings: Settings = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class MethodSize(ImageSize):
    """How large a tier is.

    Attributes:
        network: name of an image network.
        images: training images; None for all.
        pretraining: how each network is trained.
        methods: settings of the network methods at this tier, by registered name.
        children: networks of ALA that share a controller.
        tuned: what is chosen for a method, by a name of ours.
    """

    network: str = "resnet32"
    images: int | None = None
    pretraining: ImageTraining = CLASSIC
    methods: Mapping[str, Settings] = field(default_factory=dict, hash=False)
    children: int = 10
    tuned: Mapping[str, Tuned] = field(default_factory=dict, hash=False)

    def chosen(self, name: str) -> Tuned:
        """Return what is chosen for a method, or for the one whose form it is."""
        return self.tuned.get(FORM_OF.get(name, name), Tuned())


SIZES = {
    "paper": MethodSize(
        **vars(tiers.SIZES["paper"]) | {"replicates": 10, "value_functions": 1},
        methods={
            "ala": {"period": 200, "measured": 4, "literal": False},
            "l2t-dlf": {"students": 3, "literal": False},
            "moew": {"rounds": 10, "per_round": 20},
            "reloss": {"fitting": UNIT_SLOPE},
        },
    ),
    "local": MethodSize(
        **vars(tiers.SIZES["local"])
        | {"replicates": 3, "value_functions": 1, "seeds": 1, "tasks": 160},
        network="resnet8",
        images=8_000,
        pretraining=replace(SHORT, epochs=8),
        methods={
            # There are 496 steps. A controller that decides every 200 of them, and
            # takes one small step a decision, would never leave its first policy.
            "ala": {"period": 20, "measured": 1, "updates": 10},
            "l2t-dlf": {"students": 1, "teaching_epochs": 2},
            "moew": {"rounds": 2, "per_round": 4, "search_epochs": 2},
            # Few logits, so fewer groups a step leave more steps.
            "reloss": {
                "recorded": 100_000,
                "fitting": {"groups": 64, "epochs": 8, **UNIT_SLOPE},
            },
        },
        children=3,
    ),
    "smoke": MethodSize(
        **vars(tiers.SIZES["smoke"])
        | {"replicates": 1, "value_functions": 1, "seeds": 1},
        network="digit-net",
        pretraining=replace(SHORT, epochs=3, batch_size=32),
        methods={
            "ala": {"period": 20, "measured": 2},
            "l2t-dlf": {
                "students": 1,
                "teaching_epochs": 1,
                "window": 5,
                "literal": False,
            },
            "moew": {"rounds": 2, "per_round": 2, "search_epochs": 1},
            "reloss": {
                "fitting": {
                    **{"epochs": 2, "groups": 16, "group_size": 32},
                    **UNIT_SLOPE,
                },
            },
        },
        children=2,
    ),
}

WHOLE = SIZES | {
    "local": MethodSize(
        **vars(tiers.SIZES["local"])
        | {
            "replicates": 5,
            "few_replicates": 3,
            "value_functions": 1,
            "seeds": 1,
            "tasks": 160,
        },
        network="resnet9",
        # The network is small for so many epochs: with crops of 4 pixels it fits less.
        pretraining=replace(SHORT, epochs=32, shift=2),
        methods={
            # There are 11,232 steps, and 225 decisions; see `tuned`.
            "ala": {"period": 50, "measured": 1},
            # The teacher has 106 steps.
            "l2t-dlf": {"students": 1, "teaching_epochs": 3, "teacher_rate": 1e-2},
            "moew": {"rounds": 5, "per_round": 8, "search_epochs": 4},
            # A quarter of the epochs records 359,000 outputs: with 64 groups a step
            # they make 390 steps of fitting, with 256 only 90. The rate of the
            # recording is the usual one, so all forms learn from one recording.
            "reloss": {
                "recorded": 500_000,
                "recording": 0.25,
                "recording_rate": SHORT.rate,
                "fitting": {"slope_of_base": True, "groups": 64},
            },
        },
        children=3,
        # By `trials`; all others have the usual settings.
        tuned={
            "self-paced": Tuned(settings={"start": 0.8}),
            "self-paced-global": Tuned(settings={"start": 0.8}),
            "ala": Tuned(settings={"period": 200, "measured": 4}),
            "reloss-anchored": Tuned(rate=0.05),
        },
    ),
}
"""The sizes at which cross-entropy is near its error in the papers."""


def size_at(tier: str, *, whole: bool) -> MethodSize:
    """Return the size of a tier, of `WHOLE` or of `SIZES`."""
    return (WHOLE if whole else SIZES)[tier]


def unit_of(name: str, size: MethodSize) -> Unit:
    """Return the registered method that a name of ours stands for, at a size.

    Args:
        name: of a method, some followed by what is different.
        size: of the tier.
    """
    method, changes = variants(size).get(name, (name, {}))
    usual = merged(size.methods.get(method, {}), changes)
    return Unit(method, merged(usual, size.chosen(name).settings))


def variants(size: MethodSize) -> Mapping[str, tuple[str, Settings]]:
    """Return the registered method of a name of ours, and changes to its settings."""
    return VARIANTS | {"ala-multi": ("ala", {"children": size.children})}


def _by(loss: str) -> tuple[str, Settings]:
    """Return the method that trains with a loss alone."""
    own = tiers.LOSS_SETTINGS.get(loss, {})
    return "surrogate-loss", {"loss": loss} | ({"loss_settings": own} if own else {})


LOSSES = ("pairwise-aucroc", "aucpr")
"""Losses of networks in the tables of AUCPR."""
VARIANTS: dict[str, tuple[str, Settings]] = {
    CE: ("surrogate-loss", {}),
    **{loss: _by(loss) for loss in (*tiers.LOSS_SETTINGS, *LOSSES)},
    "self-paced-global": ("self-paced", {"form": "global"}),
    "ala-noise": ("ala", {"form": "noise"}),
    "ala-walk": ("ala", {"form": "walk"}),
    "ala-confusion": ("ala", {"form": "confusion"}),
    "ala-level": ("ala", {"form": "level", "level": 0.1}),
    "ala-literal": ("ala", {"literal": True}),
    "ala-literal-fixed": ("ala", {"literal": True, "form": "level"}),
    "ala-reuse": ("ala", {"second": "reuse"}),
    "ala-finetune": ("ala", {"second": "finetune"}),
    "ala-loss": ("ala", {"reward": "loss"}),
    "ala-train": ("ala", {"rewarded_on": "train"}),
    "ala-train-loss": ("ala", {"reward": "loss", "rewarded_on": "train"}),
    "reloss-anchored": ("reloss", {"fitting": {"anchored": True}}),
    "reloss-regression": ("reloss", {"fitting": {"objective": "regression"}}),
}
FORM_OF = {
    "ala-noise": "ala",
    "ala-walk": "ala",
    "ala-confusion": "ala",
    "ala-multi": "ala",
    "ala-reuse": "ala",
    "ala-finetune": "ala",
    "ala-loss": "ala",
    "ala-train": "ala",
    "ala-train-loss": "ala",
    "ala-literal-fixed": "ala-literal",
}
"""Methods that have what is chosen for another one."""


@dataclass(frozen=True)
class MethodNetwork:
    """A network that a method trains, for any tier.

    Attributes:
        method: its name, see `unit_of`; or a loss that networks learn with.
        metric: what it works towards; of no effect on methods without queries.
        network: name of an image network; empty for the usual one of the tier.
        whole: whether it is trained at the sizes of `WHOLE`.
    """

    method: str
    metric: str = MCR
    network: str = ""
    whole: bool = False

    @property
    def _by_loss(self) -> bool:
        return self.method in tiers.LOSS_SETTINGS or self.method in LOSSES

    def trained_by(self, tier: str) -> str:
        """Return the registered method that trains it, or the loss alone that does."""
        return self.method if self._by_loss else unit_of(self.method, SIZES[tier]).name

    def backbone(self, tier: str, problem: ImageProblem) -> ImageBackbone:
        """Return the network with its training at a tier."""
        return self.sized(size_at(tier, whole=self.whole), problem)

    def sized(self, size: MethodSize, problem: ImageProblem) -> ImageBackbone:
        """Return the network with its training at a size."""
        pretraining, rate = size.pretraining, size.chosen(self.method).rate
        if rate is not None:
            pretraining = replace(pretraining, rate=rate)
        plain = ImageBackbone(
            network=self.network or size.network,
            classes=len(find_source(problem.dataset).classes),
            loss=tiers.CROSS_ENTROPY,
            loss_settings={},
            pretraining=pretraining,
            revision=PRETRAINING_REVISION,
        )
        if self._by_loss:
            settings = tiers.LOSS_SETTINGS.get(self.method, {})
            plain = replace(plain, loss=self.method, loss_settings=settings)
            if not self.whole:
                return plain
        free = self._by_loss or self.method in METRIC_FREE
        metric = MCR if free else self.metric
        label = self.method if free else f"{self.method}-{metric}"
        method = unit_of(self.method, size)
        return replace(plain, taught=TrainedByMethod(label, method, Unit(metric)))


@dataclass(frozen=True, kw_only=True)
class MethodImages(Images):
    """Images on which every network method trains a network of its own.

    Attributes:
        metric: what the methods work towards.
        architecture: name of an image network; empty for the usual one of the tier.
        whole: whether networks are trained at the sizes of `WHOLE`.
    """

    metric: str = MCR
    architecture: str = ""
    whole: bool = False

    @classmethod
    def of(
        cls, problem: Images, tier: str, *, whole: bool = False, **changes: Any
    ) -> Self:
        """Return images of a tier with the sizes of this protocol."""
        size = size_at(tier, whole=whole)
        data = replace(problem.data, max_examples=size.images)
        known = {"tier": tier, "size": size, "finetuning": size, "whole": whole}
        return cls(name=problem.name, data=data, **known | changes).by(CE)

    def by(self, method: str) -> Self:
        """Return the same images with the network that a method trains."""
        network = MethodNetwork(method, self.metric, self.architecture, self.whole)
        return replace(self, network=network)

    @property
    def trained_by(self) -> str:
        """The registered method that trains the network, or the loss alone."""
        return self.network.trained_by(self.tier)


def described(
    tier: str, network: str = "", data: str = "CIFAR-10", *, whole: bool = False
) -> str:
    """Return what captions say of network and images."""
    if whole and tier == "local":
        return "ResNet-9 with a quarter of its channels, all of CIFAR-10, 32 epochs"
    return {
        "paper": f"{'ResNet-56' if network else 'ResNet-32'} on {data}",
        "local": (
            "ResNet-8 on 8,000 images of CIFAR-10, 8 epochs: small enough to train "
            "every method on two cores"
        ),
        "smoke": "a small network on digits, 3 epochs",
    }[tier]

"""What anybody would try by hand, and how it did where a method tried it."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Attempt:
    """The best phi of an obvious kind that a method tried.

    Attributes:
        name: the kind, such as `one shift`.
        phi: adapter parameters, shape [d].
        cost: cost of phi on observe.
        observed: whether the cost was observed; else a value function predicts it.
    """

    name: str
    phi: Tensor
    cost: float
    observed: bool = False


@dataclass(frozen=True)
class Obvious:
    """How something obvious did on the observe split.

    Attributes:
        name: what was tried: `one shift`, `temperature`, `logit adjustment` or
            `thresholds`.
        value: metric of the best of this kind, native units.
        observed: whether the value was observed; else a value function predicts it.
        taken: whether it is the phi that was chosen.
    """

    name: str
    value: float
    observed: bool
    taken: bool

    def describe(self) -> str:
        """Return the name with the value, and how it is known."""
        how = "observed" if self.observed else "predicted"
        return f"{self.name} {self.value:.4g} ({how}{', taken' * self.taken})"

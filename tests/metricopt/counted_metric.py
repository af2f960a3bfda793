"""A metric of the user's that knows how often it was called."""

from torch import Tensor


class Counted:
    """A metric that counts its calls, and raises at one of them."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.values: list[float] = []
        self.fails_at = fails_at

    def __call__(self, outputs: Tensor, targets: Tensor) -> float:
        if len(self.values) + 1 == self.fails_at:
            raise OSError("no judge today")
        self.values.append((outputs.argmax(1) == targets).double().mean().item())
        return self.values[-1]

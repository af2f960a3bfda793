"""Modulation: scale and shift of the channels of feature maps, batched over phi."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Modulation:
    """What B rows of phi do to the outputs of the sites.

    Attributes:
        rows: number of rows B.
        factors: one factor per channel for every site, each of shape [B, C]; None
            where channels are shifted only.
        shifts: one shift per channel for every site, each of shape [B, C].
        channel_dims: axis of the channels in the output of every site, 1 or -1.
    """

    rows: int
    factors: tuple[Tensor, ...] | None
    shifts: tuple[Tensor, ...]
    channel_dims: tuple[int, ...]

    def shared(self, hidden: Tensor, site: int) -> Tensor:
        """Modulate the same N examples by every row; only the output is B times as big.

        Args:
            hidden: output of the site, shape [N, ...].
            site: index of the site.

        Returns:
            Modulated outputs, shape [B * N, ...], the N of row 0 first.
        """
        return self._modulate(hidden.unsqueeze(0), site)

    def grouped(self, hidden: Tensor, site: int) -> Tensor:
        """Modulate each row's own n examples.

        Args:
            hidden: output of the site, shape [B * n, ...], the n of row 0 first.
            site: index of the site.

        Returns:
            Modulated outputs, shape [B * n, ...].
        """
        examples = len(hidden) // self.rows
        by_row = hidden.reshape(self.rows, examples, *hidden.shape[1:])
        return self._modulate(by_row, site)

    def _modulate(self, hidden: Tensor, site: int) -> Tensor:
        """Broadcast [B, 1, C, 1, ...] over hidden [B or 1, n, C, ...], then flatten."""
        shape = [self.rows] + [1] * (hidden.ndim - 1)
        shape[2 if self.channel_dims[site] == 1 else -1] = -1
        shift = self.shifts[site].view(shape).to(hidden)
        if self.factors is None:
            return (hidden + shift).flatten(0, 1)
        factor = self.factors[site].view(shape).to(hidden)
        # addcmul does not vectorise what is broadcast: it takes three times as long.
        return (hidden * factor).add_(shift).flatten(0, 1)

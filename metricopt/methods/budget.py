"""What a method may spend."""

from dataclasses import dataclass

from metricopt.errors import ConfigError


@dataclass(frozen=True)
class Budget:
    """What a method may spend for one result.

    Attributes:
        queries: metric queries, including meta-training; 0 means none.
        gradient_steps: steps of fine-tuning T.
    """

    queries: int
    gradient_steps: int

    def __post_init__(self) -> None:
        if self.queries < 0 or self.gradient_steps < 0:
            raise ConfigError(
                "a budget needs queries >= 0 and gradient_steps >= 0, got "
                f"queries={self.queries}, gradient_steps={self.gradient_steps}"
            )

"""Seconds to tune known outputs: `python -m benchmarks.speed.tuning`.

Macro F of scikit-learn as a black box on drawn outputs whose rarer classes are decided
too seldom: `metricopt.tune` against Optuna's 100 trials on ten classes, and against
`TunedThresholdClassifierCV` on two. Side by side in this one run, best of two.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial

import torch
from torch import Tensor

from baselines.post_hoc.optuna_offsets import OffsetTrials, study_offsets
from baselines.post_hoc.threshold_grid import tune_threshold_on_grid
from baselines.validation import Validation
from benchmarks.speed.measurement import Line, as_table, interleaved
from metricopt.process.seeding import make_generator
from metricopt.reading.callables import make_metric
from metricopt.tasks.sampling import Split
from metricopt.tune import tune

REPEATS = 2
MACRO_F = "f1_macro"


def drawn(examples: int, classes: int) -> tuple[Tensor, Tensor]:
    """Return logits [N, C], [N, 1] of two classes, and labels [N], of unlike shares."""
    generator = make_generator("speed of tuning", classes)
    shares = 1 / torch.arange(1, classes + 1).double()
    labels = torch.multinomial(shares, examples, replacement=True, generator=generator)
    logits = torch.randn(examples, classes, generator=generator) + shares.log().float()
    logits[torch.arange(examples), labels] += 1.5
    return (logits if classes > 2 else logits[:, 1:] - logits[:, :1]), labels


def ours(outputs: Tensor, labels: Tensor) -> float:
    """Return macro F by the offsets of `metricopt.tune`, with 15 queries."""
    settings = {"queries": 15, "progress": False, "outputs": "logits"}
    given = outputs if outputs.shape[1] > 1 else outputs[:, 0]
    return tune(given, labels, MACRO_F, **settings).metric_after


def optuna(outputs: Tensor, labels: Tensor) -> float:
    """Return macro F by Optuna's offsets, after 100 trials."""
    found = study_offsets(
        outputs,
        _validation(outputs, labels),
        search=OffsetTrials(),
        generator=torch.Generator().manual_seed(0),
    )
    return found[-1].value


def threshold_grid(outputs: Tensor, labels: Tensor) -> float:
    """Return macro F by scikit-learn's threshold."""
    return tune_threshold_on_grid(outputs, _validation(outputs, labels)).value


def _validation(outputs: Tensor, labels: Tensor) -> Validation:
    return Validation(make_metric(MACRO_F), Split(outputs, labels))


def compared(
    what: str, other: str, works: tuple[Callable[[], float], Callable[[], float]]
) -> list[Line]:
    """Return the lines of two ways to tune."""
    reached = [0.0, 0.0]

    def noted(place: int) -> None:
        reached[place] = works[place]()

    seconds = interleaved([partial(noted, place) for place in (0, 1)], REPEATS)
    return [
        (f"{what}: metricopt.tune", f"{seconds[0]:.2f} s to {reached[0]:.4f}"),
        (f"  {other}", f"{seconds[1]:.2f} s to {reached[1]:.4f}"),
        (f"  {other} over ours", f"{seconds[1] / seconds[0]:.2f} x"),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table and return 0."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--examples", type=int, default=100_000, metavar="N")
    count = parser.parse_args(arguments).examples
    lines = []
    for classes, other, rival in (
        (10, "Optuna, 100 trials", optuna),
        (2, "TunedThresholdClassifierCV", threshold_grid),
    ):
        data = drawn(count, classes)
        works = partial(ours, *data), partial(rival, *data)
        lines += compared(f"{count:,} x {classes} outputs", other, works)
    print(as_table(lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

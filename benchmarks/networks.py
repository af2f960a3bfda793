"""The networks an experiment needs: trained before its runs, with progress; released.

Convolutions use all cores, runs do not, so training comes first.
"""

import os
from collections.abc import Sequence

import torch
from tqdm import tqdm

from benchmarks.image_bench import ImageBench
from benchmarks.pretraining import EpochReport
from benchmarks.records import RunSpec
from benchmarks.render import align
from benchmarks.tasks import kind_of
from benchmarks.thetas import (
    ThetaSpec,
    is_ready,
    is_trained,
    release,
    trained_here,
)
from metricopt.errors import DivergedError


def networks_of(specs: Sequence[RunSpec]) -> list[ThetaSpec]:
    """Return the image networks that specs need, each after the one it goes on from.

    Raises:
        ConfigError: if a spec fine-tunes with mini-batches too small for its loss.
    """
    found: dict[str, ThetaSpec] = {}
    for spec in specs:
        settings = dict(spec.settings)
        if kind_of(settings) is not ImageBench:
            continue
        bench = ImageBench(settings, spec.replicate)
        bench.check_batches()
        theta = bench.theta_spec
        for needed in (theta.start, theta):
            if needed is not None:
                found.setdefault(needed.digest, needed)
    return list(found.values())


def prepare(specs: Sequence[RunSpec]) -> None:
    """Train what is neither here nor released of the networks of specs."""
    train_all([theta for theta in networks_of(specs) if not is_ready(theta)])


def train_all(thetas: Sequence[ThetaSpec]) -> None:
    """Train networks that were not trained here yet, one after the other."""
    missing = [theta for theta in thetas if not is_trained(theta)]
    torch.set_num_threads(os.cpu_count() or 1)
    for number, theta in enumerate(missing, start=1):
        epochs = theta.backbone["pretraining"]["epochs"]
        label = f"network {number} of {len(missing)}, {theta.name}"
        with tqdm(total=epochs, unit="epoch", desc=label) as bar:

            def show(report: EpochReport, bar: "tqdm[None]" = bar) -> None:
                bar.update(report.epoch - bar.n)
                bar.set_postfix(loss=f"{report.loss:.4f}")

            try:
                trained_here(theta, show)
            except DivergedError as error:
                # Its runs are recorded as diverged; the others go on.
                bar.write(f"{theta.name}: {error}")


def release_all(thetas: Sequence[ThetaSpec]) -> str:
    """Write networks trained here to the released weights, and list them."""
    lines = [("network", "epochs", "minutes", "error on observe", "MB")]
    for theta in thetas:
        artifact = trained_here(theta)
        path = release(theta, artifact)
        facts = artifact.facts
        lines.append(
            (
                theta.name,
                str(theta.backbone["pretraining"]["epochs"]),
                f"{float(str(facts['seconds'])) / 60:.1f}",
                f"{float(str(facts['observe_mcr'])):.4f}",
                f"{path.stat().st_size / 1e6:.2f}",
            )
        )
    return align(lines)

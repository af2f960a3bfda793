"""The verb `pretrain`: train networks on this machine, released ones too."""

from argparse import Namespace
from operator import attrgetter

from baselines.training.team import joined
from benchmarks.cli.verbs.experiments import jobs_of
from benchmarks.execution.networks import networks_of, release_all, train_all
from benchmarks.execution.processes import give_way
from benchmarks.problems.episodes import trials as of_learners
from benchmarks.problems.images import trials as of_methods
from benchmarks.problems.pretrained.weights import RELEASED
from benchmarks.runs.paths import cache_root, ensure_writable
from metricopt.errors import ConfigError

TRIALS = {each.FILE.experiment: each for each in (of_methods, of_learners)}
"""Modules of short trainings, by the experiment that they choose settings for."""


def run(options: Namespace) -> int:
    """Train the networks of some experiments; an interrupted training goes on.

    With `--release` each is written to the released weights when it is trained.
    Under `torchrun` all its processes train one network after another together.
    """
    ensure_writable("the cache", cache_root())
    if options.release:
        ensure_writable("the folder of released networks", RELEASED)
    if options.idle:
        give_way()
    with joined() as team:
        if options.workers > 1 and team.size > 1:
            raise ConfigError(
                f"--workers must be 1 under torchrun, got {options.workers}: all its "
                "processes train one network together"
            )
        if options.trials:
            for name in options.experiments:
                _run_trials(name, options.workers)
            return 0
        jobs = jobs_of(options, offline=False)
        specs = [spec for job in jobs for spec in job.specs]
        # All of the first replicate first: they can be compared then.
        networks = networks_of(sorted(specs, key=attrgetter("replicate")))
        if options.missing:
            networks = [network for network in networks if not network.is_ready]
        train_all(networks, released=options.release, workers=options.workers)
        if options.release and team.leads:
            print(release_all(networks))
    return 0


def _run_trials(experiment: str, workers: int) -> None:
    """Train what was not tried yet, and keep what each trial reached.

    Raises:
        ConfigError: if nothing of the experiment is chosen by trials.
    """
    if experiment not in TRIALS:
        raise ConfigError(
            f"--trials needs an experiment of which settings are chosen by short "
            f"trainings, got {experiment!r}; known: {', '.join(TRIALS)}"
        )
    chosen = TRIALS[experiment]
    done = {line["spec"] for line in chosen.FILE.read()}
    missing = {
        t.network.digest: t for t in chosen.trials() if t.network.digest not in done
    }
    train_all(
        [trial.network for trial in missing.values()],
        workers=workers,
        ended=lambda network: chosen.FILE.keep(missing[network.digest]),
    )

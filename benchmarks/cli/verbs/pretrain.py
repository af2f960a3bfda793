"""The verb `pretrain`: train networks on this machine, released ones too."""

from argparse import Namespace
from operator import attrgetter

from baselines.training.team import joined
from benchmarks.cli.verbs.experiments import jobs_of
from benchmarks.execution.processes import give_way
from benchmarks.execution.runner import networks_of, release_all, train_all
from benchmarks.problems.images.trials import keep, read_trials, trials
from benchmarks.problems.pretrained.weights import RELEASED
from benchmarks.runs.paths import cache_root, ensure_writable


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
        if options.trials:
            _run_trials()
            return 0
        jobs = jobs_of(options, offline=False)
        specs = [spec for job in jobs for spec in job.specs]
        # All of the first replicate first: they can be compared then.
        networks = networks_of(sorted(specs, key=attrgetter("replicate")))
        if options.missing:
            networks = [network for network in networks if not network.is_ready]
        train_all(networks, released=options.release)
        if options.release and team.leads:
            print(release_all(networks))
    return 0


def _run_trials() -> None:
    """Train what was not tried yet, and keep what each trial reached."""
    done = {line["spec"] for line in read_trials()}
    for trial in trials():
        if trial.network.digest not in done:
            train_all([trial.network])
            keep(trial)

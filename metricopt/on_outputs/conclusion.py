"""What a search on outputs ends with: a phi, and the evidence for it.

No harm: without evidence of a gain, phi is 0, the untouched network.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from metricopt.errors import DataError, MetricError
from metricopt.estimate import SeenOnParts
from metricopt.methods.attempts import Attempt
from metricopt.methods.result import Archive, Checkpoint, Evidence, FinetuneResult
from metricopt.metrics.constrained import Bounds
from metricopt.on_outputs.coordinates import reaches
from metricopt.on_outputs.cross_fitting import (
    Clock,
    CrossFitted,
    CrossFitting,
    cross_fit,
)
from metricopt.on_outputs.folds import FEWEST_QUERIES, check, lacking
from metricopt.on_outputs.obvious import attempts
from metricopt.on_outputs.search import OutputsSearch
from metricopt.on_outputs.statistics_value import Explained
from metricopt.on_outputs.within_bounds.choice import Choice, Chosen
from metricopt.on_outputs.within_bounds.verdict import (
    evidence_of,
    is_refuted,
    objection,
    said_of,
)
from metricopt.tasks.task import Task

KEPT = "The untouched network is kept."


@dataclass(frozen=True)
class Proposal:
    """What one search proposes.

    Attributes:
        phi: adapter parameters, shape [d]; 0 where there is no evidence for more.
        evidence: for it, or against it.
        unchecked: whether it still has to be checked by queries.
        fitted: what cross-fitting found; None if it was not asked.
        second: the best phi that was queried, [d], which is checked in its place where
            it does not keep its promise; None for nothing.
        least: the cost of the best phi that was queried.
        chosen: what was chosen within bounds; None without any.
        obvious: what was tried that anybody would try by hand.
        how: what is known of the metric, and what was moved. It is still true where a
            query refutes what was expected of phi.
    """

    phi: Tensor
    evidence: Evidence
    unchecked: bool = False
    fitted: CrossFitted | None = None
    second: Tensor | None = None
    least: float = math.inf
    chosen: Chosen | None = None
    obvious: tuple[Attempt, ...] = ()
    how: str = ""

    @property
    def feasible(self) -> float | None:
        """How probably phi meets all bounds on other data; None where not known."""
        if self.chosen is None:
            return None
        return (self.chosen.best if self.phi.any() else self.chosen.untouched).all_met

    def refused(self, reason: str) -> "Proposal":
        """Return phi = 0 instead, with a reason."""
        before = self.evidence.met_before
        evidence = replace(self.evidence, reason=f"{reason} {KEPT}", met=before)
        return replace(self, phi=torch.zeros_like(self.phi), evidence=evidence)

    def gives_way(self, reason: str) -> "Proposal":
        """Return what was best of the queries instead, unchecked, or phi = 0."""
        if self.second is None or not self.second.any():
            return self.refused(reason)
        found = f"{reason} The best phi that was queried takes its place."
        evidence = replace(self.evidence, reason=found, gain=None, error=None)
        second = Proposal(self.second, evidence, unchecked=True)
        return replace(second, obvious=self.obvious)


def conclude(
    task: Task, archive: Archive, proposals: list[Proposal], generator: torch.Generator
) -> FinetuneResult:
    """Return what was proposed for each row, as far as the last queries confirm it."""
    if any(each.fitted is not None for each in proposals) and archive.remaining:
        failed = archive.confirm(torch.stack([each.phi for each in proposals]))
        proposals = _upheld(proposals, archive, failed)
    before = task.queries
    if any(each.unchecked for each in proposals):
        proposals = _checked(proposals, archive, generator)
    phi = torch.stack([each.phi for each in proposals])
    obvious = [
        tuple(_as_observed(archive, row, attempt) for attempt in each.obvious)
        for row, each in enumerate(proposals)
    ]
    extra = (task.queries - before) // len(phi)
    result, spent = archive.result(), archive.spent + extra
    last = Checkpoint(0, spent, phi, _observed(archive, phi))
    return replace(
        result,
        phi=phi,
        queries=spent,
        checkpoints=(*result.checkpoints[:-1], last),
        notes=_notes(proposals),
        evidence=tuple(each.evidence for each in proposals),
        obvious=tuple(obvious),
    )


def propose(
    search: OutputsSearch,
    settings: CrossFitting,
    generator: torch.Generator,
    archive: Archive,
    *,
    best: Tensor | None = None,
) -> Proposal:
    """Return what a search proposes after all its queries, without a further one.

    Where the metric is not explained, `best` [d] is proposed, or the best queried.
    Where it is, bounds are met, or it is said that they are not. The archive says how
    many queries are left.
    """
    found = _proposed(search, settings, generator, archive, best)
    if archive.task.bounds is not None:
        return found
    return replace(found, obvious=attempts(search, found.fitted))


def _proposed(
    search: OutputsSearch,
    settings: CrossFitting,
    generator: torch.Generator,
    archive: Archive,
    best: Tensor | None,
) -> Proposal:
    """Return what a search proposes; see `propose`."""
    bounds = archive.task.bounds
    evidence = Evidence(
        "", identified=search.identified_at, trials=tuple(search.trials)
    )
    best = search.phi[search.costs.argmin()] if best is None else best
    nothing = Proposal(torch.zeros_like(best), evidence)
    queries = len(search.costs)
    if search.is_flat:
        return nothing.refused(f"The metric was the same at all {queries} queries.")
    if missing := lacking(search.statistics):
        return nothing.refused(missing)
    if search.along.are_none:
        reason = "No small step from phi = 0 changes what is known of the outputs."
        return unexplained(best, replace(evidence, reason=reason))
    if search.is_hopeless and not (settings.second and _only_fits(search, archive)):
        return unexplained(best, replace(evidence, reason=_unexplained_why(search)))
    known, is_late = search.explained(), archive.task.is_late
    if bounds is not None:
        return _within(search, known, settings, generator, bounds, is_late)
    found = reaches(known.statistics, search.along.scale, search.fine_tuned)
    fitted = cross_fit(known.value, found, settings, generator, is_late)
    proposal = _promise(search, known, fitted, settings, archive.task.unit)
    if settings.second and archive.remaining > FEWEST_QUERIES:
        least = search.costs.min().item()
        proposal = replace(proposal, second=best, least=least)
    evidence = proposal.evidence
    assert evidence.gain is not None and evidence.error is not None
    asked = min(fitted.own, evidence.gain) if settings.claims else fitted.own
    if asked > settings.level * evidence.error:
        return proposal
    reason = f"{proposal.evidence.reason} That is no evidence of a gain."
    return proposal.refused(reason) if search.identified else proposal.gives_way(reason)


def _within(
    search: OutputsSearch,
    known: Explained,
    settings: CrossFitting,
    generator: torch.Generator,
    bounds: Bounds,
    is_late: Clock,
) -> Proposal:
    """Return what is best within bounds, or phi = 0 where that is no worse."""
    chosen = Choice(search, known, settings, generator, bounds, is_late).made()
    best = chosen.best
    how = said_of(search, known, best.moved, bounded=True)
    evidence = evidence_of(chosen, search, how, bounds)
    assert evidence.gain is not None and evidence.error is not None
    predicted = best.each[0].item()
    fitted = CrossFitted(
        best.phi,
        best.moved,
        0,
        gain=evidence.gain,
        error=evidence.error,
        predicted=predicted,
        own=evidence.gain,
    )
    proposal = Proposal(best.phi, evidence, fitted=fitted, chosen=chosen, how=how)
    reason = objection(chosen, evidence, bounds, settings.level)
    return proposal.refused(f"{evidence.reason} {reason}") if reason else proposal


def _unexplained_why(search: OutputsSearch) -> str:
    """Return why it is not known how the metric depends on the outputs."""
    if search.untried:
        more = "prediction" if search.untried == 1 else "predictions"
        return (
            "The queries were too few to tell what explains the metric: with "
            f"{search.untried} more {more} to try, it might be known."
        )
    return "No statistics of the outputs that are known here explain the metric."


def unexplained(phi: Tensor, evidence: Evidence) -> Proposal:
    """Return phi [d] as a proposal that queries have to check."""
    if phi.any():
        return Proposal(phi, evidence, unchecked=True)
    proposal = Proposal(phi, evidence)
    return proposal.refused(f"{evidence.reason} No query was better than phi = 0.")


def _only_fits(search: OutputsSearch, archive: Archive) -> bool:
    """Return whether only cross-fitting can tell: too few queries are left for parts.

    What predictions were off by counts in its error.
    """
    few = archive.remaining < FEWEST_QUERIES
    return few and math.isfinite(search.prediction_error)


def shrunk(gain: float, error: float) -> float:
    """Return what is left of a gain that is reported because it looks large.

    Gains are reported where chance adds to them. Shrinkage by g^2 / (g^2 + s^2) takes
    off about as much; the page on findings has the measurement.

    Source: Efron and Morris, JASA 68, 1973, with the variance of true gains estimated
    by the square of the one gain that is known.
    """
    if not gain:
        return gain
    return gain**3 / (gain**2 + error**2)


def _promise(
    search: OutputsSearch,
    known: Explained,
    fitted: CrossFitted,
    settings: CrossFitting,
    unit: float,
) -> Proposal:
    """Return what was cross-fitted, with the gain that is expected of it.

    A cost of 1 is the unit in the metric's own units.
    """
    trials = tuple(search.trials)
    error = math.hypot(fitted.error, search.prediction_error)
    # That folds overlap makes the interval wider, but chance adds no more to a gain.
    sampled = math.hypot(fitted.error / settings.inflation, search.prediction_error)
    gain = shrunk(fitted.gain, sampled)
    how = said_of(search, known, fitted.moved, bounded=False)
    reason = (
        f"{how} Estimated gain on new data: {unit * gain:.4g} "
        f"(standard error {unit * error:.4g})."
    )
    evidence = Evidence(reason, gain, error, search.identified_at, trials)
    return Proposal(fitted.phi, evidence, fitted=fitted, how=how)


def _upheld(proposals: list[Proposal], archive: Archive, failed: str) -> list[Proposal]:
    """Return phi = 0 for cross-fitted rows that their last query does not confirm."""
    found, bounds, unit = [], archive.task.bounds, archive.task.unit
    for place, proposal in enumerate(proposals):
        fitted, chosen, row = proposal.fitted, proposal.chosen, archive.costs[place]
        if failed and proposal.phi.any():
            why = "The query that should confirm it failed (retries=1 asks again)"
            reason = f"{proposal.how} {why}: {failed.rstrip('.')}."
            proposal = proposal.gives_way(reason)
        elif chosen is not None and bounds is not None:
            before, *_, last = archive.each[place]
            if proposal.phi.any() and is_refuted(chosen, last, before, bounds):
                reason = "The query that should confirm it gave something else."
                proposal = proposal.refused(f"{proposal.how} {reason}")
        elif fitted is not None and proposal.phi.any():
            observed, untouched = row[-1].item(), row[0].item()
            surprise = abs(observed - fitted.predicted)
            # Far from what was queried, a value function may promise anything.
            if observed >= untouched or surprise > fitted.own / 2:
                if proposal.second is not None and observed < proposal.least:
                    proposal = replace(proposal, second=proposal.phi)
                proposal = proposal.gives_way(
                    f"{proposal.how} The query that should confirm it gained "
                    f"{unit * (untouched - observed):.4g} on the observe split, where "
                    f"{unit * (untouched - fitted.predicted):.4g} was predicted."
                )
        found.append(proposal)
    return found


def _checked(
    proposals: list[Proposal], archive: Archive, generator: torch.Generator
) -> list[Proposal]:
    """Return phi = 0 for unchecked rows whose gain is not seen on parts of observe."""
    if archive.remaining < FEWEST_QUERIES:
        reason = f"Fewer than the {FEWEST_QUERIES} queries that check it were left."
        return _unchecked(proposals, reason)
    left = archive.task.affordable(archive.remaining)
    if left < FEWEST_QUERIES:
        reason = f"There was no time for the {FEWEST_QUERIES} queries that check it."
        return _unchecked(proposals, reason)
    phi = torch.stack([each.phi for each in proposals])
    try:
        untouched = archive.costs[:, 0]
        checks = check(archive.task, phi, untouched, generator, left)
    except (DataError, MetricError) as error:
        reason = f"It cannot be checked on parts of the observe split: {error}."
        return _unchecked(proposals, reason)
    found, unit = [], archive.task.unit
    for proposal, each in zip(proposals, checks, strict=True):
        if proposal.unchecked:
            seen = (
                f"{proposal.evidence.reason} {each.how} it gains "
                f"{unit * each.gain:.4g} (standard error {unit * each.error:.4g}); "
                "these examples have chosen it, too."
            )
            parts = SeenOnParts(each.gain, each.error, each.parts)
            evidence = replace(
                proposal.evidence,
                reason=seen,
                seen=parts if archive.task.bounds is None else None,
            )
            proposal = replace(proposal, evidence=evidence)
            if not each.is_shown:
                proposal = proposal.refused(f"{seen} That is no evidence of a gain.")
        found.append(proposal)
    return found


def _unchecked(proposals: list[Proposal], reason: str) -> list[Proposal]:
    """Return phi = 0 for the rows that would have to be checked."""
    return [
        each.refused(f"{each.evidence.reason} {reason}") if each.unchecked else each
        for each in proposals
    ]


def _observed(archive: Archive, phi: Tensor) -> Tensor:
    """Return the cost at which phi [R, d] was observed, [R], NaN where it was not."""
    return torch.stack([_seen(archive, row, chosen) for row, chosen in enumerate(phi)])


def _seen(archive: Archive, row: int, phi: Tensor) -> Tensor:
    """Return the cost at which a row has observed phi [d]; NaN if it has not."""
    same = (archive.phi[row] == phi).all(1)
    known = archive.costs[row][same]
    return known[-1] if len(known) else known.new_tensor(math.nan)


def _as_observed(archive: Archive, row: int, attempt: Attempt) -> Attempt:
    """Return an attempt with the cost that a query of its phi gave, if one was made."""
    cost = _seen(archive, row, attempt.phi).item()
    if attempt.observed or math.isnan(cost):
        return attempt
    return replace(attempt, cost=cost, observed=True)


def _notes(proposals: list[Proposal]) -> dict[str, float]:
    """Return what records say: shares and means over the rows."""
    rows = len(proposals)
    evidence = [each.evidence for each in proposals]
    identified = [each.identified for each in evidence if each.identified is not None]
    kept = sum(not each.phi.any() for each in proposals)
    notes = {"identified": len(identified) / rows, "untouched": kept / rows}
    if identified:
        notes["identified_after"] = sum(identified) / len(identified)
    fitted = [each.fitted for each in proposals if each.fitted is not None]
    for each in fitted:
        name = f"moved {each.moved}"
        notes[name] = notes.get(name, 0.0) + 1 / rows
    claims = [
        (each.evidence.gain, each.evidence.error)
        for each in proposals
        if each.evidence.gain is not None and each.evidence.error is not None
    ]
    if claims:
        gains, errors = zip(*claims, strict=True)
        notes["expected_gain"] = sum(gains) / len(claims)
        notes["expected_gain_error"] = sum(errors) / len(claims)
    feasible = [each.feasible for each in proposals if each.feasible is not None]
    if feasible:
        notes["feasible"] = sum(feasible) / len(feasible)
    return notes

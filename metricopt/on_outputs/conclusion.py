"""What a search on outputs ends with: a phi, and the evidence for it.

No harm: without evidence of a gain, phi is 0, the untouched network.
"""

import math
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from metricopt.errors import DataError
from metricopt.methods.result import Archive, Checkpoint, Evidence, FinetuneResult
from metricopt.on_outputs.coordinates import reaches
from metricopt.on_outputs.cross_fitting import CrossFitted, CrossFitting, cross_fit
from metricopt.on_outputs.folds import FOLDS, QUERIES, check_on_folds, lacking
from metricopt.on_outputs.search import OutputsSearch
from metricopt.on_outputs.statistics_value import Explained
from metricopt.tasks.task import Task

CHECKED_LEVEL = 2.0
"""Standard errors by which a gain on examples that chose phi has to exceed 0."""
KEPT = "The untouched network is kept."


@dataclass(frozen=True)
class Proposal:
    """What one search proposes.

    Attributes:
        phi: adapter parameters, shape [d]; 0 where there is no evidence for more.
        evidence: for it, or against it.
        unchecked: whether it still has to be checked by queries.
        fitted: what cross-fitting found; None if it was not asked.
    """

    phi: Tensor
    evidence: Evidence
    unchecked: bool = False
    fitted: CrossFitted | None = None

    def refused(self, reason: str) -> "Proposal":
        """Return phi = 0 instead, with a reason."""
        evidence = replace(self.evidence, reason=f"{reason} {KEPT}")
        return replace(self, phi=torch.zeros_like(self.phi), evidence=evidence)


def conclude(
    task: Task, archive: Archive, proposals: list[Proposal], generator: torch.Generator
) -> FinetuneResult:
    """Return what was proposed for each row, as far as the last queries confirm it."""
    if any(each.fitted is not None for each in proposals) and archive.remaining:
        archive.query(torch.stack([each.phi for each in proposals])[:, None])
        proposals = _confirmed(proposals, archive.costs)
    before = task.queries
    if any(each.unchecked for each in proposals):
        possible = archive.remaining >= QUERIES
        proposals = _checked(proposals, task, generator, possible=possible)
    phi = torch.stack([each.phi for each in proposals])
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
    )


def propose(
    search: OutputsSearch,
    settings: CrossFitting,
    generator: torch.Generator,
    *,
    best: Tensor | None = None,
) -> Proposal:
    """Return what a search proposes after all its queries, without a further one.

    Where the metric is not explained, `best` [d] is proposed, or the best queried.
    """
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
    if search.is_hopeless:
        reason = "No statistics of the outputs that are known here explain the metric."
        return unexplained(best, replace(evidence, reason=reason))
    known = search.explained()
    found = reaches(known.statistics, search.along.scale, search.candidates)
    fitted = cross_fit(known.value, found, settings, generator)
    return _judged(search, known, fitted, settings.level)


def unexplained(phi: Tensor, evidence: Evidence) -> Proposal:
    """Return phi [d] as a proposal that queries have to check."""
    if phi.any():
        return Proposal(phi, evidence, unchecked=True)
    proposal = Proposal(phi, evidence)
    return proposal.refused(f"{evidence.reason} No query was better than phi = 0.")


def _judged(
    search: OutputsSearch, known: Explained, fitted: CrossFitted, level: float
) -> Proposal:
    """Return what was cross-fitted if its gain is shown, else phi = 0."""
    trials = tuple(search.trials)
    error = math.hypot(fitted.error, search.prediction_error)
    names = " and ".join(known.statistics.kind.names())
    how = (
        f"identified as a function of the {names} after {search.identified_at} queries"
        if search.identified
        else f"predicted from the {names}, but not well enough to count as identified"
    )
    reason = (
        f"The metric is {how}. Moved: {fitted.moved}. Estimated gain on new data: "
        f"{fitted.gain:.4f} (standard error {error:.4f}), as a cost from 0 to 1."
    )
    evidence = Evidence(reason, fitted.gain, error, search.identified_at, trials)
    proposal = Proposal(fitted.phi, evidence, fitted=fitted)
    if fitted.gain > level * error:
        return proposal
    return proposal.refused(f"{reason} That is no evidence of a gain.")


def _confirmed(proposals: list[Proposal], costs: Tensor) -> list[Proposal]:
    """Return phi = 0 for cross-fitted rows that their query [R, n] does not confirm."""
    found = []
    for proposal, row in zip(proposals, costs, strict=True):
        fitted = proposal.fitted
        if fitted is not None and proposal.phi.any():
            observed, untouched = row[-1].item(), row[0].item()
            surprise = abs(observed - fitted.predicted)
            # Far from what was queried, a value function may promise anything.
            if observed >= untouched or surprise > fitted.gain / 2:
                proposal = proposal.refused(
                    f"{proposal.evidence.reason} The query that should confirm it gave "
                    f"a cost of {observed:.4f} instead of {fitted.predicted:.4f}."
                )
        found.append(proposal)
    return found


def _checked(
    proposals: list[Proposal], task: Task, generator: torch.Generator, *, possible: bool
) -> list[Proposal]:
    """Return phi = 0 for unchecked rows whose gain is not seen on parts of observe."""
    if not possible:
        return _unchecked(
            proposals, f"Fewer than the {QUERIES} queries that check it were left."
        )
    phi = torch.stack([each.phi for each in proposals])
    try:
        checks = check_on_folds(task, phi, generator)
    except DataError as error:  # a part may lack what the whole split has
        reason = f"It cannot be checked on parts of the observe split: {error}."
        return _unchecked(proposals, reason)
    found = []
    for proposal, check in zip(proposals, checks, strict=True):
        if proposal.unchecked:
            seen = (
                f"{proposal.evidence.reason} On {FOLDS} parts of the "
                f"observe split it gains {check.gain:.4f} (standard error "
                f"{check.error:.4f}); these examples have chosen it, too."
            )
            evidence = replace(proposal.evidence, reason=seen)
            proposal = replace(proposal, evidence=evidence)
            if not check.is_shown(CHECKED_LEVEL):
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
    found = []
    for row, chosen in enumerate(phi):
        same = (archive.phi[row] == chosen).all(1)
        known = archive.costs[row][same]
        found.append(known[-1] if len(known) else known.new_tensor(math.nan))
    return torch.stack(found)


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
    if fitted:
        notes["expected_gain"] = sum(each.gain for each in fitted) / len(fitted)
        notes["expected_gain_error"] = sum(each.error for each in fitted) / len(fitted)
    return notes

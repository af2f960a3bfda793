"""What is said of a choice within bounds: whether they are met, and at what price."""

import math

from torch import Tensor

from metricopt.methods.result import Evidence
from metricopt.metrics.base import ROUNDING
from metricopt.metrics.constrained import Bounds
from metricopt.on_outputs.search import OutputsSearch
from metricopt.on_outputs.statistics_value import Explained
from metricopt.on_outputs.within_bounds.choice import Chosen

MORE_PROBABLE = 0.05
"""By how much more probably bounds have to be met than by the untouched network, where
nothing meets them surely enough."""


def said_of(
    search: OutputsSearch, known: Explained, moved: str, *, bounded: bool
) -> str:
    """Return what is known of a metric, or of one with its bounds, and what moved."""
    names = " and ".join(known.statistics.kind.names())
    what, function = "The metric is", "a function"
    if bounded:
        what, function = "The metric and its bounds are", "functions"
    how = f"predicted from the {names}, but not well enough to count as identified"
    if search.identified:
        after = f"after {search.identified_at} queries"
        how = f"identified as {function} of the {names} {after}"
    return f"{what} {how}. Moved: {moved}."


def evidence_of(
    chosen: Chosen, search: OutputsSearch, how: str, bounds: Bounds
) -> Evidence:
    """Return what is known of a choice, and of the untouched network beside it.

    What is known of the metrics, and what was moved, is `how`.
    """
    best, untouched = chosen.best, chosen.untouched
    gains = untouched.objective - best.objective
    gain = gains[0].item()
    error = math.hypot(gains[1:].std().item(), search.prediction_error)
    what = "Estimated gain on new data" if gain >= 0 else "They cost on new data"
    reason = (
        f"{how} All bounds are met on other data with "
        f"probability {best.all_met:.2f}, by the untouched network with "
        f"{untouched.all_met:.2f}. {what}: {abs(gain):.4f} (standard error "
        f"{error:.4f}), as a cost from 0 to 1."
    )
    if not bounds.is_enough(best.all_met):
        other = " else" if bounds.is_enough(untouched.all_met) else ""
        reason += (
            f" Nothing{other} of use that was tried meets them with probability "
            f"{bounds.confidence:g}."
        )
    return Evidence(
        reason,
        gain,
        error,
        search.identified_at,
        tuple(search.trials),
        met=tuple(best.met.tolist()),
        met_before=tuple(untouched.met.tolist()),
        front=chosen.front,
    )


def objection(chosen: Chosen, evidence: Evidence, bounds: Bounds, level: float) -> str:
    """Return why the untouched network is better than a choice; empty if it is not.

    A gain has to exceed its standard error by `level`, unless the untouched network
    does not meet the bounds. Where nothing meets them surely, a choice is taken that
    meets them more probably and does not go further beyond them on observe, and a gain
    that goes no further beyond any bound.
    """
    before, after = chosen.untouched.all_met, chosen.best.all_met
    was_enough, is_enough = bounds.is_enough(before), bounds.is_enough(after)
    assert evidence.gain is not None and evidence.error is not None
    is_shown = evidence.gain > level * evidence.error
    if not is_enough:
        likelier = after > before + MORE_PROBABLE
        further, nearer = _further_and_nearer(
            chosen.best.each[1:], chosen.untouched.each[1:]
        )
        better = likelier or (is_shown and not further)
        if was_enough:
            return "phi = 0 meets them surely enough, and is better so."
        if further and not nearer:
            return "That is further beyond a bound than phi = 0, and nearer to none."
        return "" if better else "That is hardly more probable than with phi = 0."
    if was_enough and not is_shown:
        return "That is no evidence of a gain."
    return ""


def _further_and_nearer(excess: Tensor, before: Tensor) -> tuple[bool, bool]:
    """Return whether excesses [M] are further beyond a bound than before, and nearer.

    Further beyond one of the bounds, and nearer to another: both may be so.
    """
    now, then = excess.clamp_min(0), before.clamp_min(0)
    further, nearer = now > then + ROUNDING, now < then - ROUNDING
    return bool(further.any()), bool(nearer.any())


def is_refuted(
    chosen: Chosen, observed: Tensor, before: Tensor, bounds: Bounds
) -> bool:
    """Return whether the query of a choice is not what was predicted.

    What was observed of it, and of phi = 0 before, is [1 + M] each.

    A bound that should be met is not, or the choice is further beyond the bounds than
    phi = 0, or half of the promised gain is missing where it is the gain that counts.
    """
    best, untouched = chosen.best, chosen.untouched
    further, nearer = _further_and_nearer(observed[1:], before[1:])
    if further and not nearer:
        return True
    if bool(((best.each[1:] <= 0) & (observed[1:] > ROUNDING)).any()):
        return True
    if not bounds.is_enough(untouched.all_met):
        return False
    gain = (untouched.objective[0] - best.objective[0]).item()
    surprise = (observed[0] - best.each[0]).abs().item()
    return surprise > gain / 2 or bool(observed[0] >= untouched.each[0])

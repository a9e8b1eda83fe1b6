"""What drafting cost and brought, in sentences: as measured, by the model, and by draft length."""

from __future__ import annotations

from orchestrator.report.analysis.findings import Sweep
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words, mark
from orchestrator.schema import units
from orchestrator.stats.speedup import Decomposition


def decomposition_words(found: Decomposition, words: Words) -> str:
    """One sentence: what was accepted, what a pass brought, what it cost, and when it would pay."""
    brought = words.say("{n} tokens per pass", n=units.plain(found.tokens_per_pass))
    if found.acceptance is not None:
        brought = words.say(
            "{rate} of the drafted tokens accepted, {brought}", rate=words.percent(found.acceptance), brought=brought
        )
    if found.draft_cost is None:
        cost = words.say(
            "one pass with its draft costs {cost} plain passes (the verification between {low} and {high}; the "
            "drafter's share is not reported)",
            cost=units.plain(found.pass_cost),
            low=units.plain(found.verify_cost_low),
            high=units.plain(found.verify_cost_high),
        )
    elif found.draft_cost:
        cost = words.say(
            "one verify pass costs {cost} plain passes and its draft {draft}",
            cost=units.plain(found.verify_cost_high),
            draft=units.plain(found.draft_cost),
        )
    else:
        cost = words.say(
            "one verify pass costs {cost} plain passes and its draft nothing", cost=units.plain(found.verify_cost_high)
        )
    message = "{brought}; {cost}: {ratio} the decode rate; {even}"
    note = f" ({words.said(found.note)})" if found.note else ""
    return (
        words.say(message, brought=brought, cost=cost, ratio=units.ratio(found.speedup), even=_even(found, words))
        + note
    )


def _even(found: Decomposition, words: Words) -> str:
    if found.mean_draft_length == 0:
        return words.say("nothing was drafted")
    if found.break_even_acceptance is None:
        message = "at this cost not even all of {n} drafted tokens accepted would pay"
        return words.say(message, n=units.plain(found.mean_draft_length))
    if found.break_even_acceptance == 0:
        return words.say("at this cost any acceptance pays")
    return words.say("at this cost it pays above {rate} acceptance", rate=words.percent(found.break_even_acceptance))


def model_words(found: Decomposition, words: Words) -> str:
    """Predicted against measured in one sentence; empty where the counts give no prediction."""
    if found.predicted_tokens is None or found.predicted_speedup is None or found.judged_alpha is None:
        return ""
    message = mark(
        "The model (every judged token accepted with one chance, {alpha}; a verify pass as cheap as a plain one) "
        "gives {tokens} tokens per pass and {ratio} the decode rate; measured {real} and {speedup}"
    )
    if found.draft_cost is None:
        message = mark(
            "The model (every judged token accepted with one chance, {alpha}; a verify pass as cheap as a plain one) "
            "gives {tokens} tokens per pass and at most {ratio} the decode rate; measured {real} and {speedup}"
        )
    return words.say(
        message,
        alpha=words.percent(found.judged_alpha),
        tokens=units.plain(found.predicted_tokens),
        ratio=units.ratio(found.predicted_speedup),
        real=units.plain(found.tokens_per_pass),
        speedup=units.ratio(found.speedup),
    )


def sweep_words(one: Sweep, words: Words) -> str:
    """Which draft length was best of those measured, and how sure that is."""
    if one.confirmed:
        message = mark(
            "Best draft length of {drafter} by decode rate: K = {k} of {lengths}, confirmed in fresh sessions"
        )
    elif one.clear:
        message = mark(
            "Best draft length of {drafter} by decode rate: K = {k} of {lengths}, not confirmed in fresh sessions; its "
            "interval stands clear of the others'"
        )
    else:
        message = mark(
            "Best draft length of {drafter} by decode rate: K = {k} of {lengths}, not confirmed in fresh sessions; its "
            "interval overlaps another's"
        )
    return words.say(message, drafter=clean(one.drafter, 60), k=one.best, lengths=", ".join(map(str, one.lengths)))

"""Whether to turn speculation on, by engine, model and workload: never more than the intervals bear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import WAIT, Advice, CellFinding, Recommendation, SamplingAdvice, Why
from orchestrator.schema.cell import Role
from orchestrator.schema.result import Group, Outcome

if TYPE_CHECKING:
    from orchestrator.stats.noise import NoiseFloor

    Floors = Mapping[tuple[str, int, str], NoiseFloor]

RESOLUTION = 1.10
"""Above this half-width (a factor) "no detectable difference" advises nothing: a tenth of the wait would go unseen."""
_NO_VERDICT = (Outcome.RANGE_ONLY, Outcome.NOT_COMPARABLE)


def recommend(cells: Sequence[CellFinding], floors: Floors) -> tuple[Recommendation, ...]:
    """One piece of advice per engine, model and workload, in order of the matrix."""
    groups: dict[tuple[str, str, str], dict[str, list[CellFinding]]] = {}
    for cell in cells:
        if cell.state.role is Role.SPECULATIVE:
            key = (cell.name("engine"), cell.name("model"), cell.name("workload"))
            groups.setdefault(key, {}).setdefault(cell.name("sampling"), []).append(cell)
    shaky = frozenset(cell.id for cell in cells if any(not flag.ranked for flag in cell.flags))
    found = []
    for (engine, model, workload), by_sampling in groups.items():
        advice = tuple(_advise(name, members, floors, shaky) for name, members in by_sampling.items())
        found.append(Recommendation(engine, model, workload, together({one.advice for one in advice}), advice))
    return tuple(found)


def together(advice: set[Advice]) -> Advice | None:
    """One word for several samplings; ``None`` where each needs its own.

    What is not known of one sampling is never covered by what is known of another: beside "cannot say" there is no
    common "no difference" and no common "leave it off".
    """
    if len(advice) == 1:
        return next(iter(advice))
    if Advice.ON in advice or {Advice.OFF, Advice.UNKNOWN} <= advice:
        return None
    return Advice.UNKNOWN if Advice.UNKNOWN in advice else Advice.OFF


def _advise(sampling: str, members: Sequence[CellFinding], floors: Floors, shaky: frozenset[str]) -> SamplingAdvice:
    """Only cells claimed exact and not contradicted are ever recommended."""
    everyone = tuple(members)
    measured = [cell for cell in members if cell.wait is not None]
    exact = [cell for cell in measured if cell.group is Group.EXACT]
    if not exact:
        why = Why.NOT_EXACT if measured else Why.NOTHING_MEASURED
        return SamplingAdvice(sampling, Advice.UNKNOWN, why, None, everyone)
    # One that wrote no answers has no wait to win with; alone it is not comparable.
    exact = [cell for cell in exact if not (cell.quality is not None and cell.quality.broken.refusal)] or exact
    told = [cell for cell in exact if not _alarm(cell, floors) and _outcome(cell) not in _NO_VERDICT]
    # Unstable cells keep their verdict, whose interval holds their spread, but never come before stable ones.
    ranked = sorted(told, key=lambda cell: (_unstable(cell, shaky), _point(cell)))
    winners = [cell for cell in ranked if _outcome(cell) is Outcome.LOWER]
    if winners:
        # The best of several is partly luck: one that was measured anew goes before one that only looks better.
        best = next((cell for cell in winners if cell.confirmed), winners[0])
        chosen = len(winners) > 1 or any(cell.confirmed for cell in told)
        confirmed = best.confirmed if chosen else None
        unstable = _unstable(best, shaky)
        return SamplingAdvice(sampling, Advice.ON, Why.NONE, best, everyone, confirmed, len(winners), unstable)
    untold = [cell for cell in exact if cell not in told]
    if untold:
        # One that was not settled could still win, whatever the others did.
        return SamplingAdvice(sampling, Advice.UNKNOWN, _why_not(untold, floors), None, everyone)
    losers = [cell for cell in ranked if _outcome(cell) is Outcome.HIGHER]
    could = [cell for cell in ranked if could_gain(cell)]
    if could or (not losers and any(_blurred(cell) for cell in ranked)):
        best = (could or [cell for cell in ranked if _blurred(cell)])[0]
        unstable = _unstable(best, shaky)
        return SamplingAdvice(sampling, Advice.UNKNOWN, Why.TOO_NOISY, best, everyone, unstable=unstable)
    best = (losers or ranked)[0]
    advice = Advice.OFF if losers else Advice.SAME
    return SamplingAdvice(sampling, advice, Why.NONE, best, everyone, unstable=_unstable(best, shaky))


def could_gain(cell: CellFinding) -> bool:
    """Whether the cell is not told apart from its baseline so loosely that it may still make people wait less."""
    ratio = cell.wait.ratio if cell.wait is not None else None
    if ratio is None or ratio.low is None:
        return True
    return _outcome(cell) is Outcome.NO_DIFFERENCE and _blurred(cell) and ratio.low < 1


def _blurred(cell: CellFinding) -> bool:
    """Whether the interval is so wide that a difference people feel could hide in it."""
    ratio = cell.wait.ratio if cell.wait is not None else None
    return ratio is None or ratio.low is None or ratio.high is None or ratio.high / ratio.low > RESOLUTION**2


def _unstable(cell: CellFinding, shaky: frozenset[str]) -> bool:
    return cell.id in shaky or cell.state.baseline in shaky


def _outcome(cell: CellFinding) -> Outcome | None:
    return cell.wait.outcome if cell.wait is not None else None


def _why_not(untold: Sequence[CellFinding], floors: Floors) -> Why:
    firm = [cell for cell in untold if not _alarm(cell, floors)]
    if not firm:
        return Why.A_A
    return Why.TOO_FEW if any(_outcome(cell) is Outcome.RANGE_ONLY for cell in firm) else Why.NOT_COMPARABLE


def _alarm(cell: CellFinding, floors: Floors) -> bool:
    found = (floors.get((cell.state.block, cell.state.attempt or 0, metric)) for metric in (WAIT, cell.headline))
    return any(floor is not None and floor.inconclusive for floor in found)


def _point(cell: CellFinding) -> float:
    return cell.wait.ratio.point if cell.wait is not None and cell.wait.ratio is not None else float("inf")

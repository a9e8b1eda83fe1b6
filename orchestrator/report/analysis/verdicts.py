"""Validity, coverage and advice: what the figures of a run amount to."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import (
    WAIT,
    Advice,
    CellFinding,
    Reason,
    ReasonKind,
    Recommendation,
    SamplingAdvice,
    Why,
)
from orchestrator.schema.cell import Role
from orchestrator.schema.result import Group, Outcome
from orchestrator.schema.status import STATUS_RULES, Status, Validity

if TYPE_CHECKING:
    from orchestrator.stats.noise import NoiseFloor
    from orchestrator.store.index import Index

    Floors = Mapping[tuple[str, int, str], NoiseFloor]

_RANK = {Validity.VALID: 0, Validity.INCONCLUSIVE: 1, Validity.INVALID: 2}
RESOLUTION = 1.10
"""Above this half-width (a factor) "no detectable difference" advises nothing: a tenth of the wait would go unseen."""
MIN_SESSIONS = 3
"""Below it there is a range and no interval (docs/methodology)."""


def coverage(cells: Sequence[CellFinding]) -> tuple[tuple[Status, tuple[str, ...]], ...]:
    """Cells by status in the order of the status table; A/A twins are part of the method and not counted."""
    found: dict[Status, list[str]] = defaultdict(list)
    for cell in cells:
        if cell.state.role is not Role.TWIN:
            found[cell.state.status].append(cell.id)
    return tuple((status, tuple(found[status])) for status in STATUS_RULES if found[status])


def validity(cells: Sequence[CellFinding], floors: Floors, index: Index) -> tuple[Validity, tuple[Reason, ...]]:
    """The word of the validity line with its reasons, worst first."""
    reasons = [*_bad_cells(cells), *_broken(cells), *_noise(cells, floors), *_few_sessions(cells)]
    reasons += [*_problems(cells), *_unstable(cells)]
    if not any(cell.measured for cell in cells):
        reasons.insert(0, Reason(ReasonKind.NOTHING_MEASURED, Validity.INCONCLUSIVE, ()))
    unfinished = tuple(note.text for note in index.notes)
    reasons += [Reason(ReasonKind.UNFINISHED, Validity.VALID, (), detail=text) for text in unfinished]
    reasons.sort(key=lambda reason: -_RANK[reason.effect])
    word = max((reason.effect for reason in reasons), key=_RANK.__getitem__, default=Validity.VALID)
    return word, tuple(reasons)


def _bad_cells(cells: Sequence[CellFinding]) -> list[Reason]:
    by_status: dict[Status, list[str]] = defaultdict(list)
    for cell in cells:
        if STATUS_RULES[cell.state.status].validity is not Validity.VALID:
            by_status[cell.state.status].append(cell.id)
    return [
        Reason(ReasonKind.BAD_CELLS, STATUS_RULES[status].validity, tuple(ids), status)
        for status, ids in by_status.items()
    ]


def _broken(cells: Sequence[CellFinding]) -> list[Reason]:
    """Cells whose answers are none where their baseline's are, or the other way round: their speed is no speed."""
    found = {cell.id: cell.quality.broken for cell in cells if cell.quality is not None and cell.comparisons}
    refused = {name: broken.refusal for name, broken in found.items() if broken.refusal}
    if not refused:
        return []
    return [
        Reason(ReasonKind.BROKEN_ANSWERS, Validity.INCONCLUSIVE, tuple(refused), detail=next(iter(refused.values())))
    ]


def _noise(cells: Sequence[CellFinding], floors: Floors) -> list[Reason]:
    """A/A alarms of the total wait make a block inconclusive; a block without a usable twin is said so."""
    reasons, bare = [], []
    for block, attempt in _compared_blocks(cells):
        floor = floors.get((block, attempt, WAIT))
        if floor is not None and floor.inconclusive:
            reasons.append(Reason(ReasonKind.A_A, Validity.INCONCLUSIVE, (block,), detail=floor.reason))
        elif floor is None or floor.half_width is None:
            bare.append(block)
    return [*reasons, Reason(ReasonKind.NO_FLOOR, Validity.VALID, tuple(dict.fromkeys(bare)))] if bare else reasons


def _few_sessions(cells: Sequence[CellFinding]) -> list[Reason]:
    few = tuple(
        cell.id for cell in cells
        if cell.wait is not None and cell.wait.ratio is not None and cell.wait.ratio.n < MIN_SESSIONS
    )  # fmt: skip
    return [Reason(ReasonKind.TOO_FEW, Validity.INCONCLUSIVE, few)] if few else []


def _problems(cells: Sequence[CellFinding]) -> list[Reason]:
    """Broken invariants, those that differ in their numbers alone as one reason."""
    kinds: dict[str, list[tuple[str, str, int]]] = defaultdict(list)
    for cell in cells:
        for text, count in cell.problems:
            kinds[re.sub(r"\d[\d.,]*", "#", text)].append((cell.id, text, count))
    return [
        Reason(
            ReasonKind.PROBLEMS,
            Validity.INCONCLUSIVE,
            tuple(dict.fromkeys(name for name, _, _ in found)),
            detail=found[0][1],
            answers=sum(count for _, _, count in found),
        )
        for found in kinds.values()
    ]


def _unstable(cells: Sequence[CellFinding]) -> list[Reason]:
    found = {cell.id: flag.sentence for cell in cells for flag in cell.flags if not flag.ranked}
    if not found:
        return []
    return [Reason(ReasonKind.UNSTABLE, Validity.VALID, tuple(found), detail=next(iter(found.values())))]


def _compared_blocks(cells: Sequence[CellFinding]) -> list[tuple[str, int]]:
    found = {
        (cell.state.block, cell.state.attempt): None
        for cell in cells
        if cell.comparisons and cell.state.attempt is not None
    }
    return [(block, attempt) for block, attempt in found if attempt is not None]


def recommend(cells: Sequence[CellFinding], floors: Floors) -> tuple[Recommendation, ...]:
    """One piece of advice per engine, model and workload, in order of the matrix."""
    groups: dict[tuple[str, str, str], dict[str, list[CellFinding]]] = {}
    for cell in cells:
        if cell.state.role is Role.SPECULATIVE:
            key = (cell.name("engine"), cell.name("model"), cell.name("workload"))
            groups.setdefault(key, {}).setdefault(cell.name("sampling"), []).append(cell)
    shaky = _shaky_baselines(cells)
    found = []
    for (engine, model, workload), by_sampling in groups.items():
        advice = tuple(_advise(name, members, floors, shaky) for name, members in by_sampling.items())
        found.append(Recommendation(engine, model, workload, _together({one.advice for one in advice}), advice))
    return tuple(found)


def _together(advice: set[Advice]) -> Advice | None:
    """One word for several samplings; ``None`` where it pays for some and not for others."""
    if len(advice) == 1:
        return next(iter(advice))
    if Advice.ON in advice:
        return None
    # Where nothing gains and something loses, or where the rest is unknown, off is what is known.
    return Advice.OFF if Advice.OFF in advice else Advice.SAME


def _shaky_baselines(cells: Sequence[CellFinding]) -> frozenset[str]:
    return frozenset(cell.id for cell in cells if any(not flag.ranked for flag in cell.flags))


def _advise(sampling: str, members: Sequence[CellFinding], floors: Floors, shaky: frozenset[str]) -> SamplingAdvice:
    """Only cells claimed exact and not contradicted are ever recommended."""
    measured = [cell for cell in members if cell.wait is not None]
    exact = [cell for cell in measured if cell.group is Group.EXACT]
    everyone = tuple(members)
    if not exact:
        why = Why.NOT_EXACT if measured else Why.NOTHING_MEASURED
        return SamplingAdvice(sampling, Advice.UNKNOWN, why, None, everyone)
    firm = [cell for cell in exact if not _alarm(cell, floors)]
    judged = [
        cell for cell in firm
        if cell.wait is not None and cell.wait.outcome not in (Outcome.RANGE_ONLY, Outcome.NOT_COMPARABLE)
    ]  # fmt: skip
    if not judged:
        return SamplingAdvice(sampling, Advice.UNKNOWN, _why_not(firm), None, everyone)
    # Unstable cells keep their verdict, whose interval holds their noise, but they are not ranked before others.
    ranked = sorted(judged, key=lambda cell: (bool({cell.id, cell.state.baseline} & shaky), _point(cell)))
    winners = [cell for cell in ranked if cell.wait is not None and cell.wait.outcome is Outcome.LOWER]
    if winners:
        # The best of several is partly luck: one that was measured anew goes before one that only looks better.
        best = next((cell for cell in winners if cell.confirmed), winners[0])
        chosen = len(winners) > 1 or any(cell.confirmed for cell in judged)
        return SamplingAdvice(sampling, Advice.ON, Why.NONE, best, everyone, best.confirmed if chosen else None)
    if any(cell.wait is not None and cell.wait.outcome is Outcome.HIGHER for cell in judged):
        return SamplingAdvice(sampling, Advice.OFF, Why.NONE, ranked[0], everyone)
    if any(_blurred(cell) for cell in judged):
        return SamplingAdvice(sampling, Advice.UNKNOWN, Why.TOO_NOISY, ranked[0], everyone)
    return SamplingAdvice(sampling, Advice.SAME, Why.NONE, ranked[0], everyone)


def _blurred(cell: CellFinding) -> bool:
    """Whether the interval is so wide that a difference people feel could hide in it."""
    ratio = cell.wait.ratio if cell.wait is not None else None
    return ratio is None or ratio.low is None or ratio.high is None or ratio.high / ratio.low > RESOLUTION**2


def _why_not(firm: Sequence[CellFinding]) -> Why:
    if not firm:
        return Why.A_A
    few = any(cell.wait is not None and cell.wait.outcome is Outcome.RANGE_ONLY for cell in firm)
    return Why.TOO_FEW if few else Why.NOT_COMPARABLE


def _alarm(cell: CellFinding, floors: Floors) -> bool:
    found = (floors.get((cell.state.block, cell.state.attempt or 0, metric)) for metric in (WAIT, cell.headline))
    return any(floor is not None and floor.inconclusive for floor in found)


def _point(cell: CellFinding) -> float:
    return cell.wait.ratio.point if cell.wait is not None and cell.wait.ratio is not None else float("inf")

"""Validity and coverage: what the figures of a run are worth, and which are missing."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import WAIT, CellFinding, Reason, ReasonKind
from orchestrator.schema.cell import Role
from orchestrator.schema.status import STATUS_RULES, Status, Validity

if TYPE_CHECKING:
    from orchestrator.stats.noise import NoiseFloor
    from orchestrator.store.index import Index

    Floors = Mapping[tuple[str, int, str], NoiseFloor]

_RANK = {Validity.VALID: 0, Validity.INCONCLUSIVE: 1, Validity.INVALID: 2}
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
    """Cells whose waits vary much; twins are part of the method, and their spread is in the noise floor."""
    told = [cell for cell in cells if cell.state.role is not Role.TWIN]
    found = {cell.id: flag.sentence for cell in told for flag in cell.flags if not flag.ranked}
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

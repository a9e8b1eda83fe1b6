"""Which sessions are still to run, in which order: pure, from the blocks, the fates and the journal's index."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.schema.adapter import TrialSpec, phase_methods
from orchestrator.schema.record import CONFIRM, Phase
from orchestrator.schema.status import Status

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from orchestrator.matrix.types import Block, RunSettings
    from orchestrator.runner.survey import CellFate
    from orchestrator.schema.cell import Cell
    from orchestrator.store.index import Index
    from orchestrator.workloads.load import Prompt

BLOCKED = "blocked_with_canary"
WARMUP_TEXT = "Before the measurement begins, say something short about the weather of today:"
"""The warm-up prompt where a workload has no prompt to spare."""


@dataclass(frozen=True, slots=True)
class PlannedSet:
    """One session of every cell of the attempt, in order. ``take`` counts restarts after an interruption."""

    set_index: int
    take: int
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class PlannedAttempt:
    """A block attempt, new or resumed, with the sets that are missing.

    Args:
        blocked: all sessions of a cell run in a row, so that no set is complete before the last cell's turn.
        purpose: of a new attempt, as :class:`orchestrator.schema.record.AttemptRecord` has it.
    """

    block: str
    attempt: int
    is_new: bool
    cells: tuple[Cell, ...]
    sets: tuple[PlannedSet, ...]
    planned_sets: int
    blocked: bool = False
    purpose: str = ""

    @property
    def sessions(self) -> int:
        """Sessions still to run."""
        return sum(len(one.cells) for one in self.sets)

    @property
    def sequence(self) -> tuple[tuple[PlannedSet, Cell], ...]:
        """Every session in the order it runs."""
        if not self.blocked:
            return tuple((one, cell) for one in self.sets for cell in one.cells)
        return tuple((one, cell) for cell in self.cells for one in self.sets if cell in one.cells)


def plan_attempts(
    blocks: Sequence[Block],
    fates: Mapping[str, CellFate],
    index: Index,
    settings: RunSettings,
    *,
    selected: frozenset[str],
    again: bool,
) -> tuple[PlannedAttempt, ...]:
    """The attempts to run.

    Args:
        blocks: all blocks of the matrix, in its order.
        fates: each cell's fate; refused cells are never planned.
        index: what the journal already holds.
        settings: sets, order and the rest.
        selected: ids of the cells to measure; a speculative cell brings its baseline (and twin) along.
        again: measure selected cells anew even when they are measured (``rerun``).
    """
    planned = []
    for block in blocks:
        runnable = [cell for cell in block.members if fates[cell.id].refusal is None]
        if block.baseline not in runnable:
            continue
        wanted = {cell.id for cell in runnable if cell.id in selected}
        attempt = (
            _new(block, runnable, wanted, index, settings)
            if again
            else _resume_or_new(block, runnable, wanted, fates, index, settings)
        )
        if attempt is not None and attempt.sets:
            planned.append(attempt)
    return tuple(planned)


def plan_confirmation(block: Block, winner: str, index: Index, settings: RunSettings) -> PlannedAttempt | None:
    """A new attempt of the best of several faster cells with its baseline and twin: fresh sessions for one question."""
    attempt = _new(block, list(block.members), {winner}, index, settings)
    return replace(attempt, purpose=CONFIRM) if attempt is not None else None


def ordered(cells: Sequence[Cell], set_index: int, settings: RunSettings) -> tuple[Cell, ...]:
    """The order of a set's sessions: ABBA turns every other set around, ``random`` shuffles by a stored seed.

    In a blocked order sets are not what alternates, and every set has the order of the cells.
    """
    if settings.order == BLOCKED:
        return tuple(cells)
    if settings.order == "random":
        shuffled = list(cells)
        random.Random(f"{settings.order_seed}/{set_index}").shuffle(shuffled)  # noqa: S311  (an order, not a secret)
        return tuple(shuffled)
    return tuple(cells) if set_index % 2 == 0 else tuple(reversed(cells))


def instrumented(adapter: object, cell: Cell, settings: RunSettings) -> bool:
    """Whether the cell's rounds are to be timed from inside: the matrix asks, and the adapter can."""
    return settings.phases and cell.method.kind in phase_methods(adapter)


def session_trials(
    prompts: Sequence[Prompt],
    cell: Cell,
    settings: RunSettings,
    set_index: int,
    *,
    phases: bool = False,
    turn: bool = False,
    frame: Callable[[Prompt], Prompt] = lambda prompt: prompt,
) -> tuple[tuple[TrialSpec, Prompt], ...]:
    """The trials of one session: warm-ups on other prompts, then the same measured prompts in every session.

    With ``turn`` each set begins with the next prompt, the same one in all arms: what befalls the first answer of a
    process befalls another prompt each time, and the place and the prompt can be told apart.

    Seeds are a function of (prompt, set) alone, so all arms of a set share them. With ``phases`` the last set's session
    repeats the measured list instrumented, after all else: it heats the machine before as few sessions as can be.
    ``frame`` puts a prompt into the form that is sent.
    """
    count = cell.workload.trials or settings.trials
    measured, spare = list(prompts[:count]), list(prompts[count:])
    plan = []
    for number in range(settings.warmup):
        prompt = spare[number % len(spare)] if spare else _warmup_prompt(measured[0])
        plan.append((Phase.WARMUP, prompt))
    if cell.workload.cache == "shared-prefix":
        plan.append((Phase.PRIME, spare[0] if spare else _warmup_prompt(measured[0])))
    first = set_index % len(measured) if turn else 0
    measured = [*measured[first:], *measured[:first]]
    for prompt in measured:
        if cell.workload.cache == "warm":
            plan.append((Phase.PRIME, prompt))
        plan.append((Phase.MEASURED, prompt))
    if phases and set_index == settings.sessions - 1:
        plan += [(Phase.PHASES, prompt) for prompt in measured]
    return tuple(
        (TrialSpec(i, phase.value, prompt.id, prompt.text, _seed(_start(cell, phase), prompt.id, set_index)), prompt)
        for i, (phase, prompt) in enumerate((phase, frame(prompt)) for phase, prompt in plan)
    )


def _new(
    block: Block, runnable: list[Cell], wanted: set[str], index: Index, settings: RunSettings
) -> PlannedAttempt | None:
    speculative = [cell for cell in block.cells if cell in runnable and cell.id in wanted]
    companions = [cell for cell in (block.baseline, block.twin) if cell is not None and cell in runnable]
    if not speculative and not any(cell.id in wanted for cell in companions):
        return None
    members = [companions[0], *speculative, *companions[1:]]
    earlier = index.attempts.get(block.id, [])
    number = max((state.attempt for state in earlier), default=0) + 1
    sets = tuple(PlannedSet(i, 0, ordered(members, i, settings)) for i in range(settings.most_sessions))
    blocked = settings.order == BLOCKED
    return PlannedAttempt(block.id, number, True, tuple(members), sets, settings.most_sessions, blocked)


def _resume_or_new(
    block: Block,
    runnable: list[Cell],
    wanted: set[str],
    fates: Mapping[str, CellFate],
    index: Index,
    settings: RunSettings,
) -> PlannedAttempt | None:
    fresh = {cell.id for cell in runnable if _settled(cell, fates, index)}
    open_ids = wanted - fresh
    if not open_ids:
        return None
    states = index.attempts.get(block.id, [])
    newest = states[-1] if states else None
    if newest is not None and open_ids <= set(newest.cells) and _same(newest.cells, fates):
        members = [cell for cell in block.members if cell.id in newest.cells]
        alive = [cell for cell in members if not _gave_up(cell, newest.attempt, index)]
        missing = [i for i in range(newest.planned_sets) if i not in newest.complete]
        sets = tuple(PlannedSet(i, newest.next_take(i), ordered(alive, i, settings)) for i in missing)
        blocked = settings.order == BLOCKED
        return PlannedAttempt(block.id, newest.attempt, False, tuple(members), sets, newest.planned_sets, blocked)
    return _new(block, runnable, open_ids, index, settings)


def _settled(cell: Cell, fates: Mapping[str, CellFate], index: Index) -> bool:
    """Whether ``run`` leaves the cell alone: measured, or failed with the same fingerprint."""
    state = index.cells.get(cell.id)
    if state is None or state.fingerprint != fates[cell.id].fingerprint or state.attempt is None:
        return False
    return state.status not in (Status.NOT_RUN, Status.ABORTED, Status.STALE, Status.UNAVAILABLE, Status.UNSUPPORTED)


def _same(recorded: Mapping[str, str], fates: Mapping[str, CellFate]) -> bool:
    return all(cell in fates and fates[cell].fingerprint == print_ for cell, print_ in recorded.items())


def _gave_up(cell: Cell, attempt: int, index: Index) -> bool:
    state = index.cells.get(cell.id)
    return state is not None and state.attempt == attempt and bool(state.failed_sessions)


def _warmup_prompt(like: Prompt) -> Prompt:
    return replace(like, id="warmup", text=WARMUP_TEXT, answer=None, task=None, messages=None, context_tokens=None)


def _start(cell: Cell, phase: Phase) -> int:
    """A priming request draws its own answer, not the one that is measured after it."""
    return cell.sampling.seed + (1 if phase is Phase.PRIME else 0)


def _seed(base: int, prompt_id: str, set_index: int) -> int:
    digest = hashlib.sha256(f"{base}/{prompt_id}/{set_index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF

"""What follows from the cells' statuses: the exit status, and whom ``rerun --failed`` selects."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from orchestrator.schema.status import STATUS_RULES
from orchestrator.store.check_states import CheckState
from orchestrator.store.states import CellState

State = CellState | CheckState
States = Mapping[str, CellState] | Mapping[str, State] | Iterable[State]
"""States of cells and checks, as ``Index.cells`` or as an iterable of values."""


def exit_code(states: States, requested: Collection[str], strict: bool) -> int:
    """0 when no cell failed, else 1, by :data:`orchestrator.schema.status.STATUS_RULES`.

    Args:
        states: the cells that the command was about, whether by default, by glob or by name.
        requested: those of them named explicitly: nothing but a measurement satisfies these.
        strict: treat every cell as if it had been named.

    Raises:
        ValueError: a requested cell is not among the states, so nothing could be said of it.
    """
    cells = {state.id: state for state in _values(states)}
    unknown = sorted(set(requested) - set(cells))
    if unknown:
        raise ValueError(f"no state for the requested cell {unknown[0]}")
    for state in cells.values():
        rule = STATUS_RULES[state.status]
        named = strict or state.id in requested
        if rule.fails_run or (named and rule.fails_when_strict):
            return 1
    return 0


def select_failed(states: States) -> tuple[str, ...]:
    """Ids of the cells that ``rerun --failed`` measures again, in order."""
    return tuple(state.id for state in _values(states) if STATUS_RULES[state.status].selected_by_failed)


def _values(states: States) -> Iterable[State]:
    return states.values() if isinstance(states, Mapping) else states

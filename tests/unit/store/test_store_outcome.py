from __future__ import annotations

from dataclasses import replace

import pytest
from store_samples import BASE, S1, S2, build, matrix

from orchestrator.schema.status import Status
from orchestrator.store.index import CellState
from orchestrator.store.outcome import exit_code, select_failed

# status: (exit code of a run over everything, exit code when named or strict, selected by --failed)
EXPECTED = {
    Status.OK: (0, 0, False),
    Status.FAILED: (1, 1, True),
    Status.TIMEOUT: (1, 1, True),
    Status.UNSUPPORTED: (0, 1, False),
    Status.UNAVAILABLE: (0, 1, False),
    Status.NOT_ENGAGED: (1, 1, True),
    Status.CONTAMINATED: (1, 1, True),
    Status.MEMORY_PRESSURE: (1, 1, True),
    Status.CONFOUNDED: (0, 1, True),
    Status.UNPARSED: (1, 1, True),
    Status.STALE: (0, 1, False),
    Status.ABORTED: (0, 1, True),
    Status.SKIPPED: (0, 0, False),
    Status.NOT_RUN: (0, 1, False),
}


def states(status: Status) -> dict[str, CellState]:
    """Three cells, all measured but one."""
    cells = build(matrix()).cells
    return {name: replace(state, status=status if name == S1 else Status.OK) for name, state in cells.items()}


def test_the_table_is_whole() -> None:
    assert set(EXPECTED) == set(Status)


@pytest.mark.parametrize("status", list(Status))
def test_exit_code_and_selection_of_every_status(status: Status) -> None:
    plain, strict, selected = EXPECTED[status]
    cells = states(status)
    assert exit_code(cells, set(), False) == plain
    assert exit_code(cells, {BASE, S2}, False) == plain
    assert exit_code(cells, {S1}, False) == strict
    assert exit_code(cells, set(), True) == strict
    assert exit_code(cells.values(), {S1}, True) == strict
    assert select_failed(cells) == select_failed(iter(cells.values())) == ((S1,) if selected else ())


def test_no_cells_and_all_cells() -> None:
    assert exit_code({}, set(), True) == 0
    assert select_failed({}) == ()
    broken = {name: replace(state, status=Status.FAILED) for name, state in states(Status.OK).items()}
    assert select_failed(broken) == (BASE, S1, S2)


def test_a_requested_cell_without_a_state_is_no_success() -> None:
    with pytest.raises(ValueError, match="no state for the requested cell nowhere"):
        exit_code(states(Status.OK), {"nowhere"}, False)

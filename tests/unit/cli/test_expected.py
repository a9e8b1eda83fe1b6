"""What `plan` foretells: the requests of all sessions, by each workload's own number of trials."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scripted_adapter import ScriptedAdapter
from scripted_job import SETTINGS, matrix_cells

from orchestrator.cli.expected import expected_requests
from orchestrator.runner.plan import PlannedAttempt, PlannedSet


@pytest.mark.parametrize(
    ("workload", "per_session"),
    [
        ({}, 1 + 2),
        ({"trials": 5}, 1 + 5),
        ({"trials": 5, "cache": "warm"}, 1 + 2 * 5),
        ({"cache": "shared-prefix", "prefix": "x"}, 1 + 1 + 2),
    ],
    ids=["the run's own", "the workload's", "each primed", "one prime"],
)
def test_requests_are_counted_as_the_sessions_ask_them(tmp_path, workload, per_session):
    base, draft, _, _ = matrix_cells(tmp_path)
    cells = tuple(replace(cell, workload=replace(cell.workload, **workload)) for cell in (base, draft))
    sets = tuple(PlannedSet(number, 0, cells) for number in range(SETTINGS.sessions))
    attempt = PlannedAttempt(base.block_id, 1, True, cells, sets, len(sets))
    adapters = {"scripted": ScriptedAdapter()}
    assert expected_requests([attempt], SETTINGS, adapters) == 2 * 2 * per_session
    assert expected_requests([attempt, attempt], SETTINGS, adapters) == 2 * 2 * 2 * per_session
    assert expected_requests([], SETTINGS, adapters) == 0

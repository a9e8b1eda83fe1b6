from __future__ import annotations

import pytest
from store_samples import (
    BASE,
    BLOCK,
    PRINTS,
    S1,
    S2,
    TRIALS,
    TWIN,
    attempt,
    build,
    fate,
    matrix,
    one_set,
    places,
    whole_attempt,
    whole_run,
)

from orchestrator.schema.cell import Role
from orchestrator.schema.status import Status

WITH_TWIN = {**PRINTS, TWIN: "t" * 16}


def test_a_rerun_of_one_cell_leaves_the_others_their_attempt() -> None:
    again = {BASE: PRINTS[BASE], S1: PRINTS[S1]}
    first = [matrix(), attempt(1), *one_set(1, 0, bad={S1: Status.FAILED}), *one_set(1, 1, bad={S1: Status.FAILED})]
    index = build(*first, *whole_attempt(2, again))
    assert [index.cells[cell].attempt for cell in PRINTS] == [2, 2, 1]
    assert [index.cells[cell].status for cell in PRINTS] == [Status.OK] * 3
    assert index.cells[S1].history == ((1, Status.FAILED), (2, Status.OK))
    assert index.cells[S1].failed_sessions == ()
    assert places(index.cells[BASE]) == [(2, 0, 0), (2, 1, 0)]
    assert places(index.cells[S2]) == [(1, 0, 0), (1, 1, 0)]
    # the other cell is compared inside attempt 1: the baseline's part of it is at hand, and not among its own figures
    assert {one.place.attempt for one in index.cells[BASE].partner_sessions} == {1}
    assert len(index.cells[BASE].partner_trials) == 2 * len(TRIALS)
    assert index.cells[S1].partner_trials == index.cells[S2].partner_trials == ()
    assert [state.attempt for state in index.attempts[BLOCK]] == [1, 2]


def test_partners_are_dropped_once_no_cell_stands_on_their_attempt() -> None:
    index = build(matrix(WITH_TWIN), *whole_attempt(1, WITH_TWIN), *whole_attempt(2, WITH_TWIN))
    assert index.cells[BASE].partner_trials == index.cells[TWIN].partner_trials == ()
    again = {cell: WITH_TWIN[cell] for cell in (BASE, S1, TWIN)}
    index = build(matrix(WITH_TWIN), *whole_attempt(1, WITH_TWIN), *whole_attempt(2, again))
    assert {one.place.attempt for one in index.cells[TWIN].partner_trials} == {1}
    assert index.cells[TWIN].role is Role.TWIN


def test_an_interrupted_rerun_shows_the_new_attempt() -> None:
    again = {BASE: PRINTS[BASE], S1: PRINTS[S1]}
    index = build(*whole_run(), attempt(2, again), *one_set(2, 0, prints=again))
    assert (index.cells[S1].status, index.cells[S1].attempt) == (Status.ABORTED, 2)
    assert places(index.cells[S1]) == [(2, 0, 0)]
    assert index.attempts[BLOCK][-1].missing == (1,)
    assert index.cells[S2].status is Status.OK


def test_other_settings_make_a_cell_stale_and_nothing_old_is_pooled() -> None:
    changed = {**PRINTS, S1: "9" * 16}
    index = build(*whole_run(), matrix(changed, "second"))
    assert index.matrix is not None
    assert index.matrix.text == "second"
    state = index.cells[S1]
    assert (state.status, state.attempt, state.fingerprint) == (Status.STALE, None, "9" * 16)
    assert "attempt 1" in state.reason
    assert (state.sessions, state.trials, state.sets_done) == ((), (), 0)
    assert len(state.stale_trials) == 2 * len(TRIALS)
    assert {one.place.fingerprint for one in state.stale_trials} == {PRINTS[S1]}
    assert state.history == ((1, Status.OK),)
    assert index.cells[S2].status is Status.OK
    assert index.attempts[BLOCK][0].current is False


def test_measured_anew_a_stale_cell_is_not_mixed_with_its_past() -> None:
    changed = {BASE: PRINTS[BASE], S1: "9" * 16}
    index = build(*whole_run(), matrix({**PRINTS, **changed}), *whole_attempt(2, changed))
    state = index.cells[S1]
    assert (state.status, state.attempt, state.stale_trials) == (Status.OK, 2, ())
    assert {one.place.fingerprint for one in state.trials} == {"9" * 16}
    back = build(*whole_run(), matrix({**PRINTS, **changed}), *whole_attempt(2, changed), matrix())
    assert (back.cells[S1].status, back.cells[S1].attempt) == (Status.OK, 1)
    assert {one.place.fingerprint for one in back.cells[S1].trials} == {PRINTS[S1]}


def test_a_changed_baseline_is_no_partner() -> None:
    changed = {BASE: "8" * 16, S1: PRINTS[S1]}
    index = build(*whole_run(), matrix({**PRINTS, **changed}), *whole_attempt(2, changed))
    assert index.cells[S2].attempt == 1
    assert index.cells[BASE].partner_trials == ()


def test_an_older_attempt_without_any_session_is_not_stale() -> None:
    index = build(matrix(), attempt(1), matrix({**PRINTS, S1: "9" * 16}))
    assert index.cells[S1].status is Status.NOT_RUN


def test_a_cell_that_left_the_matrix_is_gone_and_its_attempt_is_not_resumed() -> None:
    left = {BASE: PRINTS[BASE], S2: PRINTS[S2]}
    index = build(*whole_run(), matrix(left))
    assert list(index.cells) == [BASE, S2]
    assert index.cells[S2].status is Status.OK
    assert index.attempts[BLOCK][0].current is False


@pytest.mark.parametrize("status", [Status.UNSUPPORTED, Status.UNAVAILABLE])
def test_a_refusal_decides_until_something_was_measured(status: Status) -> None:
    refused = build(matrix(), fate(S1, status))
    assert (refused.cells[S1].status, refused.cells[S1].reason, refused.cells[S1].remedy) == (
        status,
        "not here",
        "get it",
    )
    assert build(*whole_run()[:1], fate(S1, status), *whole_attempt(1)).cells[S1].status is Status.OK
    later = build(*whole_run(), fate(S1, status))
    assert later.cells[S1].status is status
    assert later.cells[S1].history == ((1, Status.OK),)
    assert build(*whole_run(), fate(S1, status, "0" * 16)).cells[S1].status is Status.OK
    twice = build(matrix(), fate(S1, Status.UNAVAILABLE), fate(S1, status))
    assert twice.cells[S1].status is status

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import (
    BASE,
    BLOCK,
    PRINTS,
    S1,
    S2,
    TRIALS,
    attempt,
    build,
    closing,
    fate,
    matrix,
    note,
    one_session,
    one_set,
    place,
    places,
    session,
    settings,
    trial,
    whole_attempt,
    whole_run,
    without_notes,
)

from orchestrator.schema.cell import Role
from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import Engagement, Record, SessionRecord, TrialRecord
from orchestrator.schema.status import STATUS_RULES, Status
from orchestrator.store.index import Index
from orchestrator.store.states import BADNESS, worst


def test_nothing_at_all() -> None:
    index = build()
    assert (index.matrix, index.cells, index.attempts, index.notes) == (None, {}, {}, ())


def test_a_matrix_alone() -> None:
    index = build(matrix())
    assert list(index.cells) == [BASE, S1, S2]
    state = index.cells[S1]
    assert (state.status, state.attempt, state.sets_done, state.sets_planned) == (Status.NOT_RUN, None, 0, 0)
    assert (state.block, state.role, state.baseline) == (BLOCK, Role.SPECULATIVE, BASE)
    assert state.settings == settings(S1)
    assert state.claim is not None
    assert (state.sessions, state.trials, state.history, state.engagement) == ((), (), (), None)


def test_a_whole_run_is_measured() -> None:
    index = build(*whole_run())
    for cell in PRINTS:
        state = index.cells[cell]
        assert (state.status, state.reason, state.remedy) == (Status.OK, "", "")
        assert (state.attempt, state.sets_done, state.sets_planned) == (1, 2, 2)
        assert places(state) == [(1, 0, 0), (1, 1, 0)]
        assert [one.phase for one in state.trials] == list(TRIALS) * 2
        assert [one.trial for one in state.trials] == [0, 1, 2, 0, 1, 2]
        assert state.failed_sessions == state.failed_trials == state.stale_trials == state.partner_trials == ()
        assert state.engagement is Engagement.ENGAGED
        assert state.history == ((1, Status.OK),)
    (only,) = index.attempts[BLOCK]
    assert (only.attempt, only.cells, only.planned_sets, only.trials_per_session) == (1, PRINTS, 2, len(TRIALS))
    assert (only.complete, only.missing, only.current) == ({0: 0, 1: 0}, (), True)
    assert (only.order, only.order_seed) == ("abba", 7)
    assert [only.next_take(number) for number in range(3)] == [1, 1, 0]


def test_an_incomplete_set_is_never_pooled() -> None:
    records = whole_run()[:-1]  # all of set 1 but its closing line
    index = build(*records)
    for cell in PRINTS:
        state = index.cells[cell]
        assert places(state) == [(1, 0, 0)]
        assert {one.place.set_index for one in state.trials} == {0}
        assert (state.status, state.sets_done) == (Status.ABORTED, 1)
        assert state.reason == "interrupted: 1 of 2 sets are complete"
        assert state.failed_sessions == ()
    (only,) = index.attempts[BLOCK]
    assert (only.missing, only.next_take(1)) == ((1,), 1)


def test_only_the_take_that_completed_the_set_is_pooled() -> None:
    begun = [matrix(), attempt(1), *one_set(1, 0), *one_session(place(BASE, 1, 1)), trial(place(S1, 1, 1), 0)]
    index = build(*begun, *one_set(1, 1, take=1))
    for cell in PRINTS:
        assert places(index.cells[cell]) == [(1, 0, 0), (1, 1, 1)]
        assert len(index.cells[cell].trials) == 2 * len(TRIALS)
        assert index.cells[cell].status is Status.OK


def test_a_second_completion_of_a_set_changes_no_figure() -> None:
    index = build(*whole_run(), *one_set(1, 1, take=1))
    assert places(index.cells[S1]) == [(1, 0, 0), (1, 1, 0)]
    assert index.attempts[BLOCK][0].complete == {0: 0, 1: 0}


def test_a_closing_line_of_another_take_attempt_or_cell_does_not_pool() -> None:
    head = [matrix(), attempt(1, planned=1)]
    sessions = [record for cell in PRINTS for record in one_session(place(cell, 1, 0))]
    for line in (closing(1, 0, take=1), closing(2, 0), closing(1, 1), closing(1, 0, prints={BASE: PRINTS[BASE]})):
        index = build(*head, *sessions, line)
        assert index.cells[S1].trials == ()
        assert index.cells[S1].status is Status.ABORTED


def test_trials_without_their_session_are_not_pooled() -> None:
    cut = [record for record in whole_run() if not (isinstance(record, SessionRecord) and record.place.cell == S1)]
    state = build(*cut).cells[S1]
    assert (state.status, state.sets_done, state.trials) == (Status.ABORTED, 0, ())


def test_an_attempt_that_no_session_ended_in() -> None:
    assert build(matrix(), attempt(1)).cells[S1].status is Status.NOT_RUN
    index = build(matrix(), attempt(1), trial(place(S1, 1, 0), 0))
    assert index.cells[S1].status is Status.ABORTED
    assert index.cells[S2].status is Status.NOT_RUN
    assert (index.cells[S2].attempt, index.cells[S2].sets_planned) == (1, 2)


def test_a_failing_cell_does_not_pull_the_others_down() -> None:
    index = build(matrix(), attempt(1), *one_set(1, 0), *one_set(1, 1, bad={S1: Status.TIMEOUT}))
    state = index.cells[S1]
    assert (state.status, state.reason, state.remedy) == (Status.TIMEOUT, "timeout!", "fix timeout!")
    assert places(state) == [(1, 0, 0)]
    assert [one.place.set_index for one in state.failed_sessions] == [1]
    assert [one.place.set_index for one in state.failed_trials] == [1, 1, 1]
    assert index.cells[BASE].status is index.cells[S2].status is Status.OK


def test_a_cell_that_was_given_up_keeps_its_failure() -> None:
    rest = {cell: PRINTS[cell] for cell in (BASE, S2)}
    index = build(matrix(), attempt(1), *one_set(1, 0, bad={S1: Status.FAILED}), *one_set(1, 1, prints=rest))
    assert (index.cells[S1].status, index.cells[S1].sets_done) == (Status.FAILED, 1)
    assert index.cells[BASE].status is Status.OK
    # the same, when the set with the failure was interrupted and the others were made anew
    failing = [*one_session(place(BASE, 1, 0)), *one_session(place(S1, 1, 0), Status.FAILED, "it died")]
    rerun = [*one_set(1, 0, take=1, prints=rest), *one_set(1, 1, prints=rest)]
    index = build(matrix(), attempt(1), *failing, *rerun)
    assert (index.cells[S1].status, index.cells[S1].reason) == (Status.FAILED, "it died")
    assert len(index.cells[S1].failed_sessions) == 1
    assert index.cells[S2].status is Status.OK


def test_a_failure_in_an_interrupted_set_is_over_when_the_cell_was_measured_anew() -> None:
    failing = list(one_session(place(S1, 1, 0), Status.FAILED, "it died"))
    index = build(matrix(), attempt(1), *failing, *one_set(1, 0, take=1), *one_set(1, 1))
    assert (index.cells[S1].status, index.cells[S1].failed_sessions) == (Status.OK, ())


def test_an_aborted_session_is_no_failure() -> None:
    index = build(matrix(), attempt(1), session(place(S1, 1, 0), Status.ABORTED, "Ctrl-C"))
    assert (index.cells[S1].status, index.cells[S1].reason) == (Status.ABORTED, "Ctrl-C")
    assert index.cells[S1].failed_sessions == ()


def test_the_worst_session_decides_and_of_equals_the_latest() -> None:
    index = build(
        matrix(),
        attempt(1, planned=3),
        *one_set(1, 0, bad={S1: Status.CONTAMINATED}),
        *one_set(1, 1, bad={S1: Status.FAILED, S2: Status.FAILED}),
        *one_set(1, 2, bad={S2: Status.TIMEOUT}),
    )
    assert index.cells[S1].status is Status.CONTAMINATED
    assert index.cells[S2].status is Status.FAILED
    assert [one.status for one in index.cells[S2].failed_sessions] == [Status.FAILED, Status.TIMEOUT]


@pytest.mark.parametrize("status", [status for status in Status if status is not Status.OK])
def test_a_bad_trial_keeps_a_session_that_calls_itself_ok_out_of_the_pool(status: Status) -> None:
    records = whole_run()
    spot = next(i for i, one in enumerate(records) if isinstance(one, TrialRecord) and one.place.cell == S1)
    records[spot] = replace(records[spot], status=status, reason="odd")
    state = build(*records).cells[S1]
    assert (state.status, state.reason) == (status, "trial 0 (warmup): odd")
    assert places(state) == [(1, 1, 0)]


@pytest.mark.parametrize("status", list(Status))
def test_sessions_pool_only_where_the_table_ranks_them(status: Status) -> None:
    state = build(matrix(), attempt(1, planned=1), *one_set(1, 0, bad={S1: status})).cells[S1]
    assert state.status is status
    assert bool(state.trials) is STATUS_RULES[status].ranked
    assert bool(state.failed_sessions) is (status not in (Status.OK, Status.ABORTED))


def test_the_reason_is_that_of_the_latest_of_the_worst() -> None:
    sessions = [session(place(S1, 1, number), Status.FAILED, f"cause {number}") for number in range(2)]
    state = build(matrix(), attempt(1), *sessions, session(place(S1, 1, 2), Status.TIMEOUT, "slow")).cells[S1]
    assert (state.status, state.reason, state.remedy) == (Status.FAILED, "cause 1", "fix cause 1")


def test_a_session_under_another_fingerprint_than_its_attempt_counts_for_nothing() -> None:
    foreign = session(place(S1, 1, 2, fingerprint="9" * 16), Status.FAILED, "of another life")
    state = build(matrix(), attempt(1), *one_set(1, 0), *one_set(1, 1), foreign).cells[S1]
    assert (state.status, state.failed_sessions) == (Status.OK, ())


def test_the_next_take_is_above_all_that_were_seen() -> None:
    (only,) = build(matrix(), attempt(1), trial(place(S1, 1, 0, 3), 0), trial(place(S1, 1, 0, 1), 0)).attempts[BLOCK]
    assert [only.next_take(0), only.next_take(1)] == [4, 0]


def test_engagement_is_that_of_the_pooled_sessions_where_there_are_any() -> None:
    silent = session(place(S1, 1, 1), Status.NOT_ENGAGED, "nothing drafted", Engagement.NOT_ENGAGED)
    assert build(matrix(), attempt(1), silent).cells[S1].engagement is Engagement.NOT_ENGAGED
    state = build(matrix(), attempt(1), *one_set(1, 0), silent).cells[S1]
    assert (state.status, state.engagement) == (Status.NOT_ENGAGED, Engagement.ENGAGED)


def test_engagement_is_engaged_when_any_session_drafted() -> None:
    def run(*kinds: Engagement) -> Engagement | None:
        records: list[Record] = [matrix(), attempt(1, planned=len(kinds))]
        for number, kind in enumerate(kinds):
            records += [session(place(cell, 1, number), engagement=kind) for cell in PRINTS]
            records.append(closing(1, number))
        return build(*records).cells[S1].engagement

    assert run(Engagement.IDLE, Engagement.ENGAGED) is Engagement.ENGAGED
    assert run(Engagement.IDLE, Engagement.IDLE) is Engagement.IDLE
    assert run(Engagement.IDLE, Engagement.UNVERIFIABLE) is Engagement.UNVERIFIABLE
    assert run(Engagement.ENGAGED, Engagement.NOT_ENGAGED) is Engagement.NOT_ENGAGED
    assert run(Engagement.OFF, Engagement.OFF) is Engagement.OFF


def test_what_is_recorded_twice_is_refused() -> None:
    where = place(S1, 1, 0)
    with pytest.raises(StoreError, match=r"a trial of eng/tiny/draft-k4/greedy/short .* recorded twice"):
        build(matrix(), attempt(1), trial(where, 0), trial(where, 0))
    with pytest.raises(StoreError, match=r"a session of .* recorded twice"):
        build(matrix(), attempt(1), session(where), session(where))
    with pytest.raises(StoreError, match=r"attempt 1 of block .* begun twice"):
        build(matrix(), attempt(1), attempt(1, {BASE: "0" * 16}))
    assert build(matrix(), attempt(1, planned=2), attempt(1, planned=4)).attempts[BLOCK][0].planned_sets == 4


def test_a_matrix_line_without_a_needed_key_is_refused() -> None:
    whole = matrix()
    for key in ("id", "fingerprint", "block", "role", "baseline", "settings"):
        cells = ({name: value for name, value in whole.cells[0].items() if name != key},)
        with pytest.raises(StoreError, match=f"without a valid '{key}'"):
            build(replace(whole, cells=cells))
    with pytest.raises(StoreError, match="'king' is not a valid Role"):
        build(replace(whole, cells=({**whole.cells[0], "role": "king"},)))


def test_badness_orders_every_status_in_step_with_the_table() -> None:
    assert sorted(BADNESS) == sorted(Status)
    assert BADNESS[0] is Status.OK
    fails = [(STATUS_RULES[status].fails_run, STATUS_RULES[status].selected_by_failed) for status in BADNESS]
    assert fails == sorted(fails)
    assert worst([]) is Status.OK
    assert worst(Status) is Status.CONTAMINATED


RUN = [
    matrix(),
    fate(S2, Status.UNAVAILABLE),
    attempt(1),
    *one_set(1, 0),
    *one_session(place(BASE, 1, 1)),
    *one_set(1, 1, take=1, bad={S1: Status.FAILED}),
    *whole_attempt(2, {BASE: PRINTS[BASE], S1: PRINTS[S1]}),
]


@given(cut=st.integers(0, len(RUN)), spots=st.lists(st.integers(0, len(RUN)), max_size=4))
def test_notes_change_nothing_but_the_notes(cut: int, spots: list[int]) -> None:
    plain = RUN[:cut]
    noted = list(plain)
    for spot in spots:
        noted.insert(min(spot, len(noted)), note())
    index = Index.build(noted)
    assert len(index.notes) == len(spots)
    assert without_notes(index) == Index.build(plain) == Index.build(iter(plain))


@given(cut=st.integers(0, len(RUN)))
def test_whatever_the_cut_only_closed_sets_are_pooled(cut: int) -> None:
    index = Index.build(RUN[:cut])
    closed = {(one.attempt, one.set_index, one.take) for one in RUN[:cut] if one.kind == "set"}
    for state in index.cells.values():
        assert set(places(state)) <= closed
        assert {(one.place.attempt, one.place.set_index, one.place.take) for one in state.trials} <= closed
        assert len({one.place.attempt for one in state.trials}) <= 1
        assert len(state.trials) == len(TRIALS) * len(state.sessions)

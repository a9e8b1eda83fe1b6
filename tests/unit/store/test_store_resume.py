from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from store_samples import BLOCK, PRINTS, TRIALS, make_run, resume, whole_run

from orchestrator.schema.codec import dump_record
from orchestrator.schema.record import SetRecord
from orchestrator.schema.status import Status
from orchestrator.store.index import Index

PLANNED = 2
LENGTH = sum(len(dump_record(record).encode()) for record in whole_run())


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 1), min_size=1, max_size=4))
def test_interrupted_anywhere_and_resumed(cuts: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        patched.setattr(os, "fsync", lambda _fd: None)  # tested apart, and slow
        run = make_run(Path(folder) / "run")
        journal = run.path / "journal.jsonl"
        resume(run, PLANNED)
        assert journal.stat().st_size == LENGTH
        for cut in cuts:  # each crash loses the end of the file, whatever byte that is; folders stay
            text = journal.read_bytes()
            journal.write_bytes(text[: round(cut * len(text))])
            survived = list(run.records())
            closed = [one for one in survived if isinstance(one, SetRecord)]
            resume(run, PLANNED)
            records = list(run.records())
            assert records[: len(survived)] == survived
            added = [one.set_index for one in records[len(survived) :] if isinstance(one, SetRecord)]
            assert sorted(added + [one.set_index for one in closed]) == list(range(PLANNED))
            index = Index.build(records)
            for cell in PRINTS:
                state = index.cells[cell]
                assert state.status is Status.OK
                assert [one.place.set_index for one in state.sessions] == list(range(PLANNED))
                assert len(state.trials) == PLANNED * len(TRIALS)
                for one in closed:
                    assert state.sessions[one.set_index].place.take == one.take
            (only,) = index.attempts[BLOCK]
            assert only.missing == ()


def test_a_finished_run_has_nothing_to_resume(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    resume(run, PLANNED)
    text = (run.path / "journal.jsonl").read_bytes()
    resume(run, PLANNED)
    assert (run.path / "journal.jsonl").read_bytes() == text


def test_a_session_killed_before_its_first_record_is_seen_on_disk_only(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    records = whole_run()
    with run.lock():
        run.append(records[0])
        run.append(records[1])
        run.session_folder(*next(iter(PRINTS.items())), 1, 0, 0)
    (state,) = Index.build(run.records()).attempts[BLOCK]
    assert state.next_take(0) == 0
    assert run.next_take(state.cells, 1, 0) == 1
    resume(run, PLANNED)
    index = Index.build(run.records())
    assert {one.status for one in index.cells.values()} == {Status.OK}
    assert index.attempts[BLOCK][0].complete == {0: 1, 1: 0}

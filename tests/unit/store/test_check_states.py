"""Checks from journal records: equal batches once, nothing after a gap, attempts apart, statuses."""

from __future__ import annotations

import dataclasses
import json

import pytest
from store_samples import BASE, BLOCK, PRINTS, S1, UTC, make_run, matrix

from orchestrator.schema.codec import dump_record, load_record
from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import CellRecord, CheckArm, CheckEndRecord, CheckPlanRecord, CheckRecord
from orchestrator.schema.status import Status
from orchestrator.store.durations import generation_seconds
from orchestrator.store.index import Index

ID, OWN, SHARED = S1 + "~check", "o" * 16, "s" * 16
ROW = {
    "id": ID,
    "cell": S1,
    "baseline": BASE,
    "block": BLOCK,
    "preset": "screen",
    "fingerprint": OWN,
    "base": SHARED,
}
MATRIX = dataclasses.replace(matrix(), checks=(ROW,))


def plan(attempt=1):
    return CheckPlanRecord(BLOCK, SHARED, attempt, "screen", {"p": "text"}, 200, 5, {"p": "why"}, UTC)


def batch(arm, number, attempt=1, *, own=False, token=1):
    cell, print_ = (S1, OWN) if own else (BASE, SHARED)
    ids = ((token, 2),) * 100
    late = UTC.replace("05.123", "07.123")
    return CheckRecord(
        BLOCK, cell, print_, attempt, arm, "p", number, tuple(range(100)), ids, 0.8, 1, 0, None, "cells/x", UTC, late
    )


def end(status=Status.OK, attempt=1):
    return CheckEndRecord(BLOCK, S1, OWN, attempt, status, "because", "do this", UTC)


def state(*records):
    return Index.build((MATRIX, *records)).checks[ID]


def test_without_generations_a_check_is_not_run():
    found = state()
    assert (found.status, found.attempt, found.plan, dict(found.arms)) == (Status.NOT_RUN, None, None, {})


def test_shared_generations_alone_make_it_aborted_and_own_ones_its_attempt():
    found = state(plan(), batch(CheckArm.OFF, 0))
    assert (found.status, found.attempt, found.generated) == (Status.ABORTED, 1, 100)
    found = state(plan(), batch(CheckArm.OFF, 0), batch(CheckArm.ON, 0, own=True))
    assert set(found.arms) == {CheckArm.OFF, CheckArm.ON}
    assert found.plan == plan()


def test_the_first_of_two_equal_batches_counts_and_nothing_after_a_gap():
    found = state(plan(), batch(CheckArm.OFF, 0), batch(CheckArm.OFF, 0, token=9), batch(CheckArm.OFF, 2))
    (only,) = found.arms[CheckArm.OFF]["p"]
    assert only.tokens[0] == (1, 2)


def test_an_end_gives_the_status_with_its_reason():
    found = state(plan(), batch(CheckArm.ON, 0, own=True), end())
    assert (found.status, found.reason) == (Status.OK, "because")
    found = state(plan(), end(Status.FAILED))
    assert (found.status, found.remedy) == (Status.FAILED, "do this")
    assert state(plan(), end(Status.FAILED), end()).status is Status.OK


def test_a_new_attempt_leaves_the_earlier_one_behind():
    first = (plan(), batch(CheckArm.ON, 0, own=True), end())
    found = state(*first, plan(2), batch(CheckArm.OFF, 0, 2), batch(CheckArm.ON, 0, 2, own=True, token=7))
    assert (found.attempt, found.earlier, found.status) == (2, (1,), Status.ABORTED)
    assert found.arms[CheckArm.ON]["p"][0].tokens[0] == (7, 2)


def test_other_fingerprints_are_another_check():
    older = dataclasses.replace(batch(CheckArm.ON, 0, own=True), fingerprint="q" * 16)
    assert state(plan(), older).arms == {}


def test_a_refused_cell_has_no_check():
    refused = CellRecord(S1, PRINTS[S1], Status.UNSUPPORTED, "cannot", "", UTC)
    assert (state(refused).status, state(refused).reason) == (Status.UNSUPPORTED, "cannot")


def test_records_survive_the_journal_and_tell_what_a_generation_takes(tmp_path):
    directory, records = make_run(tmp_path / "run"), [MATRIX, plan(), batch(CheckArm.OFF, 0), end()]
    with directory.lock():
        for record in records:
            directory.append(record)
    assert list(directory.records()) == records
    assert generation_seconds(directory.records()) == {"eng": pytest.approx(0.02)}


def test_a_matrix_revision_that_lacks_a_key_is_refused():
    broken = dataclasses.replace(MATRIX, checks=({"id": ID},))
    with pytest.raises(StoreError, match="lists a check without"):
        Index.build((broken,))


def test_judged_places_are_kept_and_a_record_without_them_loads():
    told = dataclasses.replace(batch(CheckArm.ON, 0, own=True), judged=((0.5, 0.25, 0.01, 0.75), ()), unjudged="")
    line = dump_record(told)
    assert load_record(line, "here") == told
    older = json.loads(line)
    del older["judged"], older["unjudged"]
    assert load_record(json.dumps(older), "here") == batch(CheckArm.ON, 0, own=True)

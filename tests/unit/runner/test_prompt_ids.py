"""One line of the ledger for all prompts of a session, and with how many tokens they begin together."""

from __future__ import annotations

import dataclasses

import pytest

from orchestrator.runner.prompt_ids import common_start, ids_condition
from orchestrator.schema.adapter import Honoured
from orchestrator.schema.observation import observed
from orchestrator.schema.record import Phase, Place, TrialRecord
from orchestrator.schema.status import Status

IDS = {"a": (1, 2, 3), "b": (1, 2, 4, 5)}
TRIAL = TrialRecord(
    Place("cell", "f", "block", 1, 0, 0, 0), 0, Phase.MEASURED, "a", "c", "en", 1, Status.OK, "",
    (observed("prompt_tokens", 3, "x"),), (), "", "length", (), (), "2026-01-01T00:00:00Z",
)  # fmt: skip


def test_the_ids_have_one_hash_whatever_the_order_of_the_prompts():
    one, two = (ids_condition(ids, [TRIAL]) for ids in (IDS, dict(reversed(IDS.items()))))
    assert one == two
    assert one.verdict is Honoured.HONOURED
    assert one.effective.startswith("2 prompts, 7 tokens, sha256 ")
    assert ids_condition({**IDS, "a": (1, 2, 9)}, []).effective != one.effective


def test_an_engine_that_counted_otherwise_was_given_something_else():
    other = dataclasses.replace(TRIAL, observations=(observed("prompt_tokens", 4, "x"),))
    found = ids_condition(IDS, [other, other])
    assert found.verdict is Honoured.CHANGED
    assert found.effective.endswith("counted otherwise by the engine: a")
    warm_up = dataclasses.replace(other, phase=Phase.WARMUP)
    assert ids_condition(IDS, [warm_up]).verdict is Honoured.HONOURED


@pytest.mark.parametrize("ids", [None, {}])
def test_what_is_not_told_is_unknown(ids):
    assert ids_condition(ids, [TRIAL]).verdict is Honoured.UNKNOWN
    assert common_start(ids or {}) is None


@pytest.mark.parametrize(
    ("ids", "start"), [(IDS, 2), ({"a": (1, 2)}, 2), ({"a": (1, 2), "b": (1, 2, 3)}, 2), ({"a": (1,), "b": (2,)}, 0)]
)
def test_the_common_start_is_the_longest(ids, start):
    assert common_start(ids) == start

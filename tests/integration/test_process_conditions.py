"""What an adapter tells of a whole process: conditions that only its log has, and drafters that remember requests."""

from __future__ import annotations

import dataclasses
from collections import Counter

from scripted_adapter import ScriptedAdapter
from scripted_job import BASE, DRAFT, NGRAM, SETTINGS, make_job, make_run

from orchestrator.runner import session
from orchestrator.runner.execute import execute
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.record import Phase, SessionRecord, TrialRecord

PLAIN = dataclasses.replace(SETTINGS, twin=False, warmup=3)


class Remembering(ScriptedAdapter):
    """Its drafts keep what they saw, and its process tells one condition besides those of each trial."""

    def keeps_state(self, cell):
        return cell.id == DRAFT

    def conditions(self, cell, capture):
        return (Condition("seed", "1", "1", Honoured.HONOURED, "test"),)

    def session_conditions(self, cell, capture):
        mode = f"{len(capture.trials)} exchanges seen"
        return (Condition("rollback", "the engine's own", mode, Honoured.HONOURED, "test"),)


def records(adapter, folder):
    directory = make_run(folder)
    execute(make_job(adapter, folder, settings=PLAIN, without=(NGRAM,)), directory, lambda _: None)
    return list(directory.records())


def warmups(found):
    rows = [r for r in found if isinstance(r, TrialRecord) and r.phase is Phase.WARMUP]
    return Counter((row.place.cell, row.place.set_index) for row in rows)


def test_a_process_tells_its_conditions_and_one_that_remembers_gets_all_its_warmups(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "settled", bool)  # warm after the first one
    found = records(Remembering(), tmp_path)
    counts = warmups(found)
    assert {count for (cell, _), count in counts.items() if cell == DRAFT} == {3}
    assert {count for (cell, _), count in counts.items() if cell == BASE} == {1}
    sessions = [row for row in found if isinstance(row, SessionRecord)]
    assert sessions
    for one in sessions:
        assert [item.name for item in one.conditions] == ["seed", "chat_template", "prompt_ids", "rollback"]
        assert int(one.conditions[-1].effective.split()[0]) >= 3


def test_an_adapter_that_says_neither_has_no_state_to_keep(tmp_path, monkeypatch):
    monkeypatch.setattr(session, "settled", bool)
    assert set(warmups(records(ScriptedAdapter(), tmp_path)).values()) == {1}

"""A workload with fewer prompts than a session needs is refused, and the remedy names the key that asks for so many."""

from __future__ import annotations

from dataclasses import replace

import pytest
from scripted_adapter import ScriptedAdapter
from scripted_job import BASE, SETTINGS, make_job

from orchestrator.schema.status import Status


@pytest.mark.parametrize(("own", "key"), [(None, "run.trials"), (999, "workloads.w.trials")])
def test_the_remedy_names_whose_number_of_trials_is_too_large(tmp_path, own, key):
    settings = SETTINGS if own is not None else replace(SETTINGS, trials=999)
    job = make_job(ScriptedAdapter(), tmp_path, settings=settings, own_trials=own)
    refusal = job.survey.fates[BASE].refusal
    assert refusal is not None
    assert refusal.status is Status.UNSUPPORTED
    assert "a session needs 999" in refusal.reason
    assert refusal.remedy == f"lower {key}, or add prompts"

"""Material conditions decide whether two arms are compared; the drafter's own settings do not."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
import run_builder
from report_runs import report_of

from orchestrator.report.analysis.ledger import MATERIAL, material_differences
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.result import Outcome


def condition(name: str, effective: str | None) -> Condition:
    return Condition(name, "asked", effective, Honoured.HONOURED, "echo")


@pytest.mark.parametrize(
    "name", ["temperature", "top_k", "samplers", "end_of_text", "context", "cache_type_k", "kv_bits", "threads",
             "flash_attention", "chat_template", "prompt_ids", "cache_prompt", "dtype"]
)  # fmt: skip
def test_a_material_setting_that_differs_is_named_with_both_values(name):
    found = material_differences([condition(name, "1")], [condition(name, "2")])
    assert [one.sentence for one in found] == [f"{name} 1, baseline 2"]
    assert material_differences([condition(name, "1")], [condition(name, "1")]) == ()


@pytest.mark.parametrize(
    "name", ["speculation", "draft_length", "draft_dtype", "verify_sampling", "seed", "penalty_window"]
)
def test_the_drafters_settings_and_remarks_decide_nothing(name):
    assert name not in MATERIAL
    assert material_differences([condition(name, "1")], [condition(name, "2")]) == ()


def test_what_one_side_does_not_tell_decides_nothing():
    assert material_differences([condition("top_k", None)], [condition("top_k", "2")]) == ()
    assert material_differences([condition("top_k", "1")], [condition("top_p", "2")]) == ()


def _report(path: Path, mine: str, base: str):
    block = run_builder.full_blocks()[0]
    cells = tuple(
        dataclasses.replace(spec, conditions=(condition("context", mine),))
        for spec in block.cells
        if spec.method.name == run_builder.DRAFT4.name
    )
    changed = dataclasses.replace(
        block, base=dataclasses.replace(block.base, conditions=(condition("context", base),)), cells=cells
    )
    return report_of(run_builder.write_run(path, (changed,), run_builder.IDENTITIES))


def test_a_cell_under_another_context_than_its_baseline_is_not_comparable_and_the_page_says_why(tmp_path):
    report = _report(tmp_path / "r", "4096", "2048")
    cell = next(one for one in report.analysis.cells if one.comparisons)
    assert cell.comparisons
    for row in cell.comparisons.values():
        assert row.outcome is Outcome.NOT_COMPARABLE
        assert row.reason == "conditions differ: context 4096, baseline 2048"
        assert row.ratio is None
    assert "conditions differ: context 4096, baseline 2048" in report.html


def test_the_same_cell_under_the_same_context_is_compared(tmp_path):
    report = _report(tmp_path / "r", "2048", "2048")
    cell = next(one for one in report.analysis.cells if one.comparisons)
    assert cell.comparisons["e2e_latency"].outcome is not Outcome.NOT_COMPARABLE

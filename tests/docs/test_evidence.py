"""The committed evidence: judged again from its raw answers, and the page computed again."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from orchestrator.schema.result import Verdict

ROOT = Path(__file__).resolve().parents[2]
SPEC = importlib.util.spec_from_file_location("make_evidence", ROOT / "scripts" / "make_evidence.py")
assert SPEC is not None
assert SPEC.loader is not None
evidence = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(evidence)
FILES = sorted((ROOT / "docs" / "evidence").glob("distribution-*.json"))


def test_each_group_is_there_but_the_long_one():
    assert {path.stem.removeprefix("distribution-") for path in FILES} >= set(evidence.GROUPS) - {"certify"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_check_comes_to_what_its_group_is_there_to_show(path):
    data = json.loads(path.read_text(encoding="utf-8"))
    found = evidence.verdicts(data)
    assert found
    for check, outcome in found:
        assert outcome.need is None, check["id"]
        assert outcome.results[0].verdict is Verdict(evidence.EXPECTED[data["group"]]), check["id"]
        on = [batch for batches in check["arms"]["on"].values() for batch in batches]
        assert sum(batch["b"] for batch in on) > 0, "no draft token was accepted"


def test_a_tampered_answer_is_noticed():
    data = json.loads(FILES[0].read_text(encoding="utf-8"))
    for batches in data["checks"][0]["arms"]["on"].values():
        for batch in batches:
            batch["ids"] = [
                [*one[:2], 5, *one[3:]] if place % 4 == 0 else one for place, one in enumerate(batch["ids"])
            ]
    assert evidence.verdicts(data)[0][1].results[0].verdict is Verdict.FAIL


def test_the_page_is_computed_from_the_files(monkeypatch):
    page = (ROOT / "docs" / "evidence" / "distribution.md").read_text(encoding="utf-8")
    assert page == evidence.page()

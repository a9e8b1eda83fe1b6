"""What a check will cost is planned without SciPy, by the very numbers that the check is made of."""

from __future__ import annotations

import dataclasses

from orchestrator.exactness import checking, contexts, distribution
from orchestrator.runner import check_plan
from orchestrator.runner.check_plan import PlannedCheck, prints_of
from orchestrator.runner.survey import CellFate
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.cell import (
    Cell,
    CheckCell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
)

BASE = Cell(
    EngineConfig("e", "a"),
    ModelConfig("m", "/m"),
    Method("none", MethodKind.NONE),
    Sampling("t", 0.8, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0),
    Workload("w", "demo-short", 64, EosPolicy.MASK),
)
CELL = dataclasses.replace(BASE, method=Method("d", MethodKind.DRAFT, 4, "x"))
CHECK = CheckCell(CELL, BASE, "screen")


def test_the_plans_numbers_are_the_checks_numbers():
    presets = {one.name: (one.per_arm, one.contexts) for one in (distribution.SCREEN, distribution.CERTIFY)}
    assert presets == check_plan.SIZES
    assert (check_plan.PILOT_CONTEXTS, check_plan.PILOT) == (contexts.CANDIDATES, contexts.PILOT)
    assert (check_plan.TOKENS, check_plan.COUPLED) == (checking.TOKENS, checking.COUPLED)


def test_generations_and_tokens_at_most():
    two = PlannedCheck("b", 1, True, BASE, "f", "screen", (CHECK, CHECK), 0, 0)
    # pilot 12 × 50; off, off again and the control 2 × 1 000 each, once; 2 × (1 000 + 100) for each check
    assert two.most_generations == 600 + 3 * 2_000 + 2 * 2_200
    assert two.most_tokens == 5 * two.most_generations
    resumed = dataclasses.replace(two, is_new=False, shared_done=4_500, own_done=600)
    assert resumed.most_generations == 1_500 + 3_800


def fates(**facts):
    claim = Claim(Rule.SAMPLE_MATCH, True, "test")
    return {cell.id: CellFate(cell, None, "x", claim, facts) for cell in (BASE, CELL)}


def test_a_check_outlives_a_change_of_how_often_the_wait_is_measured():
    known = prints_of(CHECK, fates(run="sessions=2", file="abc"))
    assert known == prints_of(CHECK, fates(run="sessions=8", file="abc"))
    assert known != prints_of(CHECK, fates(run="sessions=2", file="abd"))
    certify = dataclasses.replace(CHECK, preset="certify")
    assert known.base != prints_of(certify, fates(run="sessions=2", file="abc")).base
    assert known.own != known.base
    assert CHECK.id == "e/m/d/t/w~check"

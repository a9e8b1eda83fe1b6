"""The conclusions against numbers recomputed here from the journal's lines, by other means than the product's."""

from __future__ import annotations

import dataclasses
import json
import math
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median, stdev
from typing import Any

import pytest
import run_builder
from report_runs import Report, report_of

from orchestrator.exactness.groups import Mark
from orchestrator.report.analysis.findings import Advice, ReasonKind, Why
from orchestrator.schema.observation import Absence
from orchestrator.schema.result import Group, Outcome, Verdict
from orchestrator.schema.status import Status, Validity

T_975_3 = 3.182446305284263
"""Student's t, 97.5 %, 3 degrees of freedom: from a printed table."""
MLX = "mlx-lm/tiny/draft-k4/greedy/short"


def raw(report: Report, cell: str, metric: str, attempt: int) -> dict[tuple[int, str], float]:
    """(set, prompt) → value of the measured trials, straight from the journal's JSON."""
    found = {}
    for line in (report.path / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] != "trial" or row["phase"] != "measured":
            continue
        if row["place"]["cell"] != cell or row["place"]["attempt"] != attempt:
            continue
        for seen in row["observations"]:
            if seen["metric"] == metric and seen["value"] is not None:
                found[row["place"]["set_index"], row["prompt_id"]] = float(seen["value"])
    return found


def by_hand(on: dict[tuple[int, str], float], off: dict[tuple[int, str], float]) -> tuple[float, float, float]:
    """Ratio and 95 % interval: t over session means of paired log ratios."""
    assert on.keys() == off.keys()
    sessions = defaultdict(list)
    for (session, prompt), value in on.items():
        sessions[session].append(math.log(value / off[session, prompt]))
    logs = [mean(values) for values in sessions.values()]
    assert len(logs) == 4
    half = T_975_3 * stdev(logs) / 2
    return math.exp(mean(logs)), math.exp(mean(logs) - half), math.exp(mean(logs) + half)


@pytest.mark.parametrize("metric", ["e2e_latency", "ttft", "decode_rate", "time_to_32"])
def test_ratio_and_interval_are_those_computed_by_hand_from_the_newest_attempt(full: Report, metric: str) -> None:
    comparison = full.analysis.by_id(MLX).comparisons[metric]
    expected = by_hand(raw(full, MLX, metric, 2), raw(full, "mlx-lm/tiny/none/greedy/short", metric, 2))
    assert comparison.ratio is not None
    assert (comparison.ratio.point, comparison.ratio.low, comparison.ratio.high) == pytest.approx(expected, rel=1e-9)
    first = by_hand(raw(full, MLX, metric, 1), raw(full, "mlx-lm/tiny/none/greedy/short", metric, 1))
    assert comparison.ratio.point != pytest.approx(first[0], rel=1e-6)


def test_the_attempt_that_counts_is_the_newest_and_none_is_pooled_with_another(full: Report) -> None:
    found = full.analysis.by_id(MLX)
    assert found.state.attempt == 2
    assert found.summaries["e2e_latency"].n == 12
    assert found.summaries["e2e_latency"].median == pytest.approx(median(raw(full, MLX, "e2e_latency", 2).values()))


def test_acceptance_is_a_ratio_of_sums_and_the_drafts_add_up(full: Report) -> None:
    found = full.analysis.by_id(MLX)
    sums = {
        name: sum(raw(full, MLX, name, 2).values())
        for name in ("drafted_tokens", "accepted_tokens", "rejected_tokens", "discarded_tokens", "verify_rounds")
    }
    assert found.totals is not None
    assert found.acceptance is not None
    assert found.acceptance.point == pytest.approx(sums["accepted_tokens"] / sums["drafted_tokens"], rel=1e-12)
    told = (found.totals.drafted, found.totals.accepted, found.totals.refused, found.totals.discarded)
    assert told == tuple(sums[n] for n in ("drafted_tokens", "accepted_tokens", "rejected_tokens", "discarded_tokens"))
    assert found.totals.drafted == found.totals.accepted + (found.totals.refused or 0) + (found.totals.discarded or 0)
    assert found.totals.verify_rounds == sums["verify_rounds"]


def test_memory_is_compared_by_session(full: Report) -> None:
    found = full.analysis.by_id(MLX)
    assert found.summaries["peak_unified"].n == 4
    assert found.comparisons["peak_unified"].outcome is Outcome.HIGHER


def test_groups_follow_claim_and_check(full: Report) -> None:
    groups = {cell.id: cell.group for cell in full.analysis.cells}
    assert groups[MLX] is Group.EXACT
    assert groups["ds4/tiny/mtp/t0.8/short"] is Group.OPPORTUNISTIC
    assert groups["ds4/tiny/mtp-exact/t0.8/short"] is Group.UNPROVEN
    assert groups["ds4/tiny/mtp/greedy/short"] is Group.CONTRADICTED
    assert groups["mlx-lm/tiny/none/greedy/short"] is Group.BASELINE
    assert full.analysis.by_id(MLX).mark is Mark.PASSED
    assert full.analysis.by_id("llama.cpp/tiny/draft-k4/t0.8/short").mark is Mark.NOT_TESTED


def test_greedy_identity_counts_every_answer_and_finds_where_one_prompt_parts(full: Report) -> None:
    same = full.analysis.by_id(MLX).identity
    assert same is not None
    # 3 prompts × 4 sessions; the control is the other 3 sessions of the baseline and 4 of its twin, each × 3 prompts.
    assert (same.verdict, same.same, same.compared) == (Verdict.PASS, 12, 12)
    assert (same.control_same, same.control_compared) == (21, 21)
    parted = full.analysis.by_id("ds4/tiny/mtp/greedy/short").identity
    assert parted is not None
    assert (parted.verdict, parted.same, parted.compared) == (Verdict.FAIL, 8, 12)
    assert [(one.prompt_id, one.index) for one in parted.divergences] == [("p1", 12)]


def test_a_difference_that_nobody_vouches_for_is_no_contradiction(
    full: Report, tmp_path_factory: pytest.TempPathFactory
) -> None:
    blocks = tuple(block for block in run_builder.full_blocks() if block.engine.name == "ds4")
    path = run_builder.write_run(tmp_path_factory.mktemp("runs") / "open", blocks, run_builder.IDENTITIES)
    found = report_of(path).analysis.by_id("ds4/tiny/mtp/greedy/short")
    assert (found.group, found.mark) == (Group.EXACT, Mark.UNSETTLED)
    assert found.identity is not None
    assert found.identity.verdict is Verdict.UNINFORMATIVE


def test_coverage_counts_each_cell_once_and_leaves_out_twins(full: Report) -> None:
    counts = {status: len(ids) for status, ids in full.analysis.coverage}
    expected = {
        Status.OK: 14, Status.FAILED: 1, Status.UNSUPPORTED: 1, Status.UNAVAILABLE: 2, Status.NOT_ENGAGED: 1,
    }  # fmt: skip
    assert counts == expected


def test_validity_names_what_weighs(full: Report) -> None:
    assert full.analysis.validity is Validity.INCONCLUSIVE
    heavy = [one for one in full.analysis.reasons if one.effect is not Validity.VALID]
    assert {(one.kind, one.status) for one in heavy} == {
        (ReasonKind.BAD_CELLS, Status.NOT_ENGAGED),
        (ReasonKind.BAD_CELLS, Status.FAILED),
    }


def test_advice_rests_on_exact_cells_alone(full: Report) -> None:
    advice = {(one.engine, one.workload): one for one in full.analysis.recommendations}
    assert advice["mlx-lm", "short"].advice is Advice.ON
    # A slower cell does not settle it where another was not comparable, or is too noisy to be told.
    assert [(one.advice, one.why) for one in advice["llama.cpp", "short"].by_sampling] == [
        (Advice.UNKNOWN, Why.NOT_COMPARABLE), (Advice.UNKNOWN, Why.TOO_NOISY),
    ]  # fmt: skip
    # ds4's fastest cells are opportunistic, unproven or contradicted: none of them is ever advised.
    assert [(one.advice, one.why) for one in advice["ds4", "short"].by_sampling] == [
        (Advice.UNKNOWN, Why.NOT_EXACT)
    ] * 2
    assert [one.why for one in advice["omlx", "short"].by_sampling] == [Why.NOTHING_MEASURED]


def test_two_sessions_give_a_range_and_no_verdict(tmp_path_factory: pytest.TempPathFactory) -> None:
    block = dataclasses.replace(run_builder.full_blocks()[2], sets=2, attempts=1)
    path = run_builder.write_run(tmp_path_factory.mktemp("runs") / "two", (block,), run_builder.IDENTITIES)
    found = report_of(path).analysis
    wait = found.by_id(MLX).wait
    assert wait is not None
    assert wait.outcome is Outcome.RANGE_ONLY
    assert [part.why for one in found.recommendations for part in one.by_sampling] == [Why.TOO_FEW]
    assert found.validity is Validity.INCONCLUSIVE


def test_a_shorter_answer_does_not_count_as_less_waiting(tmp_path_factory: pytest.TempPathFactory) -> None:
    block = run_builder.full_blocks()[2]
    shorter = dataclasses.replace(block.cells[0], shorter=0.7)
    block = dataclasses.replace(block, cells=(shorter,), attempts=1)
    path = run_builder.write_run(tmp_path_factory.mktemp("runs") / "short", (block,), run_builder.IDENTITIES)
    found = report_of(path).analysis.by_id(MLX)
    assert found.comparisons["e2e_latency"].outcome is Outcome.NOT_COMPARABLE
    assert "length" in found.comparisons["e2e_latency"].reason
    assert found.headline == f"time_to_{found.longest_n}"
    assert found.wait is not None
    assert found.wait.ratio is not None


def test_a_baseline_has_no_drafting_figures_and_a_silent_engine_says_so(full: Report) -> None:
    base = full.analysis.by_id("ds4/tiny/none/t0.8/short")
    assert base.missing["acceptance_rate"].absence is Absence.NOT_APPLICABLE
    silent = full.analysis.by_id("ds4/tiny/mtp-exact/t0.8/short")
    assert silent.missing["verify_rounds"].absence is Absence.NOT_REPORTED
    assert silent.totals is None
    failed = full.analysis.by_id("llama.cpp/tiny/mtp/t0.8/short")
    assert failed.missing["e2e_latency"].absence is Absence.FAILED
    away = full.analysis.by_id("omlx/tiny/mtp/greedy/short")
    assert away.missing["e2e_latency"].absence is Absence.NOT_RUN


def test_an_interrupted_cell_is_not_compared(interrupted: Report) -> None:
    found = interrupted.analysis.by_id(MLX)
    assert found.state.status is Status.ABORTED
    assert found.summaries["e2e_latency"].n == 3
    assert {row.outcome for row in found.comparisons.values()} == {Outcome.NOT_COMPARABLE}
    assert interrupted.analysis.validity is Validity.INCONCLUSIVE


def test_an_alarming_twin_takes_the_verdict_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    path = run_builder.write_run(
        tmp_path_factory.mktemp("runs") / "alarm", (run_builder.full_blocks()[2],), run_builder.IDENTITIES
    )
    slowed = []
    for line in (path / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] == "trial" and row["place"]["cell"].endswith("~twin"):
            for seen in row["observations"]:
                if seen["metric"] == "e2e_latency":
                    seen["value"] *= 1.5
        slowed.append(json.dumps(row) + "\n")
    (path / "journal.jsonl").write_text("".join(slowed), encoding="utf-8")
    found = report_of(path).analysis
    assert [part.why for one in found.recommendations for part in one.by_sampling] == [Why.A_A]
    assert [one.kind for one in found.reasons if one.effect is Validity.INCONCLUSIVE] == [ReasonKind.A_A]
    waits = [cell.comparisons["e2e_latency"] for cell in found.cells if "e2e_latency" in cell.comparisons]
    assert [wait.outcome for wait in waits] == [Outcome.NOT_COMPARABLE]
    assert waits[0].reason.startswith("A/A ")


def edited(path: Path, change: Callable[[dict[str, Any]], None]) -> Report:
    """The report of a run after each of its trial lines was changed."""
    lines = []
    for line in (path / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] == "trial":
            change(row)
        lines.append(json.dumps(row) + "\n")
    (path / "journal.jsonl").write_text("".join(lines), encoding="utf-8")
    return report_of(path)


def test_late_stamps_take_the_first_answer_and_the_rate_out_of_comparison_but_not_the_end(tmp_path: Path) -> None:
    def spoil(row: dict[str, Any]) -> None:
        if row["place"]["cell"] == MLX and row["prompt_id"] == "p1":
            row["problems"] = [f"our decode rate and the engine's disagree: {row['place']['set_index']}.5 and 9.1"]

    path = run_builder.write_run(tmp_path / "late", (run_builder.full_blocks()[2],), run_builder.IDENTITIES)
    found = edited(path, spoil)
    comparisons = found.analysis.by_id(MLX).comparisons
    refused = {metric for metric, row in comparisons.items() if row.outcome is Outcome.NOT_COMPARABLE}
    assert refused == {"ttft", "decode_rate", "time_to_16", "time_to_32"}
    assert comparisons["ttft"].reason.startswith("4 of 12 answers of the cell break an invariant")
    problems = [one for one in found.analysis.reasons if one.kind is ReasonKind.PROBLEMS]
    assert [(one.about, one.answers, one.effect) for one in problems] == [((MLX,), 4, Validity.INCONCLUSIVE)]
    assert "4 answers break an invariant" in found.html


def test_an_interval_too_wide_to_see_a_tenth_advises_nothing(tmp_path: Path) -> None:
    factors = {0: 0.7, 1: 1.4, 2: 0.8, 3: 1.35}

    def blur(row: dict[str, Any]) -> None:
        if row["place"]["cell"] == MLX:
            for seen in row["observations"]:
                if seen["metric"] == "e2e_latency":
                    seen["value"] *= factors[row["place"]["set_index"]] / 0.72

    path = run_builder.write_run(tmp_path / "blur", (run_builder.full_blocks()[2],), run_builder.IDENTITIES)
    found = edited(path, blur)
    wait = found.analysis.by_id(MLX).wait
    assert wait is not None
    assert wait.outcome is Outcome.NO_DIFFERENCE
    advice = [(part.advice, part.why) for one in found.analysis.recommendations for part in one.by_sampling]
    assert advice == [(Advice.UNKNOWN, Why.TOO_NOISY)]
    assert [one.word for one in found.view.decisions] == ["Cannot say"]

"""Acceptance by position and category, the speed-up model, sweeps and warnings: from records to summary.json."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import run_builder
from report_runs import Report, report_of

from orchestrator.report.data.summary import summary_data
from orchestrator.schema.cell import Method, MethodKind
from orchestrator.schema.metrics import VOCABULARY

LLAMA = "llama.cpp/tiny/draft-k4/greedy/short"
NGRAM = "llama.cpp/tiny/ngram/greedy/short"


def observation(metric: str, value: object, note: str | None = None) -> dict[str, Any]:
    known = VOCABULARY[metric]
    return {
        "metric": metric, "value": value, "unit": known.unit.value, "clock": known.clock.value, "source": "test",
        "definition": known.id, "absent": None, "note": note,
    }  # fmt: skip


def put(row: dict[str, Any], metric: str, value: object, note: str | None = None) -> None:
    row["observations"] = [one for one in row["observations"] if one["metric"] != metric]
    row["observations"].append(observation(metric, value, note))


def edited(path: Path, blocks: tuple[run_builder.BlockSpec, ...], change: Callable[[dict[str, Any]], None]) -> Report:
    run_builder.write_run(path, blocks, run_builder.IDENTITIES)
    lines = []
    for line in (path / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        change(row)
        lines.append(json.dumps(row) + "\n")
    (path / "journal.jsonl").write_text("".join(lines), encoding="utf-8")
    return report_of(path)


def values(row: dict[str, Any]) -> dict[str, Any]:
    return {one["metric"]: one["value"] for one in row["observations"] if one["value"] is not None}


def counted(row: dict[str, Any]) -> None:
    """Passes, positions and a category for every trial that drafted, and a drafter's total for its session."""
    if row["kind"] == "session" and row["place"]["cell"] == LLAMA:
        put(row, "draft_time", 0.4, "over all requests of the process, warm-up included; a lower bound")
    if row["kind"] != "trial":
        return
    row["category"] = "code" if row["prompt_id"] == "p1" else "prose"
    seen = values(row)
    if "drafted_tokens" in seen:
        passes = len(row["arrival_curve"]) - 1
        put(row, "target_passes", passes)
        put(row, "tokens_per_pass", (len(row["token_ids"]) - 1) / passes)
        rounds, accepted = seen["verify_rounds"], seen["accepted_tokens"]
        # Positions that any run of rounds with these sums can have: as many accepted as early as possible.
        first = min(rounds, accepted)
        second = min(first, accepted - first)
        third = min(second, accepted - first - second)
        put(row, "drafted_by_position", [rounds, rounds, rounds, rounds])
        put(row, "accepted_by_position", [first, second, third, accepted - first - second - third])


def block() -> run_builder.BlockSpec:
    """The first block, its drafting cell under the same conditions as its baseline."""
    first = run_builder.full_blocks()[0]
    draft, *others = first.cells
    return dataclasses.replace(first, cells=(dataclasses.replace(draft, conditions=()), *others))


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return edited(tmp_path_factory.mktemp("runs") / "drafting", (block(),), counted)


def sums(report: Report, cell: str, *, phases: tuple[str, ...] = ("measured",), category: str = "") -> dict[str, float]:
    total: dict[str, float] = {}
    for line in (report.path / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["kind"] != "trial" or row["place"]["cell"] != cell or row["phase"] not in phases:
            continue
        if category and row["category"] != category:
            continue
        for metric, value in values(row).items():
            if isinstance(value, int | float):
                total[metric] = total.get(metric, 0.0) + value
        total["emitted"] = total.get("emitted", 0.0) + len(row["token_ids"]) - 1
    return total


def test_acceptance_by_category_is_a_ratio_of_sums_over_its_prompts(found: Report) -> None:
    drafting = found.analysis.by_id(LLAMA).drafting
    assert drafting is not None
    assert {one.category for one in drafting.categories} == {"code", "prose"}
    for one in drafting.categories:
        expected = sums(found, LLAMA, category=one.category)
        assert one.rate is not None
        assert one.rate.point == pytest.approx(expected["accepted_tokens"] / expected["drafted_tokens"], rel=1e-12)
        assert one.totals is not None
        assert (one.totals.drafted, one.totals.accepted, one.totals.refused) == tuple(
            expected[name] for name in ("drafted_tokens", "accepted_tokens", "rejected_tokens")
        )
        assert one.rate.low is None  # one and two prompts: no interval
    assert drafting.rate is not None
    assert drafting.rate.low is not None


def test_acceptance_by_position_both_ways_and_whether_it_is_flat(found: Report) -> None:
    drafting = found.analysis.by_id(LLAMA).drafting
    assert drafting is not None
    rounds, accepted = (sums(found, LLAMA)[name] for name in ("verify_rounds", "accepted_tokens"))
    assert [one.position for one in drafting.positions] == [1, 2, 3, 4]
    assert all(one.drafted == rounds for one in drafting.positions)
    assert sum(one.accepted for one in drafting.positions) == accepted
    second = drafting.positions[1]
    assert second.unconditional == pytest.approx(second.accepted / rounds)
    assert second.conditional_low == pytest.approx(second.accepted / drafting.positions[0].accepted)
    assert drafting.flat_p is not None
    assert 0 <= drafting.flat_p <= 1


def test_the_model_solves_for_the_verify_pass_and_predicts_from_judged_tokens(found: Report) -> None:
    cell = found.analysis.by_id(LLAMA)
    model, mine = cell.decomposition, sums(found, LLAMA)
    rate = cell.comparisons["decode_rate"].ratio
    assert model is not None
    assert rate is not None
    assert model.tokens_per_pass == pytest.approx(mine["emitted"] / mine["target_passes"])
    assert model.mean_draft_length == pytest.approx(mine["drafted_tokens"] / mine["target_passes"])
    # The drafter's seconds cover the warm-up too, so that its passes count: 4 sessions of 0.4 s.
    every = sums(found, LLAMA, phases=("measured", "warmup"))["target_passes"]
    plain_s = cell.baseline_summaries["tpot"].median
    assert model.draft_cost == pytest.approx(4 * 0.4 / every / plain_s)
    assert model.tokens_per_pass / (model.draft_cost + model.verify_cost_high) == pytest.approx(rate.point)
    assert "lower bound" in model.note
    alpha = mine["accepted_tokens"] / (mine["accepted_tokens"] + mine["rejected_tokens"])
    assert model.judged_alpha == pytest.approx(alpha)
    assert model.predicted_tokens == pytest.approx((1 - alpha ** (model.mean_draft_length + 1)) / (1 - alpha), rel=1e-9)
    assert model.predicted_speedup == pytest.approx(model.predicted_tokens / (1 + model.draft_cost))
    assert model.model_words().startswith("model (every judged token accepted with one chance, ")


def test_an_ngram_drafter_without_a_time_is_taken_as_free(found: Report) -> None:
    model = found.analysis.by_id(NGRAM).decomposition
    assert model is not None
    assert (model.draft_cost, model.note) == (0.0, "")
    assert model.verify_cost_low == model.verify_cost_high


def test_impossible_counts_cost_the_rate_and_not_the_report(tmp_path: Path) -> None:
    def spoil(row: dict[str, Any]) -> None:
        counted(row)
        if row["kind"] == "trial" and row["place"]["cell"] == LLAMA:
            put(row, "accepted_by_position", [1, 2])

    cell = edited(tmp_path / "spoilt", (block(),), spoil).analysis.by_id(LLAMA)
    assert cell.drafting is not None
    assert (cell.drafting.rate, cell.acceptance, cell.drafting.positions) == (None, None, ())
    assert "no run of rounds gives these counts" in cell.drafting.problem
    assert cell.comparisons["e2e_latency"].ratio is not None


def test_a_sweep_names_its_best_length_and_how_sure_that_is(tmp_path: Path) -> None:
    swept = run_builder.full_blocks()[2]
    spec = swept.cells[0]
    k8 = Method("draft-k8", MethodKind.DRAFT, 8, "tiny")
    cells = (spec, dataclasses.replace(spec, method=k8, drafts=8, pass_s=0.09))
    swept = dataclasses.replace(swept, cells=cells, attempts=1)
    report = edited(tmp_path / "sweep", (swept,), lambda _: None)
    (sweep,) = report.analysis.sweeps
    assert (sweep.drafter, sweep.lengths, sweep.best, sweep.clear, sweep.confirmed) == (
        "draft tiny", (4, 8), 4, True, False,
    )  # fmt: skip
    assert sweep.words() == (
        "best measured draft length: K = 4 of 4, 8, not confirmed in fresh sessions; "
        "its interval stands clear of the others'"
    )


def test_summary_json_holds_every_conclusion(found: Report) -> None:
    data = json.loads(json.dumps(summary_data(found.analysis, found.header), allow_nan=False))
    cell = next(one for one in data["cells"] if one["id"] == LLAMA)
    assert [one["position"] for one in cell["acceptance"]["by_position"]] == [1, 2, 3, 4]
    assert {one["category"] for one in cell["acceptance"]["by_category"]} == {"code", "prose"}
    assert (
        cell["speedup_model"]["break_even_acceptance"]
        == found.analysis.by_id(LLAMA).decomposition.break_even_acceptance
    )
    wait = cell["comparisons"]["e2e_latency"]
    assert wait["sessions_more"] == max(0, wait["sessions_needed"] - wait["ratio"]["n"])
    assert set(cell["comparisons"]) >= {"e2e_latency", "time_to_32", "ttft", "decode_rate", "peak_unified"}
    assert data["sweeps"] == []
    assert {part["confirmed"] for one in data["recommendations"] for part in one["by_sampling"]} == {None}


def test_warnings_of_every_kind_are_told_once_beside_the_sentence(tmp_path: Path) -> None:
    def trouble(row: dict[str, Any]) -> None:
        if row["kind"] != "trial" or row["place"]["cell"] != "mlx-lm/tiny/draft-k4/greedy/short":
            return
        number = row["place"]["set_index"]
        for one in row["observations"]:
            if one["metric"] == "e2e_latency":
                one["value"] *= 1 + 0.06 * number

    drifting = dataclasses.replace(run_builder.full_blocks()[2], attempts=1)
    report = edited(tmp_path / "drift", (drifting,), trouble)
    cell = report.analysis.by_id("mlx-lm/tiny/draft-k4/greedy/short")
    assert "drift" in {flag.kind.value for flag in cell.flags}
    sentences = [one for group in report.view.sentences for one in group.sentences]
    assert sum("drift:" in one.note for one in sentences) == 1

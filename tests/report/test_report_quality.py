"""Graded and broken answers in the conclusions, on the page and in the data, against numbers counted here by hand."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import run_builder
from report_runs import Report, report_of
from run_builder import DRAFT4, LLAMA, NGRAM, SAMPLE, SHORT, TINY, WARM, BlockSpec, Spec

from orchestrator.report.analysis.findings import Advice, ReasonKind
from orchestrator.report.data.quality import categories_csv
from orchestrator.report.data.summary import summary_data
from orchestrator.report.language.words import Words
from orchestrator.report.output.markdown import report_markdown
from orchestrator.report.output.render import render_html
from orchestrator.report.output.write import write_report
from orchestrator.report.page.view import build_view
from orchestrator.schema.codec import dump_record, load_record
from orchestrator.schema.record import Phase, TrialGrade, TrialRecord
from orchestrator.schema.result import Outcome
from orchestrator.schema.status import Validity

LOOP = "loop: the last 200 of 210 characters repeat 'a '"
BASE = "llama.cpp/tiny/none/greedy/short"
DRAFT = "llama.cpp/tiny/draft-k4/greedy/short"
Change = Callable[[TrialRecord], TrialRecord]


def run_with(folder: Path, change: Change, *, sampling: object = run_builder.GREEDY, prompts: int = 3) -> Report:
    """A run of a baseline, its twin, a faster draft and an n-gram, each trial of it changed as told."""
    block = BlockSpec(
        LLAMA, TINY, sampling, SHORT, Spec(), prompts=prompts,
        cells=(Spec(DRAFT4, 0.012, drafts=4, claim=SAMPLE), Spec(NGRAM, 0.018, drafts=4, take=0.2, claim=SAMPLE)),
    )  # type: ignore[arg-type]  # fmt: skip
    path = run_builder.write_run(folder, [block], {})
    journal = path / "journal.jsonl"
    records = [load_record(line, "test") for line in journal.read_text(encoding="utf-8").splitlines()]
    changed = [change(one) if isinstance(one, TrialRecord) else one for one in records]
    journal.write_text("".join(map(dump_record, changed)), encoding="utf-8")
    return report_of(path)


def nothing(trial: TrialRecord) -> TrialRecord:
    return trial


def grade(*, valid: bool | None = True, correct: bool | None = True, task: str = "d0") -> TrialGrade:
    return TrialGrade(task, "numeric", valid, correct, "")


def eight_tasks(trial: TrialRecord) -> TrialRecord:
    """Off answers p1 to p7 rightly, the draft p1 only; p8 is never well formed; odd prompts are sums."""
    number = int(trial.prompt_id[1:]) if trial.phase is Phase.MEASURED else 0
    drafted = trial.place.cell == DRAFT
    found = grade(valid=number != 8, correct=number == 1 or (number < 8 and not drafted), task=f"d{number}")
    return dataclasses.replace(trial, category="sums" if number % 2 else "prose", grade=found)


def broken_where(told: Callable[[TrialRecord], bool], what: str = LOOP) -> Change:
    def change(trial: TrialRecord) -> TrialRecord:
        return dataclasses.replace(trial, degenerate=what) if told(trial) else trial

    return change


@pytest.fixture(scope="module")
def graded(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return run_with(tmp_path_factory.mktemp("quality") / "graded", eight_tasks, prompts=8)


def test_prompts_are_counted_once_and_tested_exactly(graded: Report) -> None:
    quality = graded.analysis.by_id(DRAFT).quality
    assert quality is not None
    assert (quality.answers, quality.graded) == (32, 32)
    assert quality.correct is not None
    assert quality.valid is not None
    right, form = quality.correct, quality.valid
    assert (right.n, right.on, right.off, right.lost, right.gained, right.trials_on) == (8, 1, 7, 6, 0, 32)
    assert right.p_value == pytest.approx(2 / 64)
    assert (form.n, form.on, form.off, form.lost, form.p_value) == (8, 7, 7, 0, 1.0)
    other = graded.analysis.by_id("llama.cpp/tiny/ngram/greedy/short").quality
    assert other is not None
    assert other.correct is not None
    assert (other.correct.on, other.correct.off, other.correct.lost) == (7, 7, 0)


def test_each_category_has_its_own_wait_acceptance_and_answers(graded: Report) -> None:
    found = graded.analysis.by_id(DRAFT)
    assert found.quality is not None
    sums, prose = found.quality.by_category
    assert (sums.category, prose.category, sums.answers, prose.answers) == ("sums", "prose", 16, 16)
    assert sums.correct is not None
    assert (sums.correct.on, sums.correct.off, sums.correct.n) == (1, 4, 4)
    assert sums.wait is not None
    assert prose.wait is not None
    whole = found.comparisons["e2e_latency"].ratio
    assert whole is not None
    # Both categories have as many prompts, so the whole is their geometric mean.
    assert (sums.wait.point * prose.wait.point) ** 0.5 == pytest.approx(whole.point)
    rows = {
        row["category"]: row
        for row in csv.DictReader(io.StringIO(categories_csv(graded.analysis)))
        if row["cell"] == DRAFT
    }
    for name in ("sums", "prose"):
        drafted, accepted = (
            sum(
                int(item.value)  # type: ignore[arg-type]
                for trial in found.state.trials
                if trial.category == name and trial.phase is Phase.MEASURED
                for item in trial.observations
                if item.metric == metric
            )
            for metric in ("drafted_tokens", "accepted_tokens")
        )
        assert (rows[name]["drafted"], rows[name]["accepted"]) == (str(drafted), str(accepted))
        assert float(rows[name]["acceptance"]) == pytest.approx(accepted / drafted)
    assert rows["sums"]["correct_lost"] == "3"


def test_page_markdown_and_json_show_them(graded: Report) -> None:
    page, text = graded.html, report_markdown(graded.view, Words())
    for shown in (page, text):
        assert "right answers 1/8, without it 7/8" in shown.replace("*", "")
        assert "6 lost, 0 gained" in shown
        assert "p = 0.031" in shown
        assert "≥ 92 %" in shown.replace("\u00a0", " ").replace("\u202f", " ")
        assert "of 7 right without it" in shown
        assert "0 undetermined" in shown
        assert "by category of prompt, without a verdict" in shown
    data = summary_data(graded.analysis, graded.header)
    cell = next(one for one in data["cells"] if one["id"] == DRAFT)
    assert cell["quality"]["correct"]["lost"] == 6
    # Seven were right without it, and six of them must be lost to show: 7 p⁶ (1 − p) + p⁷ = 0.9 at p = 0.9212.
    assert cell["quality"]["correct"]["losable"] == 7
    assert cell["quality"]["correct"]["detectable"] == pytest.approx(0.9212, abs=1e-3)
    assert cell["quality"]["correct"]["net_loss_limit"] == pytest.approx(0.9681, abs=1e-3)
    assert [one["category"] for one in cell["quality"]["by_category"]] == ["sums", "prose"]
    json.dumps(data, allow_nan=False)


def test_an_answer_cut_while_it_was_right_is_a_loss_beside_a_wrong_one(tmp_path: Path) -> None:
    """p1 is cut and right so far on both sides, p2 and p3 without speculation only: with it they are wrong."""
    so_far = TrialGrade("d0", "exact", True, None, "right as far as it goes", so_far=True)

    def change(trial: TrialRecord) -> TrialRecord:
        cut = trial.prompt_id == "p1" or trial.place.cell != DRAFT
        return dataclasses.replace(trial, grade=so_far if cut else grade(correct=False))

    report = run_with(tmp_path / "cut", change)
    quality = report.analysis.by_id(DRAFT).quality
    assert quality is not None
    assert quality.correct is not None
    found = quality.correct
    assert (found.n, found.on, found.open_on, found.off, found.open_off) == (3, 0, 1, 0, 3)
    assert (found.lost, found.gained, found.undetermined) == (2, 0, 1)
    plain = report.html.replace("\u00a0", " ").replace("\u202f", " ")
    assert "0 % to 33 %" in plain
    assert "1 undetermined" in plain


def test_a_task_that_judges_the_form_alone_has_no_right_answers(tmp_path: Path) -> None:
    def change(trial: TrialRecord) -> TrialRecord:
        untold = trial.place.cell == DRAFT and trial.prompt_id == "p1" and trial.place.set_index == 0
        return dataclasses.replace(trial, grade=grade(valid=None if untold else True, correct=None))

    report = run_with(tmp_path / "form", change)
    quality = report.analysis.by_id(DRAFT).quality
    assert quality is not None
    assert quality.correct is None
    assert quality.valid is not None
    assert quality.valid.on == 3
    assert "of 3 well formed without it" in report.html


def test_nothing_that_could_be_judged_is_said_so(tmp_path: Path) -> None:
    def change(trial: TrialRecord) -> TrialRecord:
        return dataclasses.replace(trial, grade=grade(valid=None, correct=None))

    report = run_with(tmp_path / "untold", change)
    quality = report.analysis.by_id(DRAFT).quality
    assert quality is not None
    assert quality.correct is not None
    assert (quality.correct.n, quality.correct.undetermined, quality.correct.net_loss_limit) == (0, 3, None)
    assert "None of these answers could be judged." in report.html
    assert "right answers" not in report.html
    json.dumps(summary_data(report.analysis, report.header), allow_nan=False)


def test_drawn_answers_are_shown_by_their_mean_rates(tmp_path: Path) -> None:
    cell = DRAFT.replace("greedy", "t0.8")

    def change(trial: TrialRecord) -> TrialRecord:
        """Of four sessions the draft answers one rightly and the baseline three: majorities would say none and all."""
        right = trial.place.set_index < (1 if trial.place.cell == cell else 3)
        return dataclasses.replace(trial, grade=grade(correct=right))

    report = run_with(tmp_path / "rates", change, sampling=WARM, prompts=6)
    quality = report.analysis.by_id(cell).quality
    assert quality is not None
    assert quality.correct is not None
    found = quality.correct
    assert (found.on / found.n, found.off / found.n) == (0.25, 0.75)
    assert (found.test, found.p_value) == ("sign flip", 2 / 2**6)
    plain = report.html.replace("\u00a0", " ").replace("\u202f", " ").replace("**", "")
    assert "25 %" in plain
    assert "mean of 6 prompts" in plain


def test_a_run_without_tasks_says_so(tmp_path: Path) -> None:
    report = run_with(tmp_path / "none", nothing)
    assert "No prompt of this run states a task" in report.html
    quality = report.analysis.by_id(DRAFT).quality
    assert quality is not None
    assert (quality.graded, quality.valid, quality.correct) == (0, None, None)
    assert "right answers" not in report.html


def test_a_grade_is_not_held_against_another_tasks(tmp_path: Path) -> None:
    def two_tasks(trial: TrialRecord) -> TrialRecord:
        return dataclasses.replace(trial, grade=grade(task="new" if trial.place.cell == DRAFT else "old"))

    quality = run_with(tmp_path / "two", two_tasks).analysis.by_id(DRAFT).quality
    assert quality is not None
    assert quality.graded == 12
    assert quality.correct is None


def test_a_fast_broken_run_is_not_ranked_and_says_so(tmp_path: Path) -> None:
    report = run_with(tmp_path / "broken", broken_where(lambda trial: trial.place.cell == DRAFT))
    found = report.analysis.by_id(DRAFT)
    why = "12 of 12 answers are no answer (loop) where the baseline's are: a broken run is not ranked"
    assert {(row.outcome, row.reason, row.ratio) for row in found.comparisons.values()} == {
        (Outcome.NOT_COMPARABLE, why, None)
    }
    assert found.quality is not None
    assert (found.quality.broken.on, found.quality.broken.off, found.quality.broken.both) == (12, 0, 0)
    assert report.analysis.validity is Validity.INCONCLUSIVE
    reason = next(one for one in report.analysis.reasons if one.kind is ReasonKind.BROKEN_ANSWERS)
    assert (reason.about, reason.detail) == ((DRAFT,), why)
    best = report.analysis.recommendations[0].by_sampling[0].best
    assert best is None or best.id != DRAFT
    assert "Not ranked, and no verdict on its speed." in report.html
    assert "12 of 12 answers are no answer (loop)" in report.html
    sound = run_with(tmp_path / "sound", nothing)
    assert sound.analysis.by_id(DRAFT).comparisons["e2e_latency"].outcome is Outcome.LOWER
    assert sound.analysis.recommendations[0].by_sampling[0].advice is Advice.ON


def test_what_the_baseline_does_too_is_the_model_and_both_are_shown(tmp_path: Path) -> None:
    report = run_with(tmp_path / "model", broken_where(lambda trial: trial.prompt_id in ("p1", "p2")))
    found = report.analysis.by_id(DRAFT)
    assert found.comparisons["e2e_latency"].outcome is Outcome.LOWER
    assert found.quality is not None
    broken = found.quality.broken
    assert (broken.on, broken.off, broken.both, broken.alone_on, broken.refusal) == (8, 8, 8, 0, "")
    assert "8 of 12 answers are no answer, 8 without it (loop)" in report.html
    assert "8 of them are broken the same way without it: that is the model" in report.html
    assert all(one.kind is not ReasonKind.BROKEN_ANSWERS for one in report.analysis.reasons)


def test_broken_otherwise_than_the_baseline_is_not_the_model(tmp_path: Path) -> None:
    def change(trial: TrialRecord) -> TrialRecord:
        what = "empty: 0 characters, none of them visible" if trial.place.cell == DRAFT else LOOP
        return dataclasses.replace(trial, degenerate=what)

    found = run_with(tmp_path / "other", change).analysis.by_id(DRAFT)
    assert found.comparisons["e2e_latency"].reason == (
        "12 of 12 answers are no answer, otherwise than the baseline's: not ranked"
    )


def test_a_broken_baseline_is_nothing_to_compare_with(tmp_path: Path) -> None:
    report = run_with(tmp_path / "base", broken_where(lambda trial: "/none/" in trial.place.cell))
    assert report.analysis.by_id(DRAFT).comparisons["e2e_latency"].reason == (
        "12 of 12 answers of the baseline are no answer where the cell's are: nothing to compare with"
    )


@pytest.mark.parametrize(("broken", "refused"), [(1, False), (2, False), (3, True)])
def test_drawn_answers_may_go_astray_now_and_then(tmp_path: Path, broken: int, refused: bool) -> None:
    cell = DRAFT.replace("greedy", "t0.8")

    def told(trial: TrialRecord) -> bool:
        return trial.place.cell == cell and trial.prompt_id == "p1" and trial.place.set_index < broken

    found = run_with(tmp_path / "drawn", broken_where(told), sampling=WARM).analysis.by_id(cell)
    assert found.quality is not None
    assert found.quality.broken.on == broken
    assert (found.comparisons["e2e_latency"].outcome is Outcome.NOT_COMPARABLE) is refused
    # Greedy answers repeat themselves: the same number is too many there from two on.
    greedy = run_with(
        tmp_path / "greedy",
        broken_where(lambda t: t.place.cell == DRAFT and t.prompt_id == "p1" and t.place.set_index < broken),
    ).analysis.by_id(DRAFT)
    assert (greedy.comparisons["e2e_latency"].outcome is Outcome.NOT_COMPARABLE) is (broken >= 2)


def test_the_page_is_korean_throughout(tmp_path: Path) -> None:
    def change(trial: TrialRecord) -> TrialRecord:
        trial = eight_tasks(trial)
        loops = trial.place.cell == DRAFT or trial.prompt_id == "p2"
        return dataclasses.replace(trial, degenerate=LOOP if loops else "")

    report = run_with(tmp_path / "ko", change, prompts=8)
    words = Words("ko")
    page = render_html(build_view(report.analysis, report.header, report.index, "ko", words), words)
    section = page[page.index('id="quality"') : page.index('id="evidence"')]
    for told in ("정답", "답변 아님", "되풀이", "프롬프트 범주별", "맥니마"):
        assert told in section
    for left in ("answer", "prompt", "lost", "gained", "broken", "ranked", "baseline", "loop", "well formed", "right"):
        assert f" {left} " not in section


def test_the_file_of_categories_stands_beside_the_page(graded: Report) -> None:
    write_report(graded.path)
    text = (graded.path / "categories.csv").read_text(encoding="utf-8")
    assert text == categories_csv(graded.analysis)
    assert [row["category"] for row in csv.DictReader(io.StringIO(text))] == ["sums", "prose"] * 2
    assert 'href="categories.csv"' in graded.html


def test_names_from_files_do_nothing_on_the_page_or_in_a_spreadsheet(tmp_path: Path) -> None:
    def change(trial: TrialRecord) -> TrialRecord:
        hostile = "=1+1<script>alert(1)</script>\u202e" if trial.prompt_id == "p1" else "plain"
        return dataclasses.replace(
            trial, category=hostile, degenerate="loop: <b>\u202e" if trial.prompt_id == "p2" else ""
        )

    report = run_with(tmp_path / "hostile", change)
    assert "<script>alert(1)" not in report.html
    assert "loop: <b>" not in report.html
    assert "\u202e" not in report.html
    assert any(line.split(",")[1].startswith("'=1+1") for line in categories_csv(report.analysis).splitlines()[1:])


def test_a_baseline_left_alone_shows_its_answers_too(tmp_path: Path) -> None:
    path = run_builder.write_run(
        tmp_path / "alone", [BlockSpec(LLAMA, TINY, run_builder.GREEDY, SHORT, Spec(), ())], {}
    )
    journal = path / "journal.jsonl"
    records = [load_record(line, "test") for line in journal.read_text(encoding="utf-8").splitlines()]
    told = [dataclasses.replace(one, grade=grade()) if isinstance(one, TrialRecord) else one for one in records]
    journal.write_text("".join(map(dump_record, told)), encoding="utf-8")
    report = report_of(path)
    (section,) = report.view.quality
    assert section.key == "baseline"
    assert [view.main for view in section.tables[0].rows[0].cells] == ["3/3", "3/3", "–", "0/12"]
    assert report.view.no_task == ""

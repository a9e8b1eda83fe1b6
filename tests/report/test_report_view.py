"""What the page says: words that follow from the figures, and absences that are spelled out."""

from __future__ import annotations

import shlex
from pathlib import Path

import run_builder
from report_runs import Report, report_of

from orchestrator.report.language.numerals import interval, ratio
from orchestrator.report.language.words import plain
from orchestrator.report.model.parts import CellSentence, RowView, TableView
from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.status import STATUS_RULES

NBSP = "\u00a0"
MLX = "mlx-lm/tiny/draft-k4/greedy/short"


def said(one: CellSentence) -> str:
    return "; ".join(plain(clause.rich) for clause in one.clauses).replace(NBSP, " ")


def sentence_of(report: Report, cell: str) -> CellSentence:
    return next(one for group in report.view.sentences for one in group.sentences if one.cell == cell)


def tables(report: Report) -> list[tuple[str, TableView]]:
    return [(group.key, panel.table) for group in report.view.groups for panel in group.panels]


def row_of(report: Report, anchor: str) -> RowView:
    return next(row for _, table in tables(report) for row in table.rows if row.anchor == anchor)


def test_the_sentence_tells_wait_first_answer_decode_answers_and_memory(full: Report) -> None:
    found = full.analysis.by_id(MLX)
    wait, first, decode = (found.comparisons[m].ratio for m in ("e2e_latency", "ttft", "decode_rate"))
    assert wait is not None
    assert first is not None
    assert decode is not None
    more = (found.summaries["peak_unified"].median - found.baseline_summaries["peak_unified"].median) / 1e6
    expected = (
        f"you wait {ratio(wait)} {interval(wait)} as long; first answer later: {ratio(first)} {interval(first)}; "
        f"decode faster: {ratio(decode)} {interval(decode)}; same tokens in 12/12 answers; peak memory +{more:.1f} MB"
    )
    assert said(sentence_of(full, MLX)) == expected.replace(NBSP, " ")


def test_sentences_are_grouped_and_contradicted_ones_are_alarms(full: Report) -> None:
    assert [group.key for group in full.view.sentences] == ["exact", "opportunistic", "unproven"]
    assert [one.cell for one in full.view.alarms] == ["ds4/tiny/mtp/greedy/short"]
    assert "same tokens in only 8/12 answers" in said(full.view.alarms[0])
    compared = {cell.id for cell in full.analysis.cells if cell.comparisons}
    told = [one.cell for group in full.view.sentences for one in group.sentences]
    assert sorted(told + [one.cell for one in full.view.alarms]) == sorted(compared)


def test_decisions_say_on_off_or_why_not(full: Report) -> None:
    told = {one.where: (one.word, one.tone, one.major) for one in full.view.decisions}
    assert told == {
        "llama.cpp · tiny · short": ("Cannot say", "ask", True),
        "mlx-lm · tiny · short": ("Turn it on", "good", True),
        "mlx-lm · tiny · long": ("Turn it on", "good", True),
        "ds4 · tiny · short": ("Cannot say", "ask", True),
        "omlx": ("To be measured", "ask", False),
    }
    minor = full.view.decisions[-1]
    assert plain(minor.lines[0]) == "omlx · tiny: omlx: no such command on PATH"


def test_groups_share_no_table_and_no_figure(full: Report) -> None:
    groups = {cell.id: cell.group.value for cell in full.analysis.cells}
    seen = {}
    for key, table in tables(full):
        cells = [row.anchor.removeprefix("cell/") for row in table.rows if row.anchor]
        assert cells
        assert {groups[cell] for cell in cells} == {key}
        seen[table.id] = key
    assert sorted(set(seen.values())) == ["contradicted", "exact", "opportunistic", "unproven"]
    figures = [
        one.id
        for group in full.view.groups
        for panel in group.panels
        for one in (*panel.figures, *(figure for block in panel.blocks for figure in block.figures))
    ]
    assert len(figures) == len(set(figures))


def test_absences_are_words_with_reasons_and_never_numbers(full: Report) -> None:
    silent = row_of(full, "cell/ds4/tiny/mtp-exact/t0.8/short")
    assert [cell.main for cell in silent.cells[4:8]] == ["not reported"] * 4
    assert {cell.why for cell in silent.cells[4:8]} == {"this engine does not say"}
    base = next(row for _, table in tables(full) for row in table.rows if row.base)
    assert [cell.main for cell in base.cells[4:8]] == ["not applicable"] * 4
    failed = row_of(full, "cell/llama.cpp/tiny/mtp/t0.8/short")
    assert failed.span is not None
    assert failed.span.main == "failed"
    assert "exit status 139" in failed.span.why
    for _, table in tables(full):
        for row in table.rows:
            for cell in row.cells:
                assert cell.main not in ("", "0", "nan", "NaN", "None", "-")
                assert not cell.absent or cell.why
                assert cell.note is None or table.notes[cell.note - 1] == cell.why


def test_the_engine_table_has_the_seven_rows_of_the_user(full: Report) -> None:
    block = next(
        block
        for group in full.view.groups
        for panel in group.panels
        for block in panel.blocks
        if block.title == "mlx-lm · tiny · greedy · short"
    )
    assert [row.names for row in block.table.rows] == [
        "First answer (TTFT)", "Decode", "Total response time", "Peak memory", "Mean accepted length",
        "Verify rounds", "Draft cost",
    ]  # fmt: skip
    assert [column.label for column in block.table.columns] == ["baseline decode", "draft-k4", "ngram"]
    last = [[cell.main for cell in row.cells] for row in block.table.rows[-3:]]
    assert [row[0] for row in last] == ["not applicable"] * 3
    assert [row[2] for row in last] == ["not applicable"] * 3  # unsupported here
    assert last[2][1] == "not reported"
    totals = full.analysis.by_id(MLX).totals
    assert totals is not None
    assert totals.verify_rounds
    assert last[0][1] == f"{totals.accepted / totals.verify_rounds:.2f}"


def test_every_failing_cell_has_its_command(full: Report) -> None:
    commands = {one.cell: one.command for one in full.view.troubles}
    assert commands == {
        "llama.cpp · tiny · draft-k8 · greedy · short": "specmatrix rerun llama.cpp/tiny/draft-k8/greedy/short",
        "llama.cpp · tiny · mtp · t0.8 · short": "specmatrix rerun llama.cpp/tiny/mtp/t0.8/short",
    }
    assert all(shlex.split(command)[:2] == ["specmatrix", "rerun"] for command in commands.values())
    assert [one.word for one in full.view.waiting] == ["unsupported"]
    assert full.view.troubles[1].log == ("ggml: assertion failed",)


def test_what_is_not_on_this_machine_stands_in_one_table_with_its_reason(full: Report) -> None:
    table = full.view.to_measure
    assert table is not None
    rows = {(row.names, row.anchor): row.span for row in table.rows}
    assert list(rows) == [
        ("omlx · none", "trouble/omlx/tiny/none/greedy/short"),
        ("omlx · mtp", "trouble/omlx/tiny/mtp/greedy/short"),
    ]
    for span in rows.values():
        assert span is not None
        assert span.main == "to be measured"
        assert span.lines[0] == span.why == "omlx: no such command on PATH"
    how_to_get_it = [span.lines[1:] for span in rows.values() if span is not None]
    assert [len(lines) for lines in how_to_get_it] == [1, 0]  # once
    assert [column.label for column in table.columns] == [
        "First answer (TTFT)", "Decode", "Total response time", "Peak memory", "Mean accepted length",
        "Verify rounds", "Draft cost",
    ]  # fmt: skip
    first = next(one for one in full.view.decisions if one.where == "omlx")
    assert ["".join(part.text for part in line) for line in first.lines] == [
        "omlx · tiny: omlx: no such command on PATH"
    ]
    assert not [row for row in full.view.noise.rows if row.names.startswith("omlx")]  # type: ignore[union-attr]


def test_the_engines_of_the_run_stand_in_one_table(full: Report) -> None:
    table = full.view.engines_table
    assert table is not None
    rows = {(row.names, row.sub): row.cells for row in table.rows}
    assert ("mlx-lm", "draft-k4") in rows
    reported, silent, rule, verified, pin = rows["mlx-lm", "draft-k4"]
    assert reported.main == "drafted, accepted, verify rounds"
    assert "drafted_tokens" in reported.why
    assert silent.main
    assert rule.main == "greedy: greedy match"
    assert verified.main == "not recorded"  # this run is of before the records had it
    assert pin.main == "mlx-lm 0.32.2"
    absent = rows["omlx", "mtp"]
    assert [absent[0].main, absent[1].main, absent[4].main] == ["to be measured", "to be measured", "version 0.6.4"]
    assert absent[0].why == "omlx: no such command on PATH"


def test_demo_models_unpinned_engines_and_changed_conditions_are_said(full: Report) -> None:
    assert full.view.demo.startswith("tiny: tiny models made for this tool.")
    assert full.view.unpinned == "ds4 ran unpinned: another version may give other figures."
    assert [table.id for table in full.view.conditions] == ["table/conditions/exact"]
    rows = {row.names: [cell.main for cell in row.cells] for row in full.view.conditions[0].rows}
    assert rows == {
        "llama.cpp · draft-k4": ["top_k", "0", "40", "0", "changed", "the engine's echo"],
    }


def test_where_answers_part_is_shown(full: Report) -> None:
    found = next(one for one in full.view.evidence if one.anchor == "evidence/ds4/tiny/mtp/greedy/short")
    assert [(part.prompt, part.where) for part in found.divergences] == [("p1", "token 12 of 55")]
    part = found.divergences[0]
    assert part.off != part.on
    assert [token.index for token in part.tokens] == [str(n) for n in range(9, 18)]
    assert [token.parts for token in part.tokens] == [False] * 3 + [True] * 6
    assert [token.index for token in part.tokens if token.first] == ["12"]
    before, at = part.tokens[2], part.tokens[3]
    assert (before.off, before.off_text) == (before.on, before.on_text)
    assert at.off_text == run_builder.WORDS[int(at.off) % len(run_builder.WORDS)].replace(" ", "␣")
    assert part.margin == "Margin: 2.89 nat below the baseline's best token (limit 0.1 nat): divergent"
    shown = part.ranked[0].replace("\u00a0", " ")
    assert (len(part.ranked), shown) == (3, f"{at.off_text} {at.off} (73.3 %)")
    for text in (at.off_text, at.on_text, part.ranked[1]):
        assert text in full.html


def test_without_a_replay_and_a_vocabulary_ids_stand_alone_and_the_margin_is_to_be_measured(tmp_path: Path) -> None:
    blocks = tuple(block for block in run_builder.full_blocks() if block.engine.name == "ds4")
    report = report_of(run_builder.write_run(tmp_path / "open", blocks, run_builder.IDENTITIES))
    found = next(one for one in report.view.evidence if one.divergences)
    part = found.divergences[0]
    assert part.margin.startswith("Margin: to be measured (")
    assert part.ranked == ()
    assert {token.off_text + token.on_text for token in part.tokens} == {""}
    assert part.tokens[3].off.isdecimal()
    assert 'class="piece"' not in report.html


def test_the_glossary_holds_the_whole_vocabulary_and_every_status(full: Report) -> None:
    assert [one.name for one in full.view.glossary] == [metric.id for metric in VOCABULARY.values()]
    assert len(full.view.statuses) == len(STATUS_RULES)


def test_a_run_without_measurements_says_so(empty: Report, bare: Report) -> None:
    assert empty.view.validity.word == "INCONCLUSIVE"
    assert empty.view.validity.reasons[0].text == "Nothing was measured."
    assert [one.word for one in empty.view.decisions] == ["Cannot say"]
    assert empty.view.coverage_line == "0 of 4 cells measured"
    assert empty.view.sentences == ()
    assert bare.view.nothing == "Nothing was measured yet, so there is no answer."
    assert bare.view.coverage == ()
    assert [(group.key, group.panels) for group in bare.view.groups] == [("exact", ()), ("opportunistic", ())]


def test_an_interrupted_run_keeps_its_figures_and_gives_no_verdict(interrupted: Report) -> None:
    row = row_of(interrupted, f"cell/{MLX}")
    assert row.cells[0].lines[0] == "not comparable"
    assert "1 of 4 sets" in row.cells[0].why
    assert [one.text for one in interrupted.view.validity.reasons][-1] == "interrupted by the user (SIGINT)"
    assert [one.word for one in interrupted.view.decisions] == ["Cannot say"]

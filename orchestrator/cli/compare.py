"""``compare``: two runs in the terminal, or as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cli.tables import plain, table
from orchestrator.report.compare.runs import compare_runs
from orchestrator.report.compare.view import CompareView, compare_view
from orchestrator.report.compare.write import compare_html, compare_json, compare_markdown
from orchestrator.report.language.words import Words
from orchestrator.report.language.words import plain as unmarked
from orchestrator.report.output.write import write_whole
from orchestrator.schema.errors import SpecmatrixError

if TYPE_CHECKING:
    from pathlib import Path

    from orchestrator.report.model.parts import CellView, RowView, TableView

FORMATS = ("text", "json", "md", "html")
EXIT_NOTHING_COMPARABLE = 1


def compare(before: Path, after: Path, form: str, language: str, output: Path | None) -> int:
    """Prints or writes the comparison; returns 1 when no cell could be compared.

    Raises:
        SpecmatrixError: an unknown format, or the terminal's tables to a file.
        StoreError: a run cannot be read, or the file cannot be written.
    """
    if form not in FORMATS:
        raise SpecmatrixError(f"--format {form}: there are {', '.join(FORMATS)}")
    if form == "text" and output is not None:
        raise SpecmatrixError("--output wants a format for a file: --format json, md or html")
    found = compare_runs(before, after)
    words = Words(language)
    view = compare_view(found, words)
    if form == "text":
        _print(Console(), view)
    else:
        text = (
            compare_json(found)
            if form == "json"
            else (compare_html if form == "html" else compare_markdown)(view, words)
        )
        if output is None:
            print(text, end="")  # noqa: T201  (a document for a pipe: Rich would wrap its lines)
        else:
            write_whole(output, text)
            Console().print(plain(f"wrote {output}"), soft_wrap=True)
    return 0 if found.comparable else EXIT_NOTHING_COMPARABLE


def _print(console: Console, view: CompareView) -> None:
    console.print(plain(view.title), style="bold", soft_wrap=True)
    console.print(plain(unmarked(view.lead)), soft_wrap=True)
    for note in view.notes:
        console.print(plain(note), soft_wrap=True)
    for section in view.sections:
        console.print()
        console.print(plain(section.title), style="bold")
        for one in section.sentences:
            said = "; ".join(unmarked(clause.rich) for clause in one.clauses)
            console.print(plain(f"  {one.names}: {said}"), soft_wrap=True)
        for found in (section.ratios, section.absolutes):
            _table(console, found)
    for extra in (view.refused, view.changed):
        if extra is not None:
            _table(console, extra)


def _table(console: Console, found: TableView) -> None:
    console.print()
    heads = [found.head, "", *(" ".join(part for part in (c.label, c.unit) if part) for c in found.columns)]
    console.print(table(found.caption, heads, [_row(row) for row in found.rows]))


def _row(row: RowView) -> tuple[str, ...]:
    return (row.names, row.sub, *(_cell(cell) for cell in ((row.span,) if row.span is not None else row.cells)))


def _cell(cell: CellView) -> str:
    return " ".join(part for part in (cell.main, *cell.lines) if part)

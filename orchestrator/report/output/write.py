"""Writes a run's report and its data files; needs the run directory and nothing else."""

from __future__ import annotations

import json
from pathlib import Path

from orchestrator.report.analysis.analyse import analyse
from orchestrator.report.data.quality import categories_csv
from orchestrator.report.data.summary import summary_data
from orchestrator.report.language.words import Words
from orchestrator.report.output.render import render_html
from orchestrator.report.page.first_screen.context import run_settings
from orchestrator.report.page.view import build_view
from orchestrator.schema.errors import StoreError
from orchestrator.schema.hidden import escaped
from orchestrator.store.directory import RunDirectory
from orchestrator.store.frame import write_csv, write_parquet
from orchestrator.store.index import Index


def write_report(run: Path, language: str | None = None) -> Path:
    """Writes ``report.html``, ``summary.json``, ``categories.csv`` and ``metrics.csv`` and ``.parquet`` into the run.

    Args:
        run: the run directory.
        language: ISO 639-1; ``None`` takes the matrix's own.

    Returns:
        The path of the page.

    Raises:
        StoreError: the run cannot be read, or a file cannot be written.
    """
    directory = RunDirectory.open(run)
    index = Index.build(directory.records())
    found = analyse(index, directory.header)
    words = Words(language or str(run_settings(index).get("language", "en")))
    html = render_html(build_view(found, directory.header, index, words.language, words, run), words)
    summary = json.dumps(summary_data(found, directory.header), indent=1, ensure_ascii=False, allow_nan=False)
    write_whole(run / "summary.json", escaped(summary) + "\n")
    write_whole(run / "categories.csv", categories_csv(found))
    write_csv(index, run / "metrics.csv")
    write_parquet(index, run / "metrics.parquet")
    # Last, so that a page never stands beside files that it links to and that are not there.
    page = run / "report.html"
    write_whole(page, html)
    return page


def write_whole(path: Path, text: str) -> None:
    """Puts a file in place at once; surrogates that a log may hold are replaced, since UTF-8 has none."""
    draft = path.with_name(path.name + ".part")
    try:
        draft.write_bytes(text.encode("utf-8", "replace"))
        draft.replace(path)
    except OSError as err:
        raise StoreError(f"{path}: cannot be written: {err.strerror}; make room or choose another place") from err

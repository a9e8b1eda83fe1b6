"""One run in the formats that were asked for, each to its own file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

from orchestrator.report.analysis.analyse import analyse
from orchestrator.report.data.summary import summary_data
from orchestrator.report.language.words import Words
from orchestrator.report.output.markdown import report_markdown
from orchestrator.report.output.render import render_html
from orchestrator.report.output.write import write_whole
from orchestrator.report.page.first_screen.context import run_settings
from orchestrator.report.page.view import build_view
from orchestrator.schema.errors import StoreError
from orchestrator.schema.hidden import escaped
from orchestrator.store.directory import RunDirectory
from orchestrator.store.frame import write_csv, write_parquet
from orchestrator.store.index import Index


class Format(StrEnum):
    """How a report can be written."""

    HTML = "html"
    MD = "md"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"


FILES = {
    Format.HTML: "report.html",
    Format.MD: "report.md",
    Format.JSON: "summary.json",
    Format.CSV: "metrics.csv",
    Format.PARQUET: "metrics.parquet",
}


def write_formats(
    run: Path, formats: Sequence[Format], language: str | None = None, output: Path | None = None
) -> tuple[Path, ...]:
    """Writes the formats; nothing else of the run is touched.

    Args:
        run: the run directory.
        formats: one or several, each once.
        language: of page and Markdown, ISO 639-1; ``None`` takes the matrix's own.
        output: with one format the file (or an existing folder for it), with several the folder; ``None`` is the run.

    Returns:
        The files written, in the order of the formats.

    Raises:
        StoreError: the run cannot be read, or a file cannot be written.
    """
    wanted = tuple(dict.fromkeys(formats))
    directory = RunDirectory.open(run)
    index = Index.build(directory.records())
    paths = _paths(run, wanted, output)
    if {Format.HTML, Format.MD, Format.JSON} & set(wanted):
        texts = _texts(run, directory, index, wanted, language)
        for one, text in texts.items():
            write_whole(paths[one], text)
    if Format.CSV in paths:
        write_csv(index, paths[Format.CSV])
    if Format.PARQUET in paths:
        write_parquet(index, paths[Format.PARQUET])
    return tuple(paths[one] for one in wanted)


def _texts(
    run: Path, directory: RunDirectory, index: Index, formats: Sequence[Format], language: str | None
) -> dict[Format, str]:
    found = analyse(index, directory.header)
    made = {}
    if Format.JSON in formats:
        data = summary_data(found, directory.header)
        made[Format.JSON] = escaped(json.dumps(data, indent=1, ensure_ascii=False, allow_nan=False)) + "\n"
    if Format.HTML in formats or Format.MD in formats:
        words = Words(language or str(run_settings(index).get("language", "en")))
        view = build_view(found, directory.header, index, words.language, words, run)
        if Format.HTML in formats:
            made[Format.HTML] = render_html(view, words)
        if Format.MD in formats:
            made[Format.MD] = report_markdown(view, words)
    return made


def _paths(run: Path, formats: Sequence[Format], output: Path | None) -> dict[Format, Path]:
    if output is not None and len(formats) == 1 and not output.is_dir():
        _folder(output.parent)
        return {formats[0]: output}
    folder = output or run
    _folder(folder)
    return {one: folder / FILES[one] for one in formats}


def _folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as err:
        raise StoreError(f"{path}: cannot be made: {err.strerror}; choose another place") from err

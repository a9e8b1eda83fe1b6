"""The page of a small fixed run, in both languages and as its view-model, against committed files, in bytes.

Whoever changes the page on purpose runs ``SPECMATRIX_UPDATE_GOLDEN=1 pytest tests/report/test_report_golden.py`` and
reads what changed in the files. That run fails too, so that nobody passes by updating.

Left out are what other tests hold: drawings (matplotlib's differ between versions), style and script, the data inside
the page, and the glossary, which is the vocabulary.
"""

from __future__ import annotations

import dataclasses
import difflib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
import run_builder
from report_runs import Report, report_of

from orchestrator.report.language.words import Words
from orchestrator.report.output.render import render_html
from orchestrator.report.page.view import ReportView, build_view
from orchestrator.schema.status import Status

GOLDEN = Path(__file__).parent / "golden"
LEFT_OUT = ("data_json", "csv_address", "glossary", "statuses", "reading")
DRAWING = re.compile(r"<svg.*?</svg>", re.DOTALL)
INSIDE = re.compile(r"(<(style|script)[^>]*>).*?(</\2>)", re.DOTALL)
POLICY = re.compile(r"sha256-[A-Za-z0-9+/=]+")
CSV = re.compile(r'href="data:[^"]*"')
GLOSSARY = re.compile(r'<section id="understanding".*?</section>', re.DOTALL)


def blocks() -> tuple[run_builder.BlockSpec, ...]:
    """A gain, a contradicted cell, a failure and an engine that is not there."""
    gain, parting, absent = (run_builder.full_blocks()[place] for place in (2, 5, 6))
    failing = run_builder.Spec(
        run_builder.MTP, claim=run_builder.MATCH, fate=Status.FAILED, reason="the engine ended", remedy="see the log",
        log=("loading", "ggml: assertion failed"),
    )  # fmt: skip
    gain = dataclasses.replace(gain, cells=(gain.cells[0], failing), attempts=1, sets=3)
    return (gain, dataclasses.replace(parting, sets=3), absent)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("runs") / "golden"
    settings: dict[str, object] = {"unpinned": ["ds4"], "demo_models": ["tiny"], "numerics_exact": ["ds4"]}
    run_builder.write_run(path, blocks(), run_builder.IDENTITIES, run_settings=settings, replays=True)
    return report_of(path)


def stripped(html: str) -> str:
    for pattern, put in (
        (DRAWING, "<svg></svg>"), (INSIDE, r"\1\3"), (POLICY, "sha256-"), (CSV, 'href="data:"'), (GLOSSARY, ""),
    ):  # fmt: skip
        html = pattern.sub(put, html)
    return html


def plain(view: ReportView) -> str:
    told = dataclasses.asdict(view)
    for name in LEFT_OUT:
        del told[name]
    return json.dumps(_undrawn(told), ensure_ascii=False, indent=1) + "\n"


def _undrawn(value: Any) -> Any:
    """Without drawings, and without what is empty, which is most of it."""
    if isinstance(value, dict):
        kept = {key: _undrawn(one) for key, one in value.items() if key != "svg"}
        return {key: one for key, one in kept.items() if one not in ("", (), [], None, False)}
    return [_undrawn(one) for one in value] if isinstance(value, list | tuple) else value


def held(name: str, made: str) -> None:
    """Compares with the committed file, or writes it when that was asked for; fails either way if they differ."""
    path = GOLDEN / name
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    if known == made:
        return
    if os.environ.get("SPECMATRIX_UPDATE_GOLDEN") == "1":
        path.write_text(made, encoding="utf-8")
    lines = difflib.unified_diff(known.splitlines(), made.splitlines(), "committed", "made", n=1, lineterm="")
    told = "\n".join(line[:300] for _, line in zip(range(40), lines, strict=False))
    pytest.fail(f"{name} differs; SPECMATRIX_UPDATE_GOLDEN=1 writes it anew:\n{told}")


@pytest.mark.parametrize("language", ["en", "ko"])
def test_the_page_is_the_committed_one(small: Report, language: str) -> None:
    words = Words(language)
    held(f"page.{language}.html", stripped(render_html(build_view(
        small.analysis, small.header, small.index, language, words, small.path), words)))  # fmt: skip


def test_the_view_model_is_the_committed_one(small: Report) -> None:
    held("view.json", plain(small.view))


def test_what_is_compared_holds_the_page(small: Report) -> None:
    """What is stripped must not be the page itself."""
    page = stripped(small.html)
    assert page.count("<svg></svg>") == small.html.count("<svg") > 5
    assert page.count("<table") > 10
    assert len(page) > 40_000
    for text in ("0.", "Turn it on", "Contradicted", "not on this machine", "ggml: assertion failed", "≠"):
        assert text in page
    assert "function" not in page
    assert "prefers-color-scheme" not in page

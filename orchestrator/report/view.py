"""Builds the page's view-model from an analysis: the last place where anything is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.report import context, details, glossary, sections, sentences, standing
from orchestrator.report.findings import Analysis
from orchestrator.report.model import Link, ReportView
from orchestrator.report.summary import summary_json
from orchestrator.report.untrusted import clean
from orchestrator.report.words import Words
from orchestrator.schema.record import RunHeader

if TYPE_CHECKING:
    from orchestrator.store.index import Index

__all__ = ["ReportView", "build_view"]

MATRIX_LINES = 400


def build_view(
    analysis: Analysis, header: RunHeader, index: Index, language: str = "en", words: Words | None = None
) -> ReportView:
    """The page as plain, finished data.

    Args:
        analysis: what was concluded.
        header: the run's ``run.json``.
        index: its records.
        language: ISO 639-1; English where no catalogue exists.
        words: used instead of the catalogue of ``language``.
    """
    words = words or Words(language)
    settings = context.run_settings(index)
    failed, waiting = details.troubles(analysis, words)
    conditions, same = details.conditions(analysis, index, words)
    name = clean(header.run, 120)
    subtitle = [context.machine(header.host), header.created_utc[:10]]
    return ReportView(
        language=words.language,
        title=name,
        subtitle=" · ".join(part for part in subtitle if part),
        demo=_demo(context.listed(settings, "demo_models"), words),
        unpinned=_unpinned(context.listed(settings, "unpinned"), words),
        alarms=sentences.alarms(analysis, words),
        decisions=sentences.decisions(analysis, words),
        nothing=words.say("Nothing was measured yet, so there is no answer.") if not analysis.recommendations else "",
        sentences=sentences.sentences(analysis, words),
        validity=standing.validity_view(analysis, words),
        coverage_line=standing.coverage_line(analysis, words),
        coverage=standing.coverage_view(analysis, words),
        measured=context.measured(analysis, header, index, words),
        engines=context.engines(index, words),
        groups=sections.group_sections(analysis, index, words),
        evidence=details.evidence(analysis, words),
        conditions=conditions,
        same_conditions=same,
        troubles=failed,
        waiting=waiting,
        noise=details.noise(analysis, words),
        glossary=glossary.glossary(words),
        statuses=glossary.statuses(words),
        reading=glossary.reading(words),
        environment=context.environment(header, index, words),
        matrix_text=_matrix(index.matrix.text if index.matrix is not None else header.matrix_text),
        files=(
            Link("metrics.csv", "metrics.csv"),
            Link("metrics.parquet", "metrics.parquet"),
            Link("summary.json", "summary.json"),
            Link("journal.jsonl", "journal.jsonl"),
            Link("run.json", "run.json"),
        ),
        data_json=summary_json(analysis, header),
    )


def _demo(models: tuple[str, ...], words: Words) -> str:
    if not models:
        return ""
    message = (
        "{models}: tiny models made for this tool. They exercise the engines; their speed says nothing about others."
    )
    return words.say(message, models=", ".join(models))


def _unpinned(engines: tuple[str, ...], words: Words) -> str:
    if not engines:
        return ""
    return words.count(
        "{names} ran unpinned: another version may give other figures.",
        "{names} ran unpinned: other versions may give other figures.",
        len(engines),
        names=", ".join(engines),
    )


def _matrix(text: str) -> str:
    lines = text.split("\n")
    shown = [clean(line.replace("\t", "  "), 300) for line in lines[:MATRIX_LINES]]
    return "\n".join(shown if len(lines) <= MATRIX_LINES else [*shown, "…"])

"""Builds the page's view-model from an analysis: the last place where anything is computed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from orchestrator.report.analysis.findings import Analysis
from orchestrator.report.data import export
from orchestrator.report.data.summary import WHOLE_CELLS, is_whole, summary_json
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.page import ReportView
from orchestrator.report.model.parts import Link
from orchestrator.report.page.chapters import (
    conditions,
    engine_facts,
    evidence,
    glossary,
    memory,
    noise,
    quality,
    targets,
    troubles,
)
from orchestrator.report.page.first_screen import context, decisions, sentences, standing
from orchestrator.report.page.first_screen.waiting import to_measure
from orchestrator.report.page.groups import sections
from orchestrator.report.page.naming import slug
from orchestrator.schema.record import RunHeader

if TYPE_CHECKING:
    from orchestrator.store.index import Index

__all__ = ["ReportView", "build_view"]

MATRIX_LINES = 400


def build_view(
    analysis: Analysis,
    header: RunHeader,
    index: Index,
    language: str = "en",
    words: Words | None = None,
    run: Path | None = None,
) -> ReportView:
    """The page as plain, finished data.

    Args:
        analysis: what was concluded.
        header: the run's ``run.json``.
        index: its records.
        language: ISO 639-1; English where no catalogue exists.
        words: used instead of the catalogue of ``language``.
        run: the run directory, for the samples that sessions left in their folders; ``None`` leaves those out.
    """
    words = words or Words(language)
    settings = context.run_settings(index)
    failed, waiting = troubles.troubles(analysis, words)
    differing, same = conditions.conditions(analysis, index, words)
    name = clean(header.run, 120)
    subtitle = [context.machine(header.host), words.date(header.created_utc)]
    return ReportView(
        language=words.language,
        title=name,
        subtitle=" · ".join(part for part in subtitle if part),
        demo=_demo(context.listed(settings, "demo_models"), words),
        unpinned=_unpinned(context.listed(settings, "unpinned"), settings.get("mismatches") or {}, words),
        forced=memory.forced(analysis, index, words),
        alarms=sentences.alarms(analysis, words),
        decisions=decisions.decisions(analysis, words),
        nothing=words.say("Nothing was measured yet, so there is no answer.") if not analysis.recommendations else "",
        sentences=sentences.sentences(analysis, words),
        validity=standing.validity_view(analysis, words),
        coverage_line=standing.coverage_line(analysis, words),
        coverage=standing.coverage_view(analysis, words),
        measured=context.measured(analysis, header, index, words),
        engines=context.engines(index, words),
        groups=sections.group_sections(analysis, index, words, run),
        evidence=evidence.evidence(analysis, index, words),
        conditions=differing,
        same_conditions=same,
        targets=targets.same_target(analysis, index, words),
        budget=memory.memory_tables(analysis, index, words),
        no_budget=words.say("Predicted memory: to be measured. This run recorded no prediction."),
        troubles=failed,
        waiting=waiting,
        noise=noise.noise(analysis, words),
        glossary=glossary.glossary(words),
        statuses=glossary.statuses(words),
        reading=glossary.reading(words),
        environment=context.environment(header, index, words),
        matrix_text=_matrix(index.matrix.text if index.matrix is not None else header.matrix_text),
        files=(
            Link("metrics.csv", "metrics.csv"),
            Link("categories.csv", "categories.csv"),
            Link("metrics.parquet", "metrics.parquet"),
            Link("summary.json", "summary.json"),
            Link("journal.jsonl", "journal.jsonl"),
            Link("run.json", "run.json"),
        ),
        data_json=summary_json(analysis, header),
        data_note=_data_note(analysis, words),
        whole=is_whole(analysis),
        room=memory.room(index, words),
        csv_name=f"{slug(name)}.csv",
        # A page that holds every figure as JSON makes the CSV of it when asked; twice would be an eighth of its bytes.
        csv_address="" if is_whole(analysis) else export.data_address(export.figures_csv(analysis)),
        to_measure=to_measure(analysis, words),
        engines_table=engine_facts.engines_table(analysis, index, words),
        quality=quality.quality_sections(analysis, words),
        no_task=quality.no_task(analysis, words),
    )


def _demo(models: tuple[str, ...], words: Words) -> str:
    if not models:
        return ""
    message = (
        "{models}: tiny models made for this tool. They exercise the engines; their speed says nothing about others."
    )
    return words.say(message, models=", ".join(models))


def _unpinned(engines: tuple[str, ...], mismatches: Mapping[str, object], words: Words) -> str:
    """Engines without a pin, and engines that ran past theirs because the matrix allows it, with the difference."""
    past = {clean(str(name), 80): clean(str(why), 200) for name, why in mismatches.items()}
    bare = [name for name in engines if name not in past]
    told = []
    if bare:
        told.append(
            words.count(
                "{names} ran unpinned: another version may give other figures.",
                "{names} ran unpinned: other versions may give other figures.",
                len(bare),
                names=", ".join(bare),
            )
        )
    for name in engines:
        if name in past:
            message = "{name} is not the pinned version and ran all the same, by allow_unpinned: {why}."
            told.append(words.say(message, name=name, why=words.said(past[name])))
    return " ".join(told)


def _data_note(analysis: Analysis, words: Words) -> str:
    if is_whole(analysis):
        return words.say(
            "Beside this page in the run's folder; the conclusions and every raw value are also inside the page, as "
            "JSON in the element “data”."
        )
    return words.say(
        "Beside this page in the run's folder. With more than {n} cells the data inside the page leave out single "
        "values, reasons of absences and the faults caught, so that it still opens: summary.json has them all.",
        n=WHOLE_CELLS,
    )


def _matrix(text: str) -> str:
    lines = text.split("\n")
    shown = [clean(line.replace("\t", "  "), 300) for line in lines[:MATRIX_LINES]]
    return "\n".join(shown if len(lines) <= MATRIX_LINES else [*shown, "…"])

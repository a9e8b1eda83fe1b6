"""Cells that failed, and cells that cannot be or wait for their turn."""

from __future__ import annotations

from orchestrator.report.analysis.findings import Analysis, CellFinding
from orchestrator.report.language.untrusted import clean, tail
from orchestrator.report.language.words import Words
from orchestrator.report.model.chapters import TroubleView
from orchestrator.report.page.first_screen.waiting import is_waiting
from orchestrator.report.page.naming import full_name, rerun, trouble_anchor
from orchestrator.schema.cell import Role
from orchestrator.schema.status import STATUS_RULES, Status


def troubles(analysis: Analysis, words: Words) -> tuple[tuple[TroubleView, ...], tuple[TroubleView, ...]]:
    """Cells that failed, and cells that cannot be or wait for their turn, in order of the matrix.

    Those that wait for an engine or a file are in a table of their own (:mod:`..first_screen.waiting`).
    """
    failed, waiting = [], []
    for cell in analysis.cells:
        rule = STATUS_RULES[cell.state.status]
        if cell.state.status is Status.OK:
            continue
        if rule.selected_by_failed:
            failed.append(_trouble(cell, words))
        elif cell.state.role is not Role.TWIN and not is_waiting(cell):
            waiting.append(_trouble(cell, words))
    return tuple(failed), tuple(waiting)


def _trouble(cell: CellFinding, words: Words) -> TroubleView:
    state = cell.state
    rule = STATUS_RULES[state.status]
    last = state.failed_sessions[-1] if state.failed_sessions else (state.sessions[-1] if state.sessions else None)
    tone = "bad" if rule.fails_run else "ask"
    target = state.baseline if state.role is Role.TWIN and state.baseline else state.id
    history = " · ".join(
        words.say("attempt {n}: {word}", n=n, word=words.say(STATUS_RULES[status].word)) for n, status in state.history
    )
    return TroubleView(
        trouble_anchor(state.id),
        full_name(cell),
        words.say(rule.word),
        tone,
        "■" if tone == "bad" else "○",
        words.say(rule.meaning),
        words.said(clean(state.reason, 600)),
        words.said(clean(state.remedy, 600)),
        tail(last.log_tail) if last is not None and state.failed_sessions else (),
        clean(last.folder, 300) if last is not None else "",
        rerun(target),
        history if len(state.history) > 1 else "",
    )

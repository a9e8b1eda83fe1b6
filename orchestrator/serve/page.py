"""The page of a run that goes on, as finished data and as HTML in the report's style."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from markupsafe import Markup

from orchestrator.report.language.untrusted import clean, tail
from orchestrator.report.model.parts import Link
from orchestrator.report.output.render import render_page
from orchestrator.report.page.naming import rerun as rerun_command
from orchestrator.schema.status import STATUS_RULES, Status
from orchestrator.schema.units import seconds

if TYPE_CHECKING:
    from orchestrator.report.language.words import Words
    from orchestrator.serve.live import Snapshot
    from orchestrator.serve.rerun import Job
    from orchestrator.store.states import CellState

HERE = Path(__file__).parent
SERVED = {
    "report.html": "text/html",
    "report.ko.html": "text/html",
    "report.md": "text/plain",
    "summary.json": "application/json",
    "metrics.csv": "text/plain",
    "categories.csv": "text/plain",
    "metrics.parquet": "application/octet-stream",
    "run.json": "application/json",
    "journal.jsonl": "text/plain",
}
"""The files of a run's folder that may be read through the server, and as what."""
SCRIPT = (HERE / "templates" / "serve.js").read_text(encoding="utf-8").strip()
_OWN_SCRIPT = Markup(SCRIPT)  # noqa: S704  (our own file)
SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
POLICY = (
    f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{SCRIPT_HASH}'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""Of our pages: nothing from elsewhere, our own script, forms to us."""
FILE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
"""Of a report: its own policy, which names its script by its hash, holds besides."""


@dataclass(frozen=True, slots=True)
class CellRow:
    """A cell with its status and what can be done about it; ``again`` is empty where nothing may be started."""

    name: str
    word: str
    tone: str
    icon: str
    sets: str
    reason: str
    again: str


@dataclass(frozen=True, slots=True)
class LiveView:
    """The page's moving part."""

    state: str
    tone: str
    width: str
    progress: str
    left: str
    now: str
    job: str
    job_tone: str
    said: tuple[str, ...]
    counts: tuple[str, ...]
    cells: tuple[CellRow, ...]
    latest: tuple[str, ...]
    notes: tuple[str, ...]
    links: tuple[Link, ...]


def live_view(shot: Snapshot, job: Job | None, run: Path, words: Words) -> LiveView:
    """The moment in words."""
    busy = shot.holder is not None or (job is not None and job.running)
    counts: dict[Status, int] = {}
    for cell in shot.cells:
        counts[cell.status] = counts.get(cell.status, 0) + 1
    told, tone = _job(job, words)
    return LiveView(
        state=_state(shot, words),
        tone="good" if shot.holder is not None else "flat",
        width=f"{100 * shot.done / shot.planned:.2f}%" if shot.planned else "0%",
        progress=words.say("{done} of {planned} sessions", done=shot.done, planned=shot.planned),
        left=words.say("about {time} left", time=seconds(shot.left_s)) if shot.left_s is not None else "",
        now=_now(shot, words),
        job=told,
        job_tone=tone,
        said=tail(job.said) if job is not None else (),
        counts=tuple(f"{counts[status]} {_word(status, shot, words)}" for status in STATUS_RULES if status in counts),
        cells=tuple(_row(cell, shot, busy, words) for cell in shot.cells),
        latest=tuple(
            f"{clean(one.place.cell, 200)} · {words.say('set {n}', n=one.place.set_index + 1)} · "
            f"{words.say(STATUS_RULES[one.status].word)} · {one.ended_utc[11:19]} UTC"
            for one in shot.latest
        ),
        notes=tuple(clean(f"{one.utc[11:19]} UTC · {one.text}", 300) for one in shot.notes),
        links=tuple(Link(name, name) for name in SERVED if (run / name).is_file()),
    )


def _state(shot: Snapshot, words: Words) -> str:
    if shot.holder is None:
        return words.say("Nothing is being measured now")
    since = f"{shot.holder.since_utc[11:19]} UTC"
    return words.say("Being measured by process {pid} since {since}", pid=shot.holder.pid, since=since)


def _now(shot: Snapshot, words: Words) -> str:
    """The session that runs now; empty where none does, or where nobody said so."""
    one = shot.running
    if one is None:
        return ""
    message = "Now: {cell} · set {n} of {sets} · {requests} requests, warm-up included · since {time} UTC"
    shown = words.say(
        message, cell=clean(one.cell, 200), n=one.set_index + 1, sets=one.planned_sets, requests=one.requests,
        time=clean(one.since_utc[11:19], 10),
    )  # fmt: skip
    return f"{shown} · {words.say('attempt {attempt}', attempt=one.attempt)}" if one.attempt > 1 else shown


def _job(job: Job | None, words: Words) -> tuple[str, str]:
    if job is None:
        return "", ""
    cell = clean(job.cell, 200)
    if job.running:
        return words.say("{cell} is being measured again", cell=cell), "ask"
    if job.exit_code == 0:
        return words.say("{cell} was measured again", cell=cell), "good"
    message = "Measuring {cell} again ended with exit status {code}"
    return words.say(message, cell=cell, code=job.exit_code), "bad"


def _word(status: Status, shot: Snapshot, words: Words) -> str:
    if status is Status.ABORTED and shot.holder is not None:
        return words.say("being measured")
    return words.say(STATUS_RULES[status].word)


def _row(cell: CellState, shot: Snapshot, busy: bool, words: Words) -> CellRow:
    rule = STATUS_RULES[cell.status]
    moving = cell.status is Status.ABORTED and shot.holder is not None
    here = shot.running is not None and shot.running.cell == cell.id
    tone = "ask" if moving else ("good" if cell.status is Status.OK else ("bad" if rule.fails_run else "ask"))
    reason = "" if moving else words.said(clean(cell.reason, 300))
    icon = {"good": "●", "bad": "■", "ask": "○"}[tone]
    again = "" if busy else f"rerun?{urlencode({'cell': cell.id})}"
    sets = f"{cell.sets_done}/{cell.sets_planned}" if cell.sets_planned else "–"
    word = words.say("running now") if here else _word(cell.status, shot, words)
    icon = "▶" if here else icon
    return CellRow(clean(cell.id, 300), word, tone, icon, sets, reason, again)


def live_html(view: LiveView, words: Words) -> str:
    """The moving part alone, for the page's script."""
    return render_page("live.html.j2", words, folder=HERE / "templates", view=view)


def page_html(view: LiveView, title: str, version: str, words: Words) -> str:
    """The whole page; complete without its script."""
    return render_page(
        "serve.html.j2", words, folder=HERE / "templates", view=view, title=title, version=version,
        script=_OWN_SCRIPT, language=words.language,
    )  # fmt: skip


def confirm_html(cell: str, token: str, title: str, words: Words) -> str:
    """Asks once more before anything is started."""
    return render_page(
        "confirm.html.j2", words, folder=HERE / "templates", cell=cell, shown=clean(cell, 300),
        command=rerun_command(cell), token=token, title=title, language=words.language,
    )  # fmt: skip


def refused_html(what: str, title: str, words: Words) -> str:
    """Says why nothing was started."""
    return render_page(
        "refused.html.j2",
        words,
        folder=HERE / "templates",
        what=words.said(clean(what, 600)),
        title=title,
        language=words.language,
    )

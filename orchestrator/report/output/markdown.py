"""The report as Markdown, to be put under a pull request: answer, validity, tables and failing cells, no figures.

Everything shown may come from a model, a log or a matrix. On a forge Markdown is HTML, mentions and links as well as
marks, so that text is taken apart wherever one of those could begin.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from orchestrator.report.language.words import Rich, Words
from orchestrator.report.model.chapters import TroubleView
from orchestrator.report.model.groups import Panel
from orchestrator.report.model.page import ReportView
from orchestrator.report.model.parts import CellSentence, CellView, TableView

_MARKS = re.compile(r"[\\`*_{}\[\]|~$]")
_LINE_START = re.compile(r"^(\s*)([-+=]|\d+(?=[.)](?:\s|$)))")
_BREAK = "<!-- -->"
"""Parts text so that a forge sees no mention, issue or address in it, and people see no difference."""
_LINKS = re.compile(r"@(?=\w)|#(?=\w)|(?<=\w):(?=//)|\bwww(?=\.)|\bGH-(?=\d)", re.IGNORECASE)


def escape(text: str) -> str:
    """One line of text that Markdown shows as it is: no marks, no HTML, no mention and no link."""
    line = (
        re.sub(r"^\s+", " ", " ".join(text.split("\n"))).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    )
    line = _MARKS.sub(lambda found: "\\" + found[0], line)
    line = _LINE_START.sub(_quoted, line)
    line = _LINKS.sub(lambda found: found[0] + _BREAK, line)
    return "\\" + line if line.startswith("#") else line


def code(text: str) -> str:
    """A code span around any text; backticks inside only make the fence longer."""
    line = " ".join(text.split("\n"))
    fence = "`" * (_longest_ticks(line) + 1)
    pad = " " if line.startswith("`") or line.endswith("`") or not line.strip() else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def block(lines: Iterable[str]) -> str:
    """A fenced block around lines of a log, which cannot end it."""
    body = "\n".join(lines)
    fence = "`" * max(3, _longest_ticks(body) + 1)
    return f"{fence}text\n{body}\n{fence}"


def rich(segments: Rich) -> str:
    """A sentence with its strong parts."""
    parts = []
    for segment in segments:
        text = escape(segment.text)
        bare = text.strip()
        parts.append(text.replace(bare, f"**{bare}**", 1) if segment.strong and bare else text)
    return "".join(parts)


def table(found: TableView) -> str:
    """A table of the page as a Markdown table with its footnotes."""
    heads = [
        found.head,
        *(f"{column.label} ({column.unit})" if column.unit else column.label for column in found.columns),
    ]
    lines = [_line(map(_cell_text, heads)), _line([":--", *("--:" for _ in found.columns)])]
    for row in found.rows:
        tags = "".join(f" ({escape(tag)})" for tag in row.tags)
        name = "<br>".join(escape(part) for part in (row.names, row.sub) if part) + tags
        cells = [_view(row.span)] if row.span is not None else [_view(cell) for cell in row.cells]
        lines.append(_line([name, *cells, *("" for _ in range(len(found.columns) - len(cells)))]))
    notes = [f"{number}. {escape(note)}" for number, note in enumerate(found.notes, 1)]
    return "\n".join([escape(found.caption), "", *lines, *(["", *notes] if notes else [])])


def report_markdown(view: ReportView, words: Words) -> str:
    """The whole of ``report.md``; the same view gives the same bytes."""
    parts = [f"# specmatrix: {escape(view.title)}", escape(view.subtitle)]
    parts += _answer(view, words)
    parts += _validity(view, words)
    for group in view.groups:
        if group.panels:
            parts += [f"## {escape(group.title)}", escape(group.explain), *(_panel(panel) for panel in group.panels)]
    if view.to_measure is not None:
        parts += [f"## {escape(words.say('Not measured here'))}", table(view.to_measure)]
    parts += _quality(view, words)
    if view.troubles or view.waiting:
        parts.append(f"## {escape(words.say('Cells without figures'))}")
        parts += [_trouble(one) for one in (*view.troubles, *view.waiting)]
    parts += [f"## {escape(words.say('What was measured'))}", _measured(view)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _quality(view: ReportView, words: Words) -> list[str]:
    parts = [f"## {escape(words.say('The answers themselves'))}", escape(view.no_task)]
    for one in view.quality:
        parts.append("\n".join(f"- {escape(line)}" for line in one.said))
        parts += [table(found) for found in (*one.tables, *one.categories)]
    return parts if any(parts[1:]) else []


def _answer(view: ReportView, words: Words) -> list[str]:
    parts = [f"**{view.validity.icon} {escape(view.validity.word)}** · {escape(view.coverage_line)}"]
    if view.alarms:
        parts.append(f"> **{escape(words.say('Contradicted: claimed exact, and a check says otherwise'))}**")
        parts.append("\n".join(f"> - {sentence(one)}" for one in view.alarms))
    if view.nothing:
        parts.append(escape(view.nothing))
    decided = []
    for one in view.decisions:
        decided.append(f"- **{one.icon} {escape(one.word)}** · {escape(one.where)}")
        kept = (*one.kept, *(() for _ in one.lines[len(one.kept) :]))
        told = [(line, *(each.rich for each in more)) for line, more in zip(one.lines, kept, strict=True)]
        decided += [f"  - {said}" for said in (*("; ".join(map(rich, each)) for each in told), *map(escape, one.notes))]
    parts.append("\n".join(decided))
    parts += [escape(text) for text in (view.demo, view.unpinned)]
    for group in view.sentences:
        parts.append(f"### {escape(group.title)}")
        parts.append("\n".join(f"- {sentence(one)}" for one in group.sentences))
    return parts


def sentence(one: CellSentence) -> str:
    """What a cell amounts to, in one list item."""
    tags = "".join(f" ({escape(tag)})" for tag in one.tags)
    note = f" {escape(one.note)}" if one.note else ""
    return f"**{escape(one.names)}**{tags}: {'; '.join(rich(clause.rich) for clause in one.clauses)}.{note}"


def _validity(view: ReportView, words: Words) -> list[str]:
    reasons = []
    for reason in view.validity.reasons:
        about = ", ".join(escape(link.text) for link in reason.links)
        parts = (
            escape(reason.text),
            about and f"({about})",
            escape(reason.remedy),
            code(reason.command) if reason.command else "",
        )
        reasons.append("- " + " ".join(part for part in parts if part))
    covered = [f"- {item.icon} {escape(item.word)}: {item.count}" for item in view.coverage]
    head = f"## {escape(words.say('Validity'))}: {view.validity.icon} {escape(view.validity.word)}"
    return [head, escape(view.validity.meaning), "\n".join(reasons), "\n".join(covered)]


def _panel(panel: Panel) -> str:
    return f"### {escape(panel.title)}\n\n{escape(panel.about)}\n\n{table(panel.table)}"


def _trouble(one: TroubleView) -> str:
    parts = [f"### {one.icon} {escape(one.cell)}: {escape(one.word)}"]
    parts += [escape(text) for text in (one.reason or one.meaning, one.remedy, one.history)]
    if one.log:
        parts.append(block(one.log))
    parts.append(code(one.command))
    return "\n\n".join(part for part in parts if part)


def _measured(view: ReportView) -> str:
    facts = [
        f"- {escape(fact.label)}: {code(fact.value) if fact.code else escape(fact.value)}"
        + (f" ({escape(fact.note)})" if fact.note else "")
        for fact in view.measured
    ]
    facts += [f"- {escape(one.name)}: {escape(one.found)}, {escape(one.word)}" for one in view.engines]
    return "\n".join(facts)


def _view(cell: CellView) -> str:
    main = _cell_text(cell.main)
    shown = f"**{main}**" if cell.tone in ("good", "bad") and main else main
    note = f"<sup>{cell.note}</sup>" if cell.note is not None else ""
    return "<br>".join((shown + note, *(_cell_text(line) for line in cell.lines)))


def _cell_text(text: str) -> str:
    return escape(text).strip()


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _quoted(found: re.Match[str]) -> str:
    """What would begin a list or a heading: a mark takes a backslash before it, a number behind it."""
    return f"{found[1]}{found[2]}\\" if found[2].isdigit() else f"{found[1]}\\{found[2]}"


def _longest_ticks(text: str) -> int:
    return max((len(run) for run in re.findall("`+", text)), default=0)

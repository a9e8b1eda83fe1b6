"""How cells are called and linked on the page. Names come from the matrix and are cleaned before they are shown."""

from __future__ import annotations

import re
import shlex
import zlib
from collections.abc import Iterable

from orchestrator.exactness.groups import Mark
from orchestrator.report.analysis.findings import CellFinding
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.schema.cell import Role
from orchestrator.schema.record import Engagement
from orchestrator.schema.result import Group
from orchestrator.schema.status import STATUS_RULES, Status

AXES = ("engine", "model", "method", "sampling", "workload")
SECTION_ORDER = (Group.EXACT, Group.OPPORTUNISTIC, Group.UNPROVEN, Group.CONTRADICTED, Group.SYNTHETIC)
"""In which order groups come below the first screen, where contradicted cells stand on top anyway."""


def slug(name: str) -> str:
    """The name as part of an HTML id: itself where it can be, else with a checksum that keeps it apart."""
    shown = re.sub(r"[^A-Za-z0-9._~/-]+", "-", name)
    return shown if shown == name else f"{shown}-{zlib.crc32(name.encode()):08x}"


def cell_anchor(cell_id: str) -> str:
    """Where the figures of a cell stand."""
    return f"cell/{slug(cell_id)}"


def trouble_anchor(cell_id: str) -> str:
    """Where it says why a cell was not measured."""
    return f"trouble/{slug(cell_id)}"


def evidence_anchor(cell_id: str) -> str:
    """Where the exactness checks of a cell stand."""
    return f"evidence/{slug(cell_id)}"


def metric_anchor(metric: str) -> str:
    """Where a metric is defined."""
    return f"metric/{slug(metric)}"


def figure_id(kind: str, key: str) -> str:
    """Short, unique on the page and the same for the same key."""
    return f"f-{kind}-{zlib.crc32(key.encode()):08x}"


def full_name(cell: CellFinding) -> str:
    """``mlx-lm · tiny · draft-k4 · greedy · short``."""
    return " · ".join(clean(cell.name(axis), 60) for axis in AXES) + twin_mark(cell)


def names(cell: CellFinding, *axes: str) -> str:
    """Some of the axes' names in a row."""
    return " · ".join(clean(cell.name(axis), 60) for axis in axes) + twin_mark(cell)


def told_apart(cell: CellFinding, among: Iterable[CellFinding], *, engine: bool = True) -> str:
    """A cell's label within one workload: engine, method and sampling, and the model where there are several."""
    models = {one.name("model") for one in among}
    axes = (*(("engine",) if engine else ()), *(("model",) if len(models) > 1 else ()), "method", "sampling")
    return names(cell, *axes)


def twin_mark(cell: CellFinding) -> str:
    """What tells a twin from its baseline."""
    return " ~" if cell.state.role is Role.TWIN else ""


def link_of(cell: CellFinding) -> str:
    """The anchor that says most about the cell: its figures, or what is wrong; a good twin is in its baseline's row."""
    status = cell.state.status
    if cell.state.role is Role.TWIN and not STATUS_RULES[status].selected_by_failed:
        return "#" + cell_anchor(cell.state.baseline or cell.id)
    return "#" + (cell_anchor(cell.id) if status is Status.OK else trouble_anchor(cell.id))


def rerun(*cells: str) -> str:
    """The command that measures cells again, quoted for a POSIX shell."""
    return "specmatrix rerun " + " ".join(shlex.quote(clean(cell, 400)) for cell in cells)


def group_title(words: Words, group: Group) -> str:
    """The group's name."""
    return {
        Group.EXACT: words.say("Exact"),
        Group.OPPORTUNISTIC: words.say("Opportunistic"),
        Group.UNPROVEN: words.say("Unproven"),
        Group.CONTRADICTED: words.say("Contradicted"),
        Group.SYNTHETIC: words.say("Synthetic"),
        Group.BASELINE: words.say("Baseline"),
    }[group]


def mark_word(words: Words, cell: CellFinding) -> str:
    """How far a claim of exactness was checked, as a tag."""
    word = {
        Mark.PASSED: words.say("checks passed"),
        Mark.PARTLY: words.say("partly tested"),
        Mark.NOT_TESTED: words.say("not tested"),
        Mark.UNSETTLED: words.say("not settled"),
        Mark.NOT_ENGAGED: words.say("nothing drafted"),
        Mark.FAILED: words.say("a check failed"),
    }.get(cell.mark or Mark.NOT_TESTED, "")
    if cell.state.engagement is Engagement.UNVERIFIABLE:
        return words.say("{word}, drafting not reported", word=word)
    return word

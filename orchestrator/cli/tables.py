"""Tables and lines that several commands print."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from orchestrator.schema.hidden import without_hidden
from orchestrator.schema.status import STATUS_RULES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.store.index import Index


def plain(text: object) -> str:
    """Untrusted text for the terminal: no control characters, none that hide or change direction, no markup."""
    return escape(without_hidden(str(text)))


def status_counts(index: Index) -> str:
    """``12 measured · 1 failed · 3 unavailable``."""
    counts = Counter(state.status for state in index.cells.values())
    return " · ".join(f"{counts[status]} {rule.word}" for status, rule in STATUS_RULES.items() if counts[status])


def table(title: str, columns: Iterable[str], rows: Iterable[Iterable[object]]) -> Table:
    """A plain table whose cells are untrusted text."""
    built = Table(title=escape(title), title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        built.add_column(column, overflow="fold")
    for row in rows:
        built.add_row(*(plain(item) for item in row))
    return built

"""Writes the docs pages that come from code: ``python scripts/generate_docs.py`` (``--check`` only compares)."""

from __future__ import annotations

import sys
from pathlib import Path

from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.observation import Absence
from orchestrator.schema.status import STATUS_RULES

DOCS = Path(__file__).resolve().parent.parent / "docs"

ABSENCE_MEANING = {
    Absence.NOT_APPLICABLE: "The metric makes no sense here: a baseline has no acceptance rate.",
    Absence.NOT_REPORTED: "The engine does not say.",
    Absence.NOT_RUN: "Nothing was measured yet.",
    Absence.FAILED: "The trial failed before the value existed.",
    Absence.SUPPRESSED: "Reported but known to be wrong, or a division by nothing.",
}


def metrics_page() -> str:
    """The vocabulary, the absences and the statuses as Markdown."""
    lines = [
        "# Metrics",
        "",
        "Generated from `orchestrator/schema/` by `python scripts/generate_docs.py`; do not edit.",
        "",
        "A metric is name@version, definition, unit, direction, clock and scope. A new definition is a new version.",
        "",
        "| metric | definition | unit | better | clock | scope |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{m.id}` | {m.definition} | {m.unit.value} | {m.better.value} | {m.clock.value} | {m.scope.value} |"
        for m in VOCABULARY.values()
    ]
    lines += [
        "",
        "## Why a value is absent",
        "",
        "None of these is 0, NaN or an empty cell.",
        "",
        "| absence | meaning |",
        "|---|---|",
    ]
    lines += [f"| `{absence.value}` | {ABSENCE_MEANING[absence]} |" for absence in Absence]
    lines += [
        "",
        "## Statuses",
        "",
        "| status | word in the report | makes `run` exit with 1 | … under `--strict` or when named "
        "| selected by `--failed` | validity | meaning |",
        "|---|---|---|---|---|---|---|",
    ]
    lines += [
        f"| `{status.value}` | {rule.word} | {_yes(rule.fails_run)} | {_yes(rule.fails_when_strict)} "
        f"| {_yes(rule.selected_by_failed)} | {rule.validity.value} | {rule.meaning} |"
        for status, rule in STATUS_RULES.items()
    ]
    return "\n".join(lines) + "\n"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


PAGES = {"metrics.md": metrics_page}


def main() -> int:
    """Writes or compares every generated page; returns 1 when one is out of date."""
    stale = 0
    for name, page in PAGES.items():
        path, text = DOCS / name, page()
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{path.name} is out of date; run python scripts/generate_docs.py")
                stale = 1
        else:
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())

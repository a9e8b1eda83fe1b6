"""The answers as plain data: for ``summary.json``, and by category as CSV."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any

from orchestrator.report.analysis.findings import Analysis
from orchestrator.schema.hidden import inert

if TYPE_CHECKING:
    from orchestrator.report.analysis.findings import CellFinding
    from orchestrator.report.analysis.quality_findings import CategoryQuality, Quality
    from orchestrator.schema.result import Estimate
    from orchestrator.stats.tasks import PairedTruth

_PAIRED = (
    "n", "on", "off", "open_on", "open_off", "lost", "gained", "undetermined", "mixed", "p_value", "test", "losable",
    "detectable", "net_loss_limit",
)  # fmt: skip
COLUMNS = (
    "cell", "category", "answers", "metric", "ratio", "low", "high", "drafted", "accepted", "refused", "discarded",
    "acceptance", *(f"valid_{name}" for name in _PAIRED), *(f"correct_{name}" for name in _PAIRED), "degenerate",
)  # fmt: skip


def quality_data(found: Quality | None) -> dict[str, Any] | None:
    """Tasks and broken answers of a cell; ``null`` where nothing was measured."""
    if found is None:
        return None
    broken = found.broken
    return {
        "answers": found.answers,
        "graded": found.graded,
        "valid": _paired(found.valid),
        "correct": _paired(found.correct),
        "degenerate": {
            "pairs": broken.pairs, "on": broken.on, "off": broken.off, "alone_on": broken.alone_on,
            "alone_off": broken.alone_off, "both": broken.both, "kinds": list(broken.kinds),
            "example": found.example or None, "not_ranked": broken.refusal or None,
        },
        "by_category": [
            {
                "category": one.category,
                "answers": one.answers,
                "metric": one.metric,
                "ratio": _estimate(one.wait),
                "why": one.why or None,
                "valid": _paired(one.valid),
                "correct": _paired(one.correct),
                "degenerate": one.broken,
            }
            for one in found.by_category
        ],
    }  # fmt: skip


def categories_csv(analysis: Analysis) -> str:
    """One line per cell and category; an empty field is what does not apply or is not known."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for cell in analysis.cells:
        for one in cell.quality.by_category if cell.quality is not None else ():
            writer.writerow(_line(cell, one))
    return out.getvalue()


def _line(cell: CellFinding, one: CategoryQuality) -> list[object]:
    drafts = cell.drafting.categories if cell.drafting is not None else ()
    drafted = next((each for each in drafts if each.category == one.category), None)
    totals, rate = (drafted.totals, drafted.rate) if drafted is not None else (None, None)
    wait = one.wait
    return [
        inert(cell.id), inert(one.category), one.answers, one.metric,
        *((wait.point, _or_empty(wait.low), _or_empty(wait.high)) if wait is not None else ("", "", "")),
        *((totals.drafted, totals.accepted, _or_empty(totals.refused), _or_empty(totals.discarded))
          if totals is not None else ("", "", "", "")),
        rate.point if rate is not None else "",
        *_fields(one.valid), *_fields(one.correct), one.broken,
    ]  # fmt: skip


def _fields(found: PairedTruth | None) -> list[object]:
    if found is None:
        return ["" for _ in _PAIRED]
    return [_or_empty(getattr(found, name)) for name in _PAIRED]


def _paired(found: PairedTruth | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        **{name: getattr(found, name) for name in _PAIRED}, "trials_on": found.trials_on, "trials_off": found.trials_off
    }  # fmt: skip


def _estimate(one: Estimate | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {"point": one.point, "low": one.low, "high": one.high, "level": one.level, "n": one.n, "method": one.method}


def _or_empty(value: object) -> object:
    return "" if value is None else value

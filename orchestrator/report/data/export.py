"""The figures as CSV inside a page that does not hold them all as JSON, so that they can be taken out of it."""

from __future__ import annotations

import csv
import io
import re

from orchestrator.report.analysis.findings import Analysis
from orchestrator.schema.hidden import inert
from orchestrator.schema.metrics import VOCABULARY

COLUMNS = (
    "cell", "status", "group", "metric", "unit", "median", "mad", "n", "absent", "ratio", "low", "high", "outcome",
)  # fmt: skip
_ESCAPED = re.compile(r"[^A-Za-z0-9 _.,:;/~()\[\]@!*+=-]")


def figures_csv(analysis: Analysis) -> str:
    """One line per cell and metric: medians in base units, ratios to the baseline, absences by name."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for cell in analysis.cells:
        head = (inert(cell.id), cell.state.status.value, cell.group.value)
        for metric in sorted({*cell.summaries, *cell.missing}):
            found, row = cell.summaries.get(metric), cell.comparisons.get(metric)
            ratio = row.ratio if row is not None else None
            writer.writerow((
                *head, metric, VOCABULARY[metric].unit.value,
                *((f"{found.median:.7g}", f"{found.mad:.7g}", found.n, "") if found is not None
                  else ("", "", "", cell.missing[metric].absence.value)),
                *((f"{ratio.point:.6g}", _optional(ratio.low), _optional(ratio.high)) if ratio is not None
                  else ("", "", "")),
                row.outcome.value if row is not None else "",
            ))  # fmt: skip
    return out.getvalue()


def data_address(text: str) -> str:
    """The text as an address that downloads it; percent-encoded as little as an attribute bears."""

    def encode(match: re.Match[str]) -> str:
        return "".join(f"%{byte:02X}" for byte in match.group().encode("utf-8", "replace"))

    return "data:text/csv;charset=utf-8," + _ESCAPED.sub(encode, text)


def _optional(value: float | None) -> str:
    return f"{value:.6g}" if value is not None else ""

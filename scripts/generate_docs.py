"""Writes the docs pages that come from code: ``python scripts/generate_docs.py`` (``--check`` only compares)."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from orchestrator.registry import BUILT_IN
from orchestrator.registry import adapter as find_adapter
from orchestrator.schema.adapter import Adapter, EngineIdentity
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.metrics import VOCABULARY, Scope
from orchestrator.schema.observation import Absence
from orchestrator.schema.status import STATUS_RULES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GOLDEN = ROOT / "tests" / "golden"
PER_PROCESS = " (whole process)"

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


@dataclass(frozen=True)
class Capture:
    """A golden capture as far as this page needs it: its cell, and what its adapter reads from it."""

    cell: Cell
    expected: Mapping[str, Any]

    @property
    def observations(self) -> list[Mapping[str, Any]]:
        """Of a trial and its session; none where the trial could not be read, or is not what its cell asks for."""
        trial = self.expected["trial"] or {}
        if self.expected["refusal"] is not None or trial.get("problems") or "observations" not in trial:
            return []
        return [*trial["observations"], *(_of_process(item) for item in self.expected["session"])]


def _of_process(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A figure of trials that the engine tells for its whole process only goes by a name of its own."""
    known = VOCABULARY[item["metric"]].scope is Scope.TRIAL
    return {**item, "metric": item["metric"] + PER_PROCESS} if known else item


def engines_page() -> str:
    """Engine × method × what is reported × how verified, from the adapters and their golden captures."""
    lines = [
        "# Engines",
        "",
        "Generated from the adapters and their golden captures by `python scripts/generate_docs.py`; do not edit.",
        "",
        "A golden capture is the unmodified output of a real run, kept in `tests/golden/` with what the adapter reads "
        "from it. *Captures* counts them; a method with 0 was never run here. Names are those of "
        "[metrics](metrics.md). *Sometimes* means that a capture of the method lacks the figure: its reason then "
        "stands beside it in a run. The claimed rule is the engine's; whether it holds is measured, not claimed.",
    ]
    for name in BUILT_IN:
        lines += _engine(name, find_adapter(name))
    return "\n".join(lines) + "\n"


def _engine(name: str, adapter: Adapter) -> list[str]:
    groups: dict[str, list[Capture]] = {label: [] for label in _declared(adapter)}
    for path in sorted((GOLDEN / name).glob("*/cell.json")):
        one = _capture(path.parent)
        groups.setdefault(_label(one.cell), []).append(one)
    told = {label: _told(found) for label, found in groups.items() if found}
    of_all = set.intersection(*(set(one.always) for one in told.values()))
    drafting = [set(one.always) for label, one in told.items() if label != MethodKind.NONE]
    of_drafting = set.intersection(*drafting) - of_all if drafting else set()
    how = f"{adapter.verified.value}; pinned version: {_pinned(name)}"
    lines = [
        "",
        f"## `{name}`: {adapter.title}",
        "",
        f"Driven as {adapter.shape.value.replace('_', '-')}; {how}.",
        "",
        f"Reported for every method: {_names(of_all)}.",
        "",
        f"And for every method that speculates: {_names(of_drafting)}.",
        "",
        "| method | captures | how verified | claimed rule | reported besides | sometimes | not reported |",
        "|---|---|---|---|---|---|---|",
    ]
    common = of_all | of_drafting
    return lines + [_row(label, found, told.get(label), common, adapter) for label, found in groups.items()]


@dataclass(frozen=True)
class Told:
    """Metrics that all captures of a method have, that some have, and that the engine does not tell."""

    always: tuple[str, ...]
    sometimes: tuple[str, ...]
    never: tuple[str, ...]


def _told(captures: list[Capture]) -> Told:
    seen: dict[str, list[Mapping[str, Any]]] = {}
    for one in captures:
        for item in one.observations:
            seen.setdefault(item["metric"], []).append(item)
    known = {metric: [item for item in items if item["absent"] is None] for metric, items in seen.items()}
    return Told(
        tuple(metric for metric in seen if len(known[metric]) == len(seen[metric])),
        tuple(metric for metric in seen if 0 < len(known[metric]) < len(seen[metric])),
        tuple(metric for metric in seen if not known[metric] and seen[metric][0]["absent"] == "not_reported"),
    )


def _capture(folder: Path) -> Capture:
    cell = TypeAdapter(Cell).validate_json((folder / "cell.json").read_text(encoding="utf-8"))
    return Capture(cell, json.loads((folder / "expected.json").read_text(encoding="utf-8")))


def _declared(adapter: Adapter) -> Iterable[str]:
    """Each method, and each variant of it that its options name."""
    for kind, schema in adapter.method_options.items():
        drafter = schema.model_json_schema().get("properties", {}).get("drafter")
        for variant in drafter["enum"] if drafter is not None else (None,):
            default = variant is None or variant == drafter["default"]
            yield kind.value if default else f"{kind.value}, {variant}"


def _label(cell: Cell) -> str:
    options = cell.method.options
    chain = options.get("chain")
    parts = [
        cell.method.kind.value,
        options.get("drafter"),
        "probabilistic" if options.get("acceptance") == "probabilistic" else None,
        f"chain with ngram {chain.get('drafter', 'simple')}" if isinstance(chain, Mapping) else None,
        "synthetic acceptance" if options.get("synthetic") else None,
        "head file" if cell.model.mtp is not None else None,
    ]
    return ", ".join(part for part in parts if part)


def _row(label: str, captures: list[Capture], told: Told | None, common: set[str], adapter: Adapter) -> str:
    claims = {adapter.exactness(one.cell, EngineIdentity()) for one in captures}
    rules = sorted({claim.rule.value + (", not exact" if claim.exact is False else "") for claim in claims})
    cells = [label, str(len(captures)), adapter.verified.value if captures else "from source only"]
    cells.append(" · ".join(rules) or "—")
    if told is None:
        cells += ["—"] * 3
    else:
        cells += [_names(set(told.always) - common), _names(told.sometimes), _names(told.never)]
    return "| " + " | ".join(cells) + " |"


def _names(metrics: Iterable[str]) -> str:
    order = [name for metric in VOCABULARY for name in (metric, metric + PER_PROCESS)]
    wanted = set(metrics)
    return ", ".join(f"`{name}`" for name in order if name in wanted) or "—"


def _pinned(name: str) -> str:
    """The last column of the README's table, where the versions are kept."""
    row = re.search(rf"^\| `{name}` \|.*\| ([^|]+) \|$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    return row[1] if row is not None else "none"


PAGES = {"metrics.md": metrics_page, "engines.md": engines_page}


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

"""Writes what the docs take from code: ``python scripts/generate_docs.py`` (``--check`` only compares).

These are ``docs/metrics.md``, ``docs/engines.md`` and the engines table of the README, between its two marks.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from orchestrator.registry import BUILT_IN
from orchestrator.registry import adapter as find_adapter
from orchestrator.schema.adapter import Adapter, EngineIdentity, Verified
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.metrics import VOCABULARY, Scope
from orchestrator.schema.observation import Absence
from orchestrator.schema.status import STATUS_RULES

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
GOLDEN = ROOT / "tests" / "golden"
README = ROOT / "README.md"
PER_PROCESS = " (whole process)"
FROM_SOURCE = "from-source"
"""A file of this name marks a golden capture that no engine wrote."""

FROM, TO = "<!-- engines: by scripts/generate_docs.py -->", "<!-- /engines -->"
"""Between these marks the README's table stands."""

EXTRAS = {
    "llama_cpp_embedded": "llama-cpp",
    "llama_cpp_python": "llama-cpp-python",
    "mlx_lm": "mlx",
    "mlx_vlm": "mlx-vlm",
}
"""The extra of ``pyproject.toml`` that pins an adapter's engine."""

PINNED = {
    "llama_cpp": "b11434",
    "slipstream": "v26.10.4",
    "ds4": "8d57664 (May 2026)",
    "omlx": "flyto-mlx 0.7.0 (fork)",
    "mtplx": "2.12.2",
}
"""Versions of engines that no extra installs: what the adapter was written and tested against."""

PINNED_IDENTITY = {"slipstream": EngineIdentity(version="26.10.4", capabilities=frozenset({"residual sampling"}))}
"""What the pinned version says of itself, where the claimed rule depends on it."""

SHORT = {
    "drafted_tokens": "drafted",
    "accepted_tokens": "accepted",
    "verify_rounds": "rounds",
    "target_passes": "passes",
    "accepted_by_position": "by position",
    "draft_time": "draft time",
    "draft_time" + PER_PROCESS: "draft time (whole process)",
    "verify_time": "verify time",
    "engine_prefill_time": "prefill time",
    "engine_decode_rate": "decode rate",
    "engine_peak_memory": "peak memory",
    "engine_buffers": "buffers",
}
"""Figures of the engine's own that the README names; docs/engines.md has all of them."""

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
    real: bool = True
    """Whether an engine wrote all of it; a case with a file ``from-source`` holds lines written after its source."""

    @property
    def as_asked(self) -> bool:
        """Whether something was drafted where the method is one that drafts."""
        drafted = (item["value"] for item in self.observations if item["metric"] == "drafted_tokens")
        return self.cell.method.kind is MethodKind.NONE or any(drafted)

    @property
    def observations(self) -> list[Mapping[str, Any]]:
        """Of a trial and its session; none where the trial could not be read, or is not what its cell asks for."""
        trial = self.expected["trial"] or {}
        if self.expected["refusal"] is not None or trial.get("problems") or "observations" not in trial:
            return []
        if self.cell.method.kind is MethodKind.NONE and any(
            item["metric"] == "drafted_tokens" and item["value"] for item in trial["observations"]
        ):
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
        "from it; those of an adapter verified from source only come from a stand-in written from that source, and "
        "those counted as *from source* have log lines in them that were written so. "
        "*Captures* counts them; a method with 0 was never run here. Names are those of "
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
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return Capture(cell, expected, not (folder / FROM_SOURCE).exists() and not folder.name.startswith("source-"))


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
        # With ds4 a module is a file unless the drafter says otherwise, so that it tells nothing apart.
        "head file" if (cell.model.mtp or "").endswith(".gguf") and cell.engine.adapter != "ds4" else None,
        "drafter folder" if cell.engine.adapter == "omlx" and cell.model.mtp is not None else None,
    ]
    return ", ".join(part for part in parts if part)


def _row(label: str, captures: list[Capture], told: Told | None, common: set[str], adapter: Adapter) -> str:
    written = sum(not one.real for one in captures)
    stand_in = f" ({written} from source)" if written else ""
    cells = [label, f"{len(captures)}{stand_in}", _verified(captures, adapter)]
    cells.append(_rules(captures, adapter))
    if told is None:
        cells += ["—"] * 3
    else:
        cells += [_names(set(told.always) - common), _names(told.sometimes), _names(told.never)]
    return "| " + " | ".join(cells) + " |"


def _verified(captures: Iterable[Capture], adapter: Adapter) -> str:
    """The adapter's word, where an engine wrote at least one of the captures, and drafted in it if it should."""
    return adapter.verified.value if any(one.real and one.as_asked for one in captures) else Verified.SOURCE.value


def _rules(captures: Iterable[Capture], adapter: Adapter) -> str:
    identity = PINNED_IDENTITY.get(adapter.name, EngineIdentity())
    claims = {adapter.exactness(one.cell, identity) for one in captures}
    rules = sorted({claim.rule.value + (", not exact" if claim.exact is False else "") for claim in claims})
    return " · ".join(rules) or "—"


def _names(metrics: Iterable[str]) -> str:
    order = [name for metric in VOCABULARY for name in (metric, metric + PER_PROCESS)]
    wanted = set(metrics)
    return ", ".join(f"`{name}`" for name in order if name in wanted) or "—"


def _pinned(name: str) -> str:
    """The versions that the adapter's extra installs, or those it was written against."""
    if name not in EXTRAS:
        return PINNED.get(name, "none")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = project["optional-dependencies"][EXTRAS[name]]
    pins = (re.match(r"([\w.-]+)(?:\[[\w,]+\])?==([\w.]+)", one) for one in wanted)
    return ", ".join(dict.fromkeys(f"{pin[1]} {pin[2]}" for pin in pins if pin is not None))


def readme() -> str:
    """The README with its engines table anew: engine × method × what is reported × claimed rule × verified × pinned.

    Raises:
        ValueError: the marks are not there, once each and in order.
    """
    text = README.read_text(encoding="utf-8")
    if text.count(FROM) != 1 or text.count(TO) != 1 or text.index(FROM) > text.index(TO):
        raise ValueError(f"README.md needs {FROM} and {TO}, once each and in this order")
    before, rest = text.split(FROM)
    return "".join((before, FROM, "\n", _engines_table(), TO, rest.split(TO)[1]))


def _engines_table() -> str:
    lines = [
        "| adapter | engine | method | it reports | claimed acceptance rule | how verified | pinned version |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in BUILT_IN:
        adapter = find_adapter(name)
        captures = [_capture(path.parent) for path in sorted((GOLDEN / name).glob("*/cell.json"))]
        alike: dict[tuple[str, str, str], list[str]] = {}
        for kind in adapter.method_options:
            mine = [one for one in captures if one.cell.method.kind is kind]
            how = _verified(mine, adapter)
            alike.setdefault((_short(mine), _rules(mine, adapter), how), []).append(kind.value)
        for told, kinds in alike.items():
            cells = (f"`{name}`", adapter.title, ", ".join(kinds), *told, _pinned(name))
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _short(captures: list[Capture]) -> str:
    told = _told(captures)
    known = {*told.always, *told.sometimes}
    return ", ".join(word for metric, word in SHORT.items() if metric in known) or "—"


PAGES = {DOCS / "metrics.md": metrics_page, DOCS / "engines.md": engines_page, README: readme}


def main() -> int:
    """Writes or compares every generated page; returns 1 when one is out of date."""
    stale = 0
    for path, page in PAGES.items():
        text = page()
        if "--check" in sys.argv:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                print(f"{path.name} is out of date; run python scripts/generate_docs.py")
                stale = 1
        else:
            path.write_text(text, encoding="utf-8")
    return stale


if __name__ == "__main__":
    sys.exit(main())

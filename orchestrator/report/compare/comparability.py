"""May a cell of one run be compared with the same cell of another? A named list of what must agree decides.

The idea is pyperf's: figures whose conditions differ are refused by name, with both values, never quietly compared.
What may differ is what is compared: engine versions, our own version, the operating system's release, the dates.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.report.analysis.measures import arm_of
from orchestrator.report.language.words import Words, mark
from orchestrator.report.page.first_screen.context import run_settings
from orchestrator.schema.status import STATUS_RULES

if TYPE_CHECKING:
    from orchestrator.schema.record import RunHeader
    from orchestrator.store.index import Index
    from orchestrator.store.states import CellState

NOT_RECORDED = mark("not recorded")
HOST_MUST_AGREE = (
    "machine_model", "cpu", "architecture", "cores_usable", "memory_bytes", "memory_limit_bytes", "governor", "power",
    "gpu_wired_limit_bytes",
)  # fmt: skip
"""What makes it the same machine in the same state of power."""
HOST_MAY_DIFFER = ("os", "os_version", "kernel", "python")
SETTINGS_MUST_AGREE = ("environment", "reserve")
"""Of the run's settings: whether other programs ran meanwhile, and what memory was kept for them."""
FREE_SETTINGS = frozenset({
    "engine.binary", "engine.python", "engine.pin", "engine.allow_unpinned", "model.target", "model.drafts",
    "model.mtp", "workload.prompts", "workload.format",
})  # fmt: skip
"""Where files lie and what is pinned: hashes of the files and the engine's identity say what matters."""
SINCE_DEFAULTS: dict[str, str] = {"workload.template": "raw", "workload.cache": "cold"}
"""Settings that older runs do not record, with the value that they had in effect."""
FREE_MEASURING = frozenset({"sessions", "adaptive"})
"""Of the measuring settings: how many sessions there are widens an interval and moves nothing."""
CHANGING = frozenset({"charge_percent"})


@dataclass(frozen=True, slots=True)
class Difference:
    """A named condition with its value in the first and in the second run."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.name}: {self.before} ≠ {self.after}"


@dataclass(frozen=True, slots=True)
class Conditions:
    """What forbids a comparison, and what has changed without forbidding it."""

    refused: tuple[Difference, ...]
    changed: tuple[Difference, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A run as two of them are compared: its header and its index."""

    header: RunHeader
    index: Index


def of_runs(before: Run, after: Run) -> Conditions:
    """What holds for every cell: the machine, its state, the environment."""
    one, two = _host(before), _host(after)
    refused = [*_differing(one, two, HOST_MUST_AGREE, "host")]
    settings = run_settings(before.index), run_settings(after.index)
    refused += _differing(*settings, SETTINGS_MUST_AGREE, "run")
    changed = [*_differing(one, two, HOST_MAY_DIFFER, "host")]
    tool = Difference("specmatrix", before.header.tool_version, after.header.tool_version)
    changed += [tool] if tool.before != tool.after else []
    return Conditions(tuple(refused), tuple(changed))


def of_cells(before: CellState, after: CellState) -> Conditions:
    """What holds for one cell, apart from its baseline: settings, files, prompts, measuring, definitions, status."""
    settings = _all(*(SINCE_DEFAULTS | _flat("", one.settings) for one in (before, after)))
    refused = [item for item in settings if not _free(item.name, FREE_SETTINGS)]
    refused += _definitions(before, after)
    changed: list[Difference] = []
    facts = _facts(before, after)
    refused += facts.refused
    changed += facts.changed
    refused += _status(before, after)
    changed += _claims(before, after)
    changed += _all(_effective(before), _effective(after))
    return Conditions(tuple(refused), tuple(changed))


def _facts(before: CellState, after: CellState) -> Conditions:
    """By the facts that the fingerprint hashes; without them (older runs) equal fingerprints are enough."""
    if before.fingerprint == after.fingerprint:
        return Conditions((), ())
    if not before.facts or not after.facts:
        names = (NOT_RECORDED if not state.facts else f"fingerprint {state.fingerprint}" for state in (before, after))
        return Conditions((Difference("facts", *names),), ())
    refused: list[Difference] = []
    changed: list[Difference] = []
    for item in _all(_measuring(before.facts), _measuring(after.facts)):
        free = item.name.startswith("engine.") or item.name.removeprefix("run.") in FREE_MEASURING
        (changed if free else refused).append(item)
    return Conditions(tuple(refused), tuple(changed))


def _measuring(facts: Mapping[str, str]) -> dict[str, str]:
    """The facts with the measuring settings, one line among them, taken apart."""
    found = {name: value for name, value in facts.items() if name != "run"}
    for part in facts.get("run", "").split():
        name, _, value = part.partition("=")
        found[f"run.{name}"] = value or "yes"
    return found


def _definitions(before: CellState, after: CellState) -> list[Difference]:
    """Metrics that both runs have, under another definition of ours: that is another quantity."""
    one, two = _defined(before), _defined(after)
    shared = [name for name in one if name in two]
    return _all({name: one[name] for name in shared}, {name: two[name] for name in shared})


def _defined(state: CellState) -> dict[str, str]:
    trials = arm_of(state, state.attempt).trials
    return {
        f"definition of {item.metric}": item.definition
        for trial in trials[:1]
        for item in trial.observations
        if item.definition.startswith(f"{item.metric}@")
    }


def _status(before: CellState, after: CellState) -> list[Difference]:
    good = [STATUS_RULES[state.status].ranked and bool(state.trials) for state in (before, after)]
    if all(good):
        return []
    return [Difference("status", STATUS_RULES[before.status].word, STATUS_RULES[after.status].word)]


def _claims(before: CellState, after: CellState) -> list[Difference]:
    one, two = (state.claim.rule.value if state.claim is not None else "none" for state in (before, after))
    return [Difference("acceptance rule claimed", one, two)] if one != two else []


def _effective(state: CellState) -> dict[str, str]:
    """Settings in effect by the engine's own word in the last session."""
    session = state.sessions[-1] if state.sessions else None
    return {f"in effect: {one.name}": one.effective or "unknown" for one in (session.conditions if session else ())}


def _host(run: Run) -> dict[str, Any]:
    host = dict(run.header.host)
    power = host.get("power")
    if isinstance(power, Mapping):
        host["power"] = {name: value for name, value in power.items() if name not in CHANGING}
    return host


def _differing(
    before: Mapping[str, Any], after: Mapping[str, Any], names: Iterable[str], prefix: str
) -> list[Difference]:
    """Only the named ones; one that neither run recorded says nothing."""
    found = []
    for name in names:
        one, two = _text(before.get(name)), _text(after.get(name))
        if one != two:
            found.append(Difference(f"{prefix}.{name}", one, two))
    return found


def _all(before: Mapping[str, str], after: Mapping[str, str]) -> list[Difference]:
    names = dict.fromkeys((*before, *after))
    pairs = ((name, before.get(name, NOT_RECORDED), after.get(name, NOT_RECORDED)) for name in names)
    return [Difference(name, one, two) for name, one, two in pairs if one != two]


def _free(name: str, free: frozenset[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in free)


def _flat(prefix: str, value: object) -> dict[str, str]:
    if isinstance(value, Mapping) and value:
        found: dict[str, str] = {}
        for key, item in value.items():
            found |= _flat(f"{prefix}.{key}" if prefix else str(key), item)
        return found
    return {prefix: _text(value)}


def _text(value: object) -> str:
    if value is None:
        return NOT_RECORDED
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def in_words(item: Difference, words: Words) -> tuple[str, str]:
    """Both values, with our own word for what was not recorded translated."""
    one, two = (words.say(NOT_RECORDED) if value == NOT_RECORDED else value for value in (item.before, item.after))
    return one, two

"""What was measured, on what machine, with which engines and settings."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.host.state import concerns
from orchestrator.report.analysis.findings import Analysis
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.first_screen import EngineView
from orchestrator.report.model.parts import Fact
from orchestrator.schema import units
from orchestrator.schema.record import RunHeader

if TYPE_CHECKING:
    from orchestrator.schema.adapter import EngineIdentity
    from orchestrator.store.index import Index


def run_settings(index: Index) -> Mapping[str, Any]:
    """The settings of the newest matrix revision; empty for a run that never got that far."""
    return index.matrix.run_settings if index.matrix is not None else {}


def listed(settings: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """A list of names among the settings, cleaned; empty when it is not there."""
    value = settings.get(key) or ()
    return tuple(clean(str(item), 80) for item in value) if isinstance(value, list | tuple) else ()


def measured(analysis: Analysis, header: RunHeader, index: Index, words: Words) -> tuple[Fact, ...]:
    """Machine, dates, amount and the command that repeats it."""
    settings = run_settings(index)
    facts = [Fact(words.say("Machine"), machine(header.host) or words.say("not recorded"))]
    facts.append(Fact(words.say("When"), _when(header, index, words)))
    sessions, trials = settings.get("sessions"), settings.get("trials")
    if sessions and trials:
        amount = words.say(
            "{sessions} sessions × {answers} (preset {preset}), order {order}",
            sessions=_sessions(settings),
            answers=answers_per_cell(index, trials, words),
            preset=clean(str(settings.get("preset", "?"))),
            order=clean(str(settings.get("order", "?"))),
        )
        facts.append(Fact(words.say("Amount"), amount))
    answers = sum(
        len(cell.summaries["e2e_latency"].values) for cell in analysis.cells if "e2e_latency" in cell.summaries
    )
    facts.append(Fact(words.say("Answers"), words.say("{n} measured answers pooled, warm-ups apart", n=answers)))
    if settings.get("environment"):
        reserve = settings.get("reserve") or ()
        note = ", ".join(f"{clean(str(r['name']), 60)} {units.size(r['bytes'])}" for r in reserve)
        facts.append(
            Fact(
                words.say("Environment"),
                clean(str(settings["environment"])),
                words.say("reserved: {what}", what=note) if note else "",
            )
        )
    warm = _heat_and_power(index, words)
    if warm:
        facts.append(Fact(words.say("Heat and power"), "; ".join(warm)))
    facts.append(Fact(words.say("Again"), clean(header.command, 600), code=True))
    return tuple(facts)


def answers_per_cell(index: Index, trials: int, words: Words) -> str:
    """``3 answers per cell, 4 in tasks``: a workload may have its own number in place of the run's.

    Args:
        index: the run; its cells tell which workloads there are.
        trials: the run's number, told first if any workload has it.
        words: the catalogue.
    """
    own = {
        str(workload["name"]): int(workload.get("trials") or trials)
        for workload in (state.settings["workload"] for state in index.cells.values())
    }
    usual = trials if not own or trials in own.values() else next(iter(own.values()))
    parts = [words.count("{number} answer per cell", "{number} answers per cell", usual)]
    parts += [
        words.say("{n} in {workload}", n=number, workload=clean(name, 60))
        for name, number in own.items()
        if number != usual
    ]
    return ", ".join(parts)


def _sessions(settings: Mapping[str, Any]) -> str:
    """``4``, or ``4–20`` where a run stops when it is precise enough."""
    adaptive = settings.get("adaptive")
    most = adaptive.get("max_sessions") if isinstance(adaptive, Mapping) else None
    return f"{settings['sessions']}–{most}" if most else str(settings["sessions"])


def _heat_and_power(index: Index, words: Words) -> tuple[str, ...]:
    """What the machine's state at the start and end of sessions gives reason to doubt, each with how many sessions."""
    counts: Counter[str] = Counter()
    for state in index.cells.values():
        for session in (*state.sessions, *state.failed_sessions):
            start, end = session.host.get("start"), session.host.get("end")
            if isinstance(start, Mapping) and isinstance(end, Mapping):
                counts.update(concerns(dict(start), dict(end)))
    return tuple(f"{words.said(clean(text, 160))} ({number})" for text, number in counts.most_common(5))


def machine(host: Mapping[str, Any]) -> str:
    """The machine in a line, from whatever the header holds of it."""
    parts = []
    for keys in (("model", "machine_model"), ("cpu", "chip", "processor"), ("os", "system", "platform")):
        value = next((host[key] for key in keys if isinstance(host.get(key), str) and host[key]), None)
        if value is not None:
            parts.append(clean(value, 100))
    memory = next((host[key] for key in ("memory_bytes", "total_memory_bytes") if isinstance(host.get(key), int)), None)
    if memory:
        parts.append(units.size(memory))
    return " · ".join(dict.fromkeys(parts))


def _when(header: RunHeader, index: Index, words: Words) -> str:
    stamps = sorted(
        stamp for state in index.cells.values() for s in state.sessions for stamp in (s.started_utc, s.ended_utc)
    )
    first, last = (stamps[0], stamps[-1]) if stamps else (header.created_utc, header.created_utc)
    if first[:10] == last[:10]:
        until = f"–{last[11:16]}" if first != last else ""
        return f"{words.date(first)} {first[11:16]}{until} UTC"
    return f"{words.date(first)} {first[11:16]} – {words.date(last)} {last[11:16]} UTC"


def engines(index: Index, words: Words) -> tuple[EngineView, ...]:
    """Each engine as it was found, against its pin."""
    if index.matrix is None:
        return ()
    settings = run_settings(index)
    pins, mismatches = settings.get("pins") or {}, settings.get("mismatches") or {}
    unpinned = listed(settings, "unpinned")
    found = []
    for name, identity in index.matrix.engines.items():
        pin = pins.get(name) if name in pins else _pin_of(index, name)
        word, tone = words.say("as pinned"), "good"
        if identity.unavailable is not None:
            word, tone = words.say("not on this machine"), "ask"
        elif name in mismatches:
            word, tone = words.say("not the pinned version: {why}", why=words.said(clean(str(mismatches[name])))), "bad"
        elif pin is None:
            word, tone = words.say("pin not recorded"), "ask"
        elif not pin or name in unpinned:
            word, tone = words.say("unpinned"), "ask"
        shown = ", ".join(f"{clean(str(k), 40)} {clean(str(v), 40)}" for k, v in (pin or {}).items()) or words.say(
            "none"
        )
        found.append(
            EngineView(clean(name, 60), _found(identity, words), shown, word, tone, _identity(identity, words))
        )
    return tuple(found)


def _pin_of(index: Index, engine: str) -> Mapping[str, Any] | None:
    """The pin as the engine's cells have it; ``None`` where no cell tells."""
    for state in index.cells.values():
        config = state.settings["engine"]
        if config["name"] == engine:
            pin = config.get("pin")
            return pin if isinstance(pin, Mapping) else {}
    return None


def _found(identity: EngineIdentity, words: Words) -> str:
    if identity.unavailable is not None:
        return words.said(clean(identity.unavailable, 300))
    version = identity.version or (None if identity.build else words.say("version not told"))
    parts = [version, identity.build and words.say("build {build}", build=identity.build), identity.backend]
    return " · ".join(clean(str(part), 80) for part in parts if part)


def _identity(identity: EngineIdentity, words: Words) -> tuple[Fact, ...]:
    rows = [(words.say("commit"), identity.commit), (words.say("binary sha256"), identity.binary_sha256)]
    rows += [(key, value) for key, value in sorted(identity.facts.items()) if key != "sha256"]
    if identity.capabilities:
        rows.append((words.say("capabilities"), ", ".join(sorted(identity.capabilities))))
    return tuple(Fact(clean(label, 60), clean(value, 300), code=True) for label, value in rows if value)


def environment(header: RunHeader, index: Index, words: Words) -> tuple[Fact, ...]:
    """All that is known of the machine and the run's settings, one line a fact."""
    facts = [
        Fact(words.say("run"), clean(header.run, 200), code=True),
        Fact(words.say("made by"), f"specmatrix {clean(header.tool_version, 40)}, schema {header.schema}"),
        Fact(words.say("matrix"), clean(header.matrix_path, 300), code=True),
    ]
    facts += _flat("", header.host)
    facts += _flat("run.", {k: v for k, v in run_settings(index).items() if k not in ("pins", "mismatches")})
    return tuple(facts)


def _flat(prefix: str, values: Mapping[str, Any]) -> list[Fact]:
    found = []
    for key, value in sorted(values.items()):
        if isinstance(value, Mapping):
            found += _flat(f"{prefix}{key}.", value)
        else:
            text = (
                value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)
            )
            found.append(Fact(clean(f"{prefix}{key}", 80), clean(text, 400), code=True))
    return found

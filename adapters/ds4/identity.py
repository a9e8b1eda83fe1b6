"""Who this ds4 is: it has no version, so the commit of its checkout, its bytes, and the options that it knows."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from adapters.ds4.options import MAY, SEPTEMBER, Ds4Options
from orchestrator.schema.adapter import EngineIdentity, Probe, ProbeOutput
from orchestrator.schema.cell import EngineConfig

BETWEEN = "between"
"""A build with ``--mtp FILE`` and ``--dspark``: its flags are of neither generation (July and August 2026)."""

FILE_MTP = "--mtp FILE"
"""The capability of a build whose ``--mtp`` takes a file; a bare ``--mtp`` is the other generation's."""

SOURCE_FILE = "ds4.c"
"""Tracked by the project's repository: a checkout without it is some other repository that holds the binary."""

COMMANDS: Mapping[str, str] = {"command": "ds4", "server": "ds4-server"}

_ENTRY = re.compile(r"^\s{2}(-\S.*?)(?:\s{2,}|$)", re.MULTILINE)
_OPTION = re.compile(r"--[a-z][a-z0-9-]*")


def binary_of(config: EngineConfig) -> str:
    """The command of the engine's entry, by default the one of its mode, looked up on ``PATH``."""
    return config.binary or COMMANDS.get(_mode(config), "ds4")


def home_of(config: EngineConfig) -> Path | None:
    """The folder that the binary lies in; ``None`` where it is not found."""
    found = shutil.which(binary_of(config))
    return Path(found).resolve().parent if found is not None else None


def probe_commands(config: EngineConfig) -> tuple[Probe, ...]:
    """Help in both forms (builds from June 2026 on keep the flags of speculation on a page of their own), and git."""
    binary = binary_of(config)
    probes = [Probe("help", (binary, "--help")), Probe("help_all", (binary, "--help", "all"))]
    home = home_of(config)
    if home is not None:
        git = ("git", "-C", str(home))
        probes += [
            Probe("checkout", (*git, "ls-files", "--error-unmatch", SOURCE_FILE)),
            Probe("commit", (*git, "rev-parse", "HEAD")),
            Probe("changes", (*git, "status", "--porcelain", "--untracked-files=no")),
        ]
    return tuple(probes)


def identify(config: EngineConfig, outputs: Mapping[str, ProbeOutput], hint: str) -> EngineIdentity:
    """Commit, generation and options, or why there is no engine and how to get it."""
    binary, wanted = binary_of(config), COMMANDS.get(_mode(config), "ds4")
    said = outputs.get("help")
    if said is None or said.error is not None:
        why = said.error if said is not None and said.error else f"{binary}: it was not probed"
        return EngineIdentity(unavailable=f"{why}; {hint}")
    usage = f"{said.stdout}\n{said.stderr}"
    if said.exit_code != 0 or "Usage: ds4" not in usage:
        return EngineIdentity(unavailable=f"{binary} --help does not answer as ds4 does; {hint}")
    if not re.search(rf"^Usage: {wanted}\s", usage, re.MULTILINE):
        reason = f"{binary} is not {wanted}, which options.mode {_mode(config)!r} needs; name that binary"
        return EngineIdentity(unavailable=reason)
    known = options_of(outputs)
    commit = _commit(outputs)
    facts = {"generation": generation_of(known) or "unknown"}
    if commit is not None:
        facts["commit"] = commit
    version = commit[:12] if commit is not None else None
    return EngineIdentity(facts, version, facts["generation"], commit, backend=_backend(config), capabilities=known)


def options_of(outputs: Mapping[str, ProbeOutput]) -> frozenset[str]:
    """Every long option that the help lists, and :data:`FILE_MTP` where ``--mtp`` takes a file."""
    text = "\n".join(said.stdout for name in ("help", "help_all") if (said := outputs.get(name)) is not None)
    known: set[str] = set()
    for entry in _ENTRY.findall(text):
        known |= set(_OPTION.findall(entry))
        if entry.strip() == FILE_MTP:
            known.add(FILE_MTP)
    return frozenset(known)


def generation_of(known: frozenset[str]) -> str | None:
    """Which generation of flags the options are of; ``None`` where they are of none that is known."""
    if "--mtp-model" in known and FILE_MTP not in known:
        return SEPTEMBER
    if FILE_MTP in known:
        return BETWEEN if "--dspark" in known or "--mtp-model" in known else MAY
    return None


def _commit(outputs: Mapping[str, ProbeOutput]) -> str | None:
    """The checkout's commit, marked where tracked files differ from it; ``None`` outside of a checkout of ds4."""
    found, commit = outputs.get("checkout"), outputs.get("commit")
    if found is None or found.exit_code != 0 or commit is None or commit.exit_code != 0:
        return None
    text = commit.stdout.strip()
    if not re.fullmatch(r"[0-9a-f]{40}", text):
        return None
    changes = outputs.get("changes")
    clean = changes is not None and changes.exit_code == 0 and not changes.stdout.strip()
    return text if clean else f"{text}+changes"


def _mode(config: EngineConfig) -> str:
    found = config.options.get("mode", Ds4Options.model_fields["mode"].default)
    return found if isinstance(found, str) else ""


def _backend(config: EngineConfig) -> str | None:
    found = config.options.get("backend")
    return found if isinstance(found, str) else None

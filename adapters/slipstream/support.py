"""What Slipstream can do, decided before it starts; what it is; and the acceptance rule that it claims."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path, PurePath

from pydantic import ValidationError

from adapters.slipstream.options import METHOD_OPTIONS, MOST_DRAFTS, draft_length, engine_options
from adapters.slipstream.request import LARGEST_TOP_K
from orchestrator.schema.adapter import Claim, EngineIdentity, Probe, ProbeOutput, Refusal, Rule
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, MethodKind, Sampling
from orchestrator.schema.status import Status

KEEP_GGUF = "--keep-gguf"
REQUIRED = (KEEP_GGUF, "--no-webui", "--max-context", "--max-memory", "--host", "--port")
EXACT_SINCE = (26, 10, 4)
EXACT_MARK = "residual sampling"
"""Capability-like mark: this build has the rejection rule that draws from the residual."""

SOURCE_FILE = "install/launcher.py"
"""Tracked by the project's repository: a checkout without it is some other repository that holds the launcher."""

CLAIMED_BY = (
    "Slipstream's own decision record of 30 September 2026, in its releases from v26.10.4 on; read, never run by us"
)
TOP_32 = (
    f"claimed relative to the engine's own sampler, which keeps the {LARGEST_TOP_K} likeliest tokens and draws from "
    "those: not relative to a sampler without that limit"
)

_VERSION = re.compile(r"^Slipstream v2 (?:\((source checkout)\)|v?(\S+))$", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")
_ERROR = re.compile(r"^error: (.+)$", re.MULTILINE)
_COMMIT = re.compile(r"^[0-9a-f]{40}$")


def probe_commands(config: EngineConfig) -> tuple[Probe, ...]:
    """Version and options; for a source checkout, which says no version, its commit and whether it has the release.

    Some other repository can hold the launcher, and files can differ from the commit: both are asked.
    """
    binary = config.binary or "slipstream"
    probes = [Probe("version", (binary, "--version")), Probe("help", (binary, "serve", "--help"))]
    if "/" in binary:
        git = ("git", "-C", str(PurePath(binary).parent))
        tag = "v" + ".".join(map(str, EXACT_SINCE))
        probes.append(Probe("checkout", (*git, "ls-files", "--error-unmatch", SOURCE_FILE)))
        probes.append(Probe("commit", (*git, "rev-parse", "HEAD")))
        probes.append(Probe("changes", (*git, "status", "--porcelain", "--untracked-files=no")))
        probes.append(Probe("has_release", (*git, "merge-base", "--is-ancestor", tag, "HEAD")))
    return tuple(probes)


def identify(config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
    """Version, or commit of the checkout, and the options that it knows."""
    binary = config.binary or "slipstream"
    said = outputs.get("version")
    if said is None or said.error is not None:
        why = said.error if said is not None and said.error else "it was not probed"
        return EngineIdentity(unavailable=why if why.startswith(binary) else f"{binary}: {why}")
    match = _VERSION.search(said.stdout)
    if said.exit_code != 0 or match is None:
        return EngineIdentity(unavailable=f"{binary} --version does not answer as Slipstream does")
    source, version = match.groups()
    helped = outputs.get("help")
    known = set(_OPTION.findall(helped.stdout)) if helped is not None and helped.exit_code == 0 else set()
    commit = _commit(outputs) if source else None
    contains = outputs.get("has_release")
    unchanged = commit is not None and _COMMIT.match(commit) is not None
    if _release(version) >= EXACT_SINCE or (unchanged and contains is not None and contains.exit_code == 0):
        known.add(EXACT_MARK)
    facts = {"version": version or source, **({"commit": commit} if commit else {})}
    return EngineIdentity(facts, version, commit=commit, backend="Metal", capabilities=frozenset(known))


def supports(cell: Cell, identity: EngineIdentity) -> Refusal | None:
    """Why the cell cannot work, in words."""
    if identity.unavailable is not None:
        return Refusal(Status.UNAVAILABLE, identity.unavailable)
    return (
        _bad_options(cell)
        or _not_kept(identity)
        or _bad_length_policy(cell)
        or _bad_sampling(cell.sampling)
        or _bad_model(cell.model.target)
    )


def exactness(cell: Cell, identity: EngineIdentity) -> Claim:
    """The acceptance rule claimed for the cell, and only for builds that have it."""
    if cell.method.kind is MethodKind.NONE:
        return Claim(Rule.NONE, exact=True, by=CLAIMED_BY, note="the target alone")
    if EXACT_MARK not in identity.capabilities:
        note = (
            "before v26.10.4 a refused token could be drawn again as its own replacement; whether this build has the "
            "release is not known, or it has not, or its files differ from its commit"
        )
        return Claim(Rule.UNKNOWN, exact=None, by=CLAIMED_BY, note=note)
    if cell.sampling.greedy:
        note = "verify batches can run other kernels than single tokens: near-ties may flip"
        return Claim(Rule.GREEDY_MATCH, exact=True, by=CLAIMED_BY, note=f"{TOP_32}; {note}")
    note = f"{TOP_32}; exact in distribution: a seed does not give the baseline's tokens"
    return Claim(Rule.REJECTION, exact=True, by=CLAIMED_BY, note=note)


def explain_exit(stderr: str) -> Refusal | None:
    """What the launcher's last words mean, where they mean more than that it ended."""
    found = _ERROR.findall(stderr)
    if not found:
        return None
    if "already serving" in found[-1]:
        return Refusal(
            Status.FAILED, f"one Slipstream at a time: {found[-1]}", "stop it, then specmatrix rerun --failed"
        )
    if "cannot listen on" in found[-1]:
        return Refusal(Status.FAILED, found[-1], "specmatrix rerun takes another port")
    return Refusal(Status.FAILED, f"Slipstream says: {found[-1]}", "the whole of its output is in the session's folder")


def _bad_options(cell: Cell) -> Refusal | None:
    schema = METHOD_OPTIONS.get(cell.method.kind)
    if schema is None:
        return _unsupported("Slipstream has no separate draft model", "use method mtp, or ngram for its prompt lookup")
    try:
        engine_options(cell)
        schema.model_validate(dict(cell.method.options))
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return _unsupported(f"option {where}: {first['msg']}", "correct the option in the matrix")
    if cell.method.kind is not MethodKind.NONE and not 1 <= draft_length(cell) <= MOST_DRAFTS:
        reason = f"Slipstream drafts 1 to {MOST_DRAFTS} tokens, the cell asks for {draft_length(cell)}"
        return _unsupported(reason, f"set n_max of method {cell.method.name} to {MOST_DRAFTS} or less")
    return None


def _not_kept(identity: EngineIdentity) -> Refusal | None:
    """A build that may use up the user's model file is never started."""
    missing = [option for option in REQUIRED if option not in identity.capabilities]
    if not missing:
        return None
    if KEEP_GGUF in missing:
        reason = (
            f"this build's `serve --help` does not know {KEEP_GGUF}: preparing a GGUF it may punch holes into the "
            "file, which no other engine could then load"
        )
        return _unsupported(reason, f"use a build that knows {KEEP_GGUF} (Slipstream v26.10.4 or a later commit)")
    return _unsupported(f"this build's `serve --help` does not know {', '.join(missing)}", "use a later build")


def _bad_length_policy(cell: Cell) -> Refusal | None:
    if cell.workload.template != "raw":
        reason = (
            "Slipstream's server puts every prompt into the model's chat template itself: it would stand there twice"
        )
        return _unsupported(reason, "use a workload with template: raw")
    if cell.workload.eos is EosPolicy.STOP:
        return None
    reason = (
        f"Slipstream's API cannot keep a text from ending; workload {cell.workload.name} says eos: {cell.workload.eos}"
    )
    return _unsupported(reason, "use a workload with eos: stop")


def _bad_sampling(sampling: Sampling) -> Refusal | None:
    off = {
        "min_p": (sampling.min_p, 0),
        "repeat_penalty": (sampling.repeat_penalty, 1),
        "presence_penalty": (sampling.presence_penalty, 0),
        "frequency_penalty": (sampling.frequency_penalty, 0),
        "xtc_probability": (sampling.xtc_probability, 0),
    }
    found = [name for name, (value, none) in off.items() if value != none]
    if found:
        return _unsupported(f"Slipstream has no {', '.join(found)}", f"switch it off in sampling.{sampling.name}")
    if not 0 <= sampling.temperature <= 2 or not 0 < sampling.top_p <= 1:
        return _unsupported("Slipstream takes temperatures of 0 to 2 and top_p above 0, up to 1", "change the sampling")
    if sampling.seed < 0:
        return _unsupported("Slipstream takes no negative seed", f"change sampling.{sampling.name}.seed")
    if not sampling.greedy and not 1 <= sampling.top_k <= LARGEST_TOP_K:
        reason = f"Slipstream samples from 1 to {LARGEST_TOP_K} tokens, the cell asks for top_k {sampling.top_k}"
        remedy = (
            f"use a sampling with top_k {LARGEST_TOP_K} or less, and compare it with no engine that has no such limit"
        )
        return _unsupported(reason, remedy)
    return None


def _bad_model(target: str) -> Refusal | None:
    """A folder must hold something that ``serve`` takes; a path that is not there is told before this is asked.

    A GGUF is converted by the first start, for minutes and into as many bytes again beside it: a measurement must not
    be what does that.
    """
    try:
        path = Path(target)
        folder = path.parent if path.is_file() else path
        if not folder.is_dir():
            return None
        names = {entry.name for entry in folder.iterdir()}
        prepared = (folder / "prepared" / "manifest.json").is_file()
    except (OSError, ValueError):
        return None
    if "manifest.json" in names or prepared:
        return None
    if any(name.endswith(".gguf") for name in names):
        reason = f"{target} is not prepared for Slipstream: its first start would convert it for minutes"
        remedy = f"run once: slipstream serve --model {target} {KEEP_GGUF} (it needs the model's size on disk again)"
        return Refusal(Status.UNAVAILABLE, reason, remedy)
    if any(name.endswith(".safetensors") for name in names):
        return None
    reason = f"{target} holds no GGUF, no safetensors and no prepared package (manifest.json)"
    return _unsupported(reason, "name the folder of the model itself")


def _release(version: str | None) -> tuple[int, ...]:
    parts = re.findall(r"\d+", version or "")
    return tuple(int(part) for part in parts[:3])


def _commit(outputs: Mapping[str, ProbeOutput]) -> str | None:
    """The checkout's commit, marked where tracked files differ; ``None`` outside of a checkout of Slipstream."""
    text = _answer(outputs, "commit")
    if _answer(outputs, "checkout") is None or text is None or not _COMMIT.match(text):
        return None
    return text if _answer(outputs, "changes") == "" else f"{text}+changes"


def _answer(outputs: Mapping[str, ProbeOutput], name: str) -> str | None:
    said = outputs.get(name)
    return said.stdout.strip() if said is not None and said.exit_code == 0 else None


def _unsupported(reason: str, remedy: str) -> Refusal:
    return Refusal(Status.UNSUPPORTED, reason, remedy)

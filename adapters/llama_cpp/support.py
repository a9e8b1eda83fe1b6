"""What the llama.cpp paths can do, decided before any process starts, and the acceptance rule they claim."""

from __future__ import annotations

from collections.abc import Callable

from pydantic import ValidationError

from adapters.llama_cpp.drafters import Drafter, drafters, longest_draft, stateful
from adapters.llama_cpp.files import bad_files
from adapters.llama_cpp.options import (
    CACHE_LENGTH,
    DEFAULT_NGRAM_SIZE,
    METHOD_OPTIONS,
    HeadOptions,
    NgramOptions,
    draft_length,
    engine_options,
    ngram_options,
    speculative_options,
)
from adapters.shared.gguf import GgufError, read_header
from orchestrator.schema.adapter import Claim, EngineIdentity, Refusal, Rule
from orchestrator.schema.cell import Cell, EosPolicy, Method, MethodKind
from orchestrator.schema.status import Status

CLAIMED_BY = "llama.cpp, read in b11434's common/sampling.cpp and seen in real runs on f32 models"
SPEC_CAPABILITY = "spec-type:"
STATEFUL_NOTE = (
    "its drafter remembers earlier requests of the process, so its counts hold for this order of prompts: each session "
    "is a fresh process that asks the same ones in the same order"
)
SYSTEM_CONFIG = "system-config"
"""Capability-like mark: the machine has a configuration file that this engine would read."""


def supports(cell: Cell, identity: EngineIdentity, required: Callable[[Cell], frozenset[str]]) -> Refusal | None:
    """Why the cell cannot work, in words.

    Args:
        cell: the resolved cell.
        identity: what the probes found.
        required: capabilities without which a number would not be protected, or the cell not be asked for.
    """
    if identity.unavailable is not None:
        return Refusal(Status.UNAVAILABLE, identity.unavailable)
    try:
        return (
            _bad_options(cell)
            or _bad_length_policy(cell)
            or _missing_capability(cell, identity, required)
            or bad_files(cell, identity)
        )
    except GgufError as err:
        remedy = "llama.cpp loads GGUF files; convert the model, or correct the path"
        return Refusal(Status.UNSUPPORTED, str(err), remedy)


def exactness(cell: Cell, identity: EngineIdentity) -> Claim:
    """The acceptance rule of llama.cpp for the cell; ``by`` names the build that is claimed to follow it."""
    kind, greedy = cell.method.kind, cell.sampling.greedy
    by = f"{CLAIMED_BY}; here: {_version(identity)}"
    if kind is MethodKind.NONE:
        return Claim(Rule.NONE, exact=True, by=by, note="the target alone")
    try:
        options = speculative_options(cell.method)
    except ValidationError:
        return Claim(Rule.UNKNOWN, exact=None, by=by, note="the method's options cannot be read")
    if options is not None and options.synthetic:
        note = "drafts are accepted by lot: what such a run costs can be read from it, and nothing about its text"
        return Claim(Rule.SYNTHETIC, exact=False, by=by, note=note)
    remembers = f"; {STATEFUL_NOTE}" if stateful(cell.method) else ""
    near_ties = "verify batches can run other kernels than single tokens: quantised or GPU targets may flip near-ties"
    if greedy:
        return Claim(Rule.GREEDY_MATCH, exact=True, by=by, note=near_ties + remembers)
    if isinstance(options, HeadOptions) and options.acceptance == "probabilistic":
        note = f"exact in distribution; a seed does not give the baseline's tokens{remembers}"
        return Claim(Rule.REJECTION, exact=True, by=by, note=note)
    note = f"with equal logits a seed gives the baseline's tokens; {near_ties}{remembers}"
    return Claim(Rule.SAMPLE_MATCH, exact=True, by=by, note=note)


def _version(identity: EngineIdentity) -> str:
    if identity.build is not None:
        return f"build {identity.build}"
    return f"version {identity.version}" if identity.version is not None else "an unknown version"


def _bad_options(cell: Cell) -> Refusal | None:
    method = cell.method
    try:
        engine_options(cell)
        METHOD_OPTIONS[method.kind].model_validate(dict(method.options))
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Refusal(Status.UNSUPPORTED, f"option {where}: {first['msg']}", "correct the option in the matrix")
    options = speculative_options(method)
    if options is None:
        return None
    if method.kind is MethodKind.NGRAM:
        asked = ngram_options(method).size_m
        if asked is not None and method.n_max is not None and asked != method.n_max:
            reason = f"n_max {method.n_max} and size_m {asked} are both the draft length, and differ"
            return _unsupported(reason, "give one of them")
    elif isinstance(options, HeadOptions) and options.n_min > draft_length(method):
        reason = f"n_min {options.n_min} is above n_max {draft_length(method)}: every draft would be dropped"
        return _unsupported(reason, "lower n_min")
    for drafter in drafters(method):
        refusal = _bad_ngram(drafter) if drafter.ngram is not None else _bad_rule(drafter, options)
        if refusal is not None:
            return refusal
    names = [drafter.name for drafter in drafters(method)]
    if len(set(names)) < len(names):
        return _unsupported(f"{names[0]} is chained to itself", "chain another drafter")
    return _bad_synthesis(method, options)


def _bad_ngram(drafter: Drafter) -> Refusal | None:
    """Options that llama.cpp has no way to take for this drafter: better refused than passed over."""
    ngram, name = drafter.ngram, drafter.name
    if ngram is None:
        return None
    if name == "ngram-cache" and drafter.length != CACHE_LENGTH:
        reason = f"ngram-cache drafts at most {CACHE_LENGTH} tokens, whatever is asked; the cell asks {drafter.length}"
        return _unsupported(reason, f"set its length to {CACHE_LENGTH}")
    unused = {
        "size_n": name == "ngram-cache" and ngram.size_n != DEFAULT_NGRAM_SIZE,
        "min_hits": name in ("ngram-cache", "ngram-mod") and ngram.min_hits != 1,
        "n_min": name != "ngram-mod" and ngram.n_min != 0,
    }
    for option, given in unused.items():
        if given:
            return _unsupported(f"{name} has no option {option}", "take it out")
    if ngram.n_min > drafter.length:
        reason = f"n_min {ngram.n_min} is above the draft length {drafter.length}: every draft would be dropped"
        return _unsupported(reason, "lower n_min")
    return None


def _bad_rule(drafter: Drafter, options: object) -> Refusal | None:
    if not isinstance(options, HeadOptions) or options.acceptance == "greedy":
        return None
    if drafter.name in ("draft-simple", "draft-mtp"):
        return None
    reason = f"{drafter.name} has no rejection sampling: llama.cpp would keep to sample matching without a word"
    return _unsupported(reason, "set acceptance to greedy")


def _bad_synthesis(method: Method, options: HeadOptions | NgramOptions) -> Refusal | None:
    asked = [name for name in ("synth_len", "synth_rates") if getattr(options, name) is not None]
    if asked and not options.synthetic:
        reason = f"{asked[0]} replaces the target's judgement by lots: the output would not be the model's text"
        return _unsupported(reason, "set synthetic: true to own up to it, or take it out")
    if options.synthetic and len(asked) != 1:
        return _unsupported("synthetic: true needs one of synth_len and synth_rates", "give one of them")
    if not options.synthetic:
        return None
    longest, rates = longest_draft(method), options.synth_rates
    if options.synth_len is not None and options.synth_len > longest + 1:
        return _unsupported(f"synth_len {options.synth_len} is above {longest + 1}: the draft and the target's own")
    if rates is not None and len(rates) != longest:
        return _unsupported(f"synth_rates has {len(rates)} rates, the longest draft has {longest} tokens")
    if rates is not None and rates != sorted(rates, reverse=True):
        return _unsupported("synth_rates rises somewhere: a position counts only when all before it were accepted")
    return None


def _unsupported(reason: str, remedy: str = "") -> Refusal:
    return Refusal(Status.UNSUPPORTED, reason, remedy)


def _bad_length_policy(cell: Cell) -> Refusal | None:
    if cell.workload.eos is not EosPolicy.CONTINUE:
        return None
    reason = "llama.cpp can stop at end of text or forbid it; it cannot emit it and go on (eos: continue)"
    return Refusal(Status.UNSUPPORTED, reason, "use eos: stop or eos: mask")


def _missing_capability(
    cell: Cell, identity: EngineIdentity, required: Callable[[Cell], frozenset[str]]
) -> Refusal | None:
    if SYSTEM_CONFIG in identity.capabilities:
        reason = "llama-server would read /etc/llama.cpp/config.ini first, and no option turns that off"
        return Refusal(Status.UNSUPPORTED, reason, "move the file away while measuring")
    missing = sorted(required(cell) - identity.capabilities)
    absent = [d.name for d in drafters(cell.method) if SPEC_CAPABILITY + d.name not in identity.capabilities]
    if absent:
        reason = f"this build has no drafter {', '.join(absent)}"
        if cell.method.kind is MethodKind.MTP and "draft-mtp" in absent:
            layers = read_header(cell.model.mtp or cell.model.target).mtp_layers
            reason = f"MTP weights in this file: {'yes' if layers else 'no'}; used by this runtime: no ({reason})"
        return Refusal(Status.UNSUPPORTED, reason, "use a build of b11434 or later")
    if missing:
        reason = f"this build does not know {', '.join(missing)}"
        return Refusal(Status.UNSUPPORTED, reason, "use a build of b11434 or later")
    return None

"""What ds4 can measure, decided before any process starts, and the acceptance rule that it follows."""

from __future__ import annotations

from pydantic import ValidationError

from adapters.ds4.identity import BETWEEN, generation_of
from adapters.ds4.options import (
    MAY,
    SEPTEMBER,
    Ds4Mtp,
    Ds4Options,
    effective_temperature,
    engine_options,
    mtp_options,
    verifies_exactly,
)
from adapters.shared.gguf import GgufError, read_header
from adapters.shared.gguf_layout import LayoutError, read_layout
from orchestrator.schema.adapter import Claim, EngineIdentity, Refusal, Rule
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind
from orchestrator.schema.status import Status

MAY_ARCHITECTURE = "deepseek4"
"""The one family whose shape the builds of May 2026 have built in."""
SUPPORT_TENSOR = "mtp.0.hc_head_base.weight"
"""Makes a file the one-stage MTP module; ds4 refuses one without it by this name."""
MOST_SUPPORT, FROM_SUPPORT, DSPARK_BLOCK, MOST_EMBEDDED = 16, 2, 5, 2
"""Draft lengths: ``--mtp-draft`` only probes at 1 and is capped at 16; DSpark's block; GLM drafts 1, Qwen up to 2."""

MAY_SOURCE = "ds4 at 8d57664 (May 2026), ds4.c and ds4_cli.c"
LATER_SOURCE = "ds4 at 000401c (September 2026), ds4.c"
SEPTEMBER_SOURCE = "ds4's docs/SPECULATIVE_DECODING.md (September 2026)"
_FILES = "take a GGUF from the project's download_model.sh"


def supports(cell: Cell, identity: EngineIdentity) -> Refusal | None:
    """Why the cell cannot work, in words."""
    if identity.unavailable is not None:
        return Refusal(Status.UNAVAILABLE, identity.unavailable)
    try:
        options = engine_options(cell)
        method = mtp_options(cell.method) if cell.method.kind is MethodKind.MTP else None
    except ValidationError as err:
        reason = f"options of engine {cell.engine.name} or method {cell.method.name}: {err.errors()[0]['msg']}"
        return Refusal(Status.UNSUPPORTED, reason, "correct the options in the matrix")
    if cell.method.kind not in (MethodKind.NONE, MethodKind.MTP):
        return Refusal(Status.UNSUPPORTED, f"ds4 has no method {cell.method.kind.value}; it has none and mtp")
    return (
        _refuse_generation(cell, options, identity)
        or _refuse_settings(cell, options)
        or (_refuse_method(cell, options, method, identity) if method is not None else None)
        or _refuse_files(cell, options, method)
    )


def _refuse_generation(cell: Cell, options: Ds4Options, identity: EngineIdentity) -> Refusal | None:
    found = generation_of(identity.capabilities)
    if found == options.generation:
        return None
    if found is None:
        reason = "the --help of this build names none of the options of speculation by which ds4's generations differ"
        return Refusal(Status.UNSUPPORTED, reason, f"build ds4 of {MAY} or of {SEPTEMBER} or later")
    if found == BETWEEN:
        reason = (
            "this build has --mtp FILE beside --dspark, as ds4 had in July and August 2026; no rules are known for it"
        )
        return Refusal(
            Status.UNSUPPORTED, reason, f"build a commit of September 2026 or later (options.generation {SEPTEMBER})"
        )
    reason = f"this build has the flags of {found}, options.generation says {options.generation}"
    return Refusal(Status.UNSUPPORTED, reason, f'set engines.{cell.engine.name}.options.generation to "{found}"')


def _refuse_settings(cell: Cell, options: Ds4Options) -> Refusal | None:
    asked, name = cell.sampling, cell.sampling.name
    if cell.workload.eos is not EosPolicy.STOP:
        said = f"workload {cell.workload.name} says eos: {cell.workload.eos.value}"
        reason = f"ds4 ends at end of text and has no option to go on; {said}"
        return Refusal(Status.UNSUPPORTED, reason, "give this engine a workload with eos: stop")
    if cell.workload.template != "raw":
        reason = "ds4 puts every prompt into the model's chat template itself: it would stand there twice"
        return Refusal(Status.UNSUPPORTED, reason, "use a workload with template: raw")
    if options.thinking and options.mode == "command":
        reason = "in thinking mode ds4 prints another text than its tokens, so that they cannot be counted"
        return Refusal(Status.UNSUPPORTED, reason, "turn options.thinking off, or set options.mode to server")
    if (asked.repeat_penalty, asked.presence_penalty, asked.frequency_penalty) != (1.0, 0.0, 0.0):
        return Refusal(Status.UNSUPPORTED, "ds4 has no penalties", f"switch them off in sampling.{name}")
    if asked.xtc_probability > 0:
        return Refusal(Status.UNSUPPORTED, "ds4 has no XTC sampler", f"switch it off in sampling.{name}")
    if asked.top_k != 0 and asked.temperature > 0 and options.mode == "command":
        reason = f"the command ds4 has no top-k; sampling {name} asks for {asked.top_k}"
        return Refusal(Status.UNSUPPORTED, reason, f"set sampling.{name}.top_k to 0, or options.mode to server")
    return None


def _refuse_method(cell: Cell, options: Ds4Options, method: Ds4Mtp, identity: EngineIdentity) -> Refusal | None:
    refused = _refuse_may(method) if options.generation == MAY else _refuse_september(options, method)
    refused = refused or _refuse_temperature(cell, options, method)
    if refused is not None:
        return refused
    needed = {
        "dspark": {"--dspark", "--mtp-model"},
        "embedded": {"--mtp", "--mtp-timing"},
        "support": {"--mtp-draft", "--mtp" if options.generation == MAY else "--mtp-model"},
    }[method.drafter]
    needed = needed | ({"--mtp-exact-sampling"} if method.exact_sampling else set())
    missing = sorted(needed - identity.capabilities)
    if missing:
        reason = f"this build does not know {', '.join(missing)}"
        return Refusal(Status.UNSUPPORTED, reason, "build a ds4 whose --help names it")
    if method.confidence is not None and method.drafter != "dspark":
        return Refusal(Status.UNSUPPORTED, "confidence is a setting of the drafter dspark", "leave it out")
    for name, given in (("margin", method.margin is not None), ("strict", method.strict)):
        if given and method.drafter != "support":
            return Refusal(Status.UNSUPPORTED, f"{name} is a setting of the drafter support", "leave it out")
    return _refuse_length(cell, method)


def _refuse_may(method: Ds4Mtp) -> Refusal | None:
    if method.drafter != "support":
        return Refusal(Status.UNSUPPORTED, f"builds of {MAY} have no drafter {method.drafter}", "use a later build")
    if method.exact_sampling:
        reason = f"builds of {MAY} have no --mtp-exact-sampling: they speculate at temperature 0 alone"
        return Refusal(Status.UNSUPPORTED, reason, "use a later build, or leave exact_sampling out")
    return None


def _refuse_september(options: Ds4Options, method: Ds4Mtp) -> Refusal | None:
    if method.drafter == "dspark" and (method.strict or options.quality):
        which = "options.quality" if options.quality else "strict"
        reason = f"{which}: with DSpark, ds4 then decodes with the target alone, which is the baseline"
        return Refusal(Status.NOT_ENGAGED, reason, "leave it out; the baseline is measured anyway")
    return None


def _refuse_temperature(cell: Cell, options: Ds4Options, method: Ds4Mtp) -> Refusal | None:
    """One-stage MTP is for greedy decoding alone, in both generations and with ``--mtp-exact-sampling`` too.

    Source: ds4_cli.c at 8d57664; ds4.c at 000401c, ``ds4_session_eval_speculative``, where DSpark and GLM alone go on.
    """
    if method.drafter != "support" or effective_temperature(cell) == 0:
        return None
    thinking = " (thinking mode samples at 1)" if options.thinking else ""
    reason = (
        f"ds4 uses the one-stage MTP module at temperature 0 alone: at {effective_temperature(cell):g}{thinking} it "
        "loads the module and decodes without it"
    )
    return Refusal(
        Status.NOT_ENGAGED, reason, "measure this drafter at temperature 0; of later builds DSpark drafts above it"
    )


def _refuse_length(cell: Cell, method: Ds4Mtp) -> Refusal | None:
    asked, where = cell.method.n_max or 0, f"n_max of method {cell.method.name}"
    if method.drafter == "dspark" and asked != DSPARK_BLOCK:
        reason = f"DSpark proposes up to {DSPARK_BLOCK} tokens and no option changes that; the method says {asked}"
        return Refusal(Status.UNSUPPORTED, reason, f"set {where} to {DSPARK_BLOCK}")
    if method.drafter == "embedded" and not 1 <= asked <= MOST_EMBEDDED:
        reason = f"built-in MTP drafts one token, or two where the model chains them; the method says {asked}"
        return Refusal(Status.UNSUPPORTED, reason, f"set {where} to 1 (GLM) or 2 (Qwen)")
    if method.drafter == "support" and not FROM_SUPPORT <= asked <= MOST_SUPPORT:
        reason = f"--mtp-draft {asked}: ds4 only probes with 1 draft, and takes no more than {MOST_SUPPORT}"
        return Refusal(Status.UNSUPPORTED, reason, f"set {where} to {FROM_SUPPORT} or more")
    return None


def _refuse_files(cell: Cell, options: Ds4Options, method: Ds4Mtp | None) -> Refusal | None:
    path = cell.model.target
    try:
        found = read_header(path).architecture
        if options.generation == MAY and found != MAY_ARCHITECTURE:
            reason = f"{path} is of architecture {found}; builds of {MAY} read {MAY_ARCHITECTURE} alone"
            return Refusal(Status.UNSUPPORTED, reason, _FILES)
        if method is None:
            return None
        path = cell.model.mtp or ""
        where = f"models.{cell.model.name}"
        if method.drafter == "embedded":
            if cell.model.mtp is None:
                return None
            reason = f"{where} names the MTP file {path}; the drafter embedded is the module inside the target"
            return Refusal(Status.UNSUPPORTED, reason, "write mtp: inside, or choose the drafter support or dspark")
        if cell.model.mtp is None:
            reason = f"{where} names no MTP file, which the drafter {method.drafter} needs"
            return Refusal(Status.UNSUPPORTED, reason, f"name it as {where}.{cell.engine.name}.mtp; {_FILES}")
        if options.generation == MAY and SUPPORT_TENSOR not in read_layout(path).tensors:
            return Refusal(Status.UNSUPPORTED, f"{path} is no MTP module: it has no {SUPPORT_TENSOR}", _FILES)
    except (GgufError, LayoutError) as err:
        return Refusal(Status.UNSUPPORTED, str(err), _FILES)
    return None


def exactness(cell: Cell, identity: EngineIdentity) -> Claim:
    """The acceptance rule claimed for the cell, by whom."""
    if cell.method.kind is MethodKind.NONE:
        return Claim(Rule.NONE, True, "specmatrix", "no speculation")
    try:
        options, method = engine_options(cell), mtp_options(cell.method)
    except ValidationError:
        return Claim(Rule.UNKNOWN, None, "nobody", "the options cannot be read")
    del identity
    temperature = effective_temperature(cell)
    if method.drafter == "support":
        return _support_claim(options, temperature, exact=verifies_exactly(cell))
    if temperature == 0:
        note = (
            "drafts must be what the target would have chosen, but accepted tokens keep the state of the batched "
            "verifier: long answers need not be identical"
        )
        return Claim(Rule.GREEDY_MATCH, None, SEPTEMBER_SOURCE, note)
    if method.exact_sampling:
        note = "a draft is kept with the target's probability of it, else the rest of the distribution is sampled"
        return Claim(Rule.REJECTION, True, SEPTEMBER_SOURCE, note)
    note = "opportunistic: greedy drafts that fit are kept, which is more deterministic than ordinary sampling"
    return Claim(Rule.HEURISTIC, False, SEPTEMBER_SOURCE, note)


def _support_claim(options: Ds4Options, temperature: float, *, exact: bool) -> Claim:
    source = MAY_SOURCE if options.generation == MAY else LATER_SOURCE
    if temperature > 0:
        return Claim(Rule.UNKNOWN, None, source, "this drafter is not used above temperature 0")
    if exact:
        note = "two drafts are verified by the exact decoder, which keeps the stream of single tokens"
        return Claim(Rule.GREEDY_MATCH, True, source, note)
    note = "the batched verifier may choose another token where two are nearly tied"
    return Claim(Rule.GREEDY_MATCH, None, source, note)

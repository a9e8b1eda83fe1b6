"""Why a cell cannot work in oMLX, in words, and which acceptance rule is claimed for one that can.

oMLX itself refuses almost nothing: a setting that it cannot follow is dropped, and requests are answered undrafted.
"""

from __future__ import annotations

import json
import re
from pathlib import Path as Folder
from typing import Any

from adapters.omlx.identity import DFLASH, DRAFTER, DRAFTERS, FAMILY, SETTING
from adapters.omlx.options import Path, mtp_options, option_fault, path_of
from adapters.omlx.weights import has_mtp_weights
from adapters.shared.penalties import neutral_penalties
from orchestrator.schema.adapter import Claim, EngineIdentity, Refusal, Rule
from orchestrator.schema.cell import Cell, EosPolicy
from orchestrator.schema.status import Status

MOST_DRAFTS = 8
"""``mtp_fixed_draft_depth`` is 1..8 (omlx/model_settings.py, jundot/omlx 0029d71)."""

FAMILIES = {
    "qwen3_5": "qwen35_model",
    "qwen3_6": "qwen35_model",
    "qwen3_next": "qwen3_next_model",
    "deepseek_v4": "deepseek_v4_model",
    "gemma4": "gemma4_text_model",
    "glm_moe_dsa": "glm_moe_dsa_model",
    "glm5_next": "glm5_next_model",
    "mimo_v2": "mimo_v2_model",
    "nemotron_h": "nemotron_h_chain",
}
"""The patch that gives a family of models its MTP (files of omlx/patches/mlx_lm_mtp)."""

HEADS = ("mtp_num_hidden_layers", "num_nextn_predict_layers")
"""Where ``config.json`` says how many MTP layers there are."""

EXACT_FAMILIES = ("qwen3_5", "qwen3_6")
"""Families whose acceptance was read in the source; Qwen4-Exp took no draft at T > 0 up to 0.6.4 (issue 3370)."""

_CLAIMED = re.compile(r"0\.[67]\.")
"""Versions whose source says so: 0.6.x (jundot/omlx 4219ab1, 0029d71) and the fork's 0.7.0."""

_PAIRS = {"gemma4_assistant": "gemma4", "gemma4_unified_assistant": "gemma4", "qwen3_5_mtp": "qwen3_"}


def supports(cell: Cell, identity: EngineIdentity) -> Refusal | None:
    """The first reason against the cell, if any; reads ``config.json`` and headers of the cell's folders."""
    return (
        _options(cell)
        or _method(cell)
        or _requests(cell)
        or _folder("target", cell.model.target)
        or _path(cell, identity.capabilities)
    )


def exactness(cell: Cell, identity: EngineIdentity) -> Claim:
    """The rule claimed for the cell, by path, family and version."""
    path = path_of(cell)
    if path is Path.NONE:
        return Claim(Rule.NONE, exact=True, by="no speculation")
    if path is Path.VLM:
        note = "mlx-vlm's rounds, driven by oMLX's own scheduler: oMLX claims nothing for them"
        return Claim(Rule.UNKNOWN, exact=None, by="oMLX", note=note)
    if path is not Path.NATIVE:
        return Claim(
            Rule.UNKNOWN, exact=None, by="oMLX", note="its verifier is a package of its own, and claims nothing"
        )
    return _native_claim(cell, identity.version)


def _native_claim(cell: Cell, version: str | None) -> Claim:
    by = "oMLX's source, 0.6.x and 0.7.0"
    rule = Rule.GREEDY_MATCH if cell.sampling.greedy else Rule.REJECTION
    if version is None or _CLAIMED.match(version) is None:
        return Claim(
            rule, exact=None, by=by, note=f"said of 0.6.x and 0.7.0, this engine is {version or 'of unknown version'}"
        )
    family = _model_type(cell.model.target) or "unknown"
    if not family.startswith(EXACT_FAMILIES):
        note = f"acceptance differs from family to family in oMLX, and that of {family} is not known"
        return Claim(Rule.UNKNOWN, exact=None, by=by, note=note)
    if not cell.sampling.greedy and cell.sampling.xtc_probability > 0:
        note = "drafts are sampled with XTC and accepted by probabilities without it"
        return Claim(rule, exact=False, by=by, note=note)
    if not neutral_penalties(cell.sampling):
        return Claim(rule, exact=None, by=by, note="with penalties nobody claims it")
    note = "accepts where the draft is the target's best token"
    if not cell.sampling.greedy:
        note = "accepts with min(1, p/q), else samples the residual; 0.7.0 throws that coin without the request's seed"
    return Claim(rule, exact=True, by=by, note=note)


def _options(cell: Cell) -> Refusal | None:
    fault = option_fault(cell)
    if fault is None:
        return None
    return Refusal(Status.UNSUPPORTED, f"{cell.engine.name}, {cell.method.name}: {fault}", "correct it in the matrix")


def _method(cell: Cell) -> Refusal | None:
    method, path = cell.method, path_of(cell)
    if path is Path.UNKNOWN:
        return Refusal(
            Status.UNSUPPORTED, f"oMLX has no {method.kind.value} drafter", "measure mtp, or draft for DFlash"
        )
    if path is not Path.NONE and (method.n_max is None or method.n_max < 1):
        reason = f"method {method.name}: n_max is {method.n_max}, a draft has at least 1 token"
        return Refusal(Status.UNSUPPORTED, reason, f"set methods.{method.name}.n_max")
    if path is Path.DFLASH and cell.draft_path is None:
        reason = f"model {cell.model.name} names no draft {method.draft!r} for this engine"
        return Refusal(Status.UNSUPPORTED, reason, f"add it under models.{cell.model.name}.drafts")
    return None


def _requests(cell: Cell) -> Refusal | None:
    asked = cell.sampling
    if cell.workload.eos is not EosPolicy.STOP:
        reason = f"oMLX ends at the end of text: it has no way to {cell.workload.eos.value} it"
        return Refusal(Status.UNSUPPORTED, reason, f"set workloads.{cell.workload.name}.eos to stop")
    if asked.greedy and asked.xtc_probability > 0:
        return Refusal(Status.UNSUPPORTED, "at temperature 0 oMLX leaves XTC out", "set xtc_probability to 0, off")
    if asked.repeat_penalty <= 0:
        reason = f"repeat_penalty {asked.repeat_penalty:g} is no penalty"
        return Refusal(Status.UNSUPPORTED, reason, "set repeat_penalty to 1, which means off")
    if path_of(cell) is Path.VLM and not neutral_penalties(asked):
        reason = "with a penalty oMLX drops VLM MTP and answers without drafts (issue 2399)"
        return Refusal(Status.UNSUPPORTED, reason, "switch the penalties off, or measure native MTP")
    return None


def _folder(role: str, path: str) -> Refusal | None:
    if path.endswith(".gguf"):
        reason = f"{path}: the {role} is a GGUF file; oMLX reads a folder with config.json and safetensors"
        return Refusal(Status.UNSUPPORTED, reason, "name the MLX folder of the same model for this engine")
    try:
        known = Folder(path).is_dir()
    except ValueError:
        known = False
    if not known:
        reason = f"{path}: there is no such folder for the {role}"
        return Refusal(Status.UNAVAILABLE, reason, "put the model folder there, or correct its path in the matrix")
    if _config(path) is None:
        reason = f"{path}: the {role}'s config.json cannot be read"
        return Refusal(Status.UNAVAILABLE, reason, "a model folder holds config.json, weights and tokenizer")
    return None


def _path(cell: Cell, known: frozenset[str]) -> Refusal | None:
    path = path_of(cell)
    if path is Path.NATIVE:
        return _native(cell, known)
    if path is Path.VLM:
        return _vlm(cell, cell.model.mtp or "", known)
    return _dflash(cell.draft_path or "", known) if path is Path.DFLASH else None


def _native(cell: Cell, known: frozenset[str]) -> Refusal | None:
    config, drafts = _config(cell.model.target) or {}, cell.method.n_max or 0
    kind = _model_type(cell.model.target) or "none"
    inner = config.get("text_config")
    heads = max(_whole(one, key) for one in (config, inner if isinstance(inner, dict) else {}) for key in HEADS)
    if not heads:
        reason = f"{cell.model.target}: its config.json declares no MTP layers (model_type {kind})"
        return Refusal(
            Status.UNSUPPORTED, reason, "use a conversion that keeps them, or name a drafter's folder as mtp"
        )
    patch = next((patch for family, patch in FAMILIES.items() if kind.startswith(family)), None)
    if patch is not None and any(one.startswith(FAMILY) for one in known) and FAMILY + patch not in known:
        reason = f"this version of oMLX has no native MTP for model_type {kind}"
        return Refusal(Status.UNSUPPORTED, reason, "use a later version")
    inside = kind.startswith(EXACT_FAMILIES) and f"{FAMILY}load_sidecar" not in known
    if inside and has_mtp_weights(cell.model.target) is False:
        reason = f"{cell.model.target}: config.json declares MTP layers, and the weights hold no mtp.* tensor"
        return Refusal(Status.UNSUPPORTED, reason, "use a conversion that keeps them: the usual ones drop them")
    if drafts > MOST_DRAFTS:
        return Refusal(Status.UNSUPPORTED, f"oMLX drafts at most {MOST_DRAFTS} tokens by MTP", "lower n_max")
    adaptive = mtp_options(cell.method).adaptive
    needed = SETTING + ("mtp_num_draft_tokens" if adaptive else "mtp_fixed_draft_depth")
    if (drafts > 1 or adaptive) and needed not in known:
        what = "let oMLX choose the draft length" if adaptive else "hold the draft length at more than 1"
        reason = f"whether this oMLX can {what} is not known: its settings have no {needed.removeprefix(SETTING)}"
        remedy = "set n_max to 1, or name the interpreter of a later version as the engine's python"
        return Refusal(Status.UNSUPPORTED, reason, remedy)
    return None


def _vlm(cell: Cell, drafter: str, known: frozenset[str]) -> Refusal | None:
    refusal = _folder("drafter", drafter)
    if refusal is not None:
        return refusal
    kind, target = _model_type(drafter) or "none", _model_type(cell.model.target) or "none"
    if kind not in DRAFTERS:
        reason = f"{drafter}: model_type {kind} is no drafter of oMLX's VLM MTP ({', '.join(DRAFTERS)})"
        return Refusal(Status.UNSUPPORTED, reason, "name the folder of such a drafter as mtp, or leave mtp: inside")
    if any(one.startswith(DRAFTER) for one in known) and DRAFTER + kind not in known:
        reason = f"this version of oMLX does not take drafters of model_type {kind}"
        return Refusal(Status.UNSUPPORTED, reason, "use a later version")
    if not target.startswith(_PAIRS[kind]):
        reason = f"a drafter of model_type {kind} does not fit a target of model_type {target}"
        return Refusal(Status.UNSUPPORTED, reason, "name the drafter that was made for this target")
    return None


def _dflash(draft: str, known: frozenset[str]) -> Refusal | None:
    refusal = _folder("draft", draft)
    if refusal is not None:
        return refusal
    config = _config(draft) or {}
    names = config.get("architectures")
    named = [one for one in names if isinstance(one, str)] if isinstance(names, list) else []
    if "dflash_config" not in config and not any("DFlash" in one for one in named):
        reason = f"{draft}: is no DFlash checkpoint, and oMLX has no way to draft with an ordinary model"
        return Refusal(Status.UNSUPPORTED, reason, "measure draft models with MLX-LM or llama.cpp")
    if known and DFLASH not in known:
        return Refusal(Status.UNAVAILABLE, "oMLX's interpreter has no dflash-mlx", "install oMLX with all it requires")
    return None


def _model_type(path: str) -> str | None:
    found = (_config(path) or {}).get("model_type")
    return found if isinstance(found, str) else None


def _config(path: str) -> dict[str, Any] | None:
    """``config.json`` with the text model's part on top."""
    try:
        found = json.loads((Folder(path) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(found, dict):
        return None
    inner = found.get("text_config")
    return {**inner, **found} if isinstance(inner, dict) else found


def _whole(config: dict[str, Any], key: str) -> int:
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0

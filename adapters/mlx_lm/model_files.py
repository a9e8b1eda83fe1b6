"""Why a cell cannot run in MLX-LM, as far as the model folders' ``config.json`` tell before anything is loaded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from orchestrator.schema.adapter import Refusal
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.status import Status


def refuse_files(cell: Cell, kv_bits: int | None, kv_group_size: int) -> Refusal | None:
    """The first reason against the cell's model folders, if any."""
    speculative = cell.method.kind is MethodKind.DRAFT
    folders = {"target": cell.model.target}
    if speculative and cell.draft_path is not None:
        folders["draft"] = cell.draft_path
    for role, path in folders.items():
        refusal = _refuse_path(role, path)
        if refusal is not None:
            return refusal
        config = _text_config(path)
        refusal = (
            _refuse_remote_code(role, config)
            or _refuse_quantised_cache(role, config, kv_bits, kv_group_size)
            or (_refuse_window(role, config, cell) if speculative else None)
            or (_refuse_top_k(config, cell) if role == "target" else None)
        )
        if refusal is not None:
            return refusal
    return None


def _refuse_path(role: str, path: str) -> Refusal | None:
    if path.endswith(".gguf"):
        reason = f"{path}: the {role} is a GGUF file; mlx-lm reads a folder with config.json and safetensors"
        return Refusal(Status.UNSUPPORTED, reason, "name the MLX folder of the same model for this engine")
    if not Path(path).is_dir():
        reason = f"{path}: there is no such folder for the {role}"
        return Refusal(Status.UNAVAILABLE, reason, "put the model folder there, or correct its path in the matrix")
    try:
        found = _config(path)
    except (OSError, ValueError) as err:
        reason = f"{path}: the {role}'s config.json cannot be read ({err})"
        return Refusal(Status.UNAVAILABLE, reason, "a model folder of mlx-lm holds config.json, weights and tokenizer")
    if not isinstance(found.get("model_type"), str):
        reason = f"{path}: the {role}'s config.json names no model_type"
        return Refusal(Status.UNSUPPORTED, reason, "convert the model with mlx_lm.convert")
    return None


def _refuse_remote_code(role: str, config: dict[str, Any]) -> Refusal | None:
    if config.get("model_file") is None:
        return None
    reason = f"the {role} wants to run its own code ({config['model_file']}), and no code from a model folder is run"
    return Refusal(Status.UNSUPPORTED, reason, "use a model whose architecture mlx-lm has")


def _refuse_quantised_cache(role: str, config: dict[str, Any], bits: int | None, group: int) -> Refusal | None:
    head, hidden, heads = (_whole(config, key) for key in ("head_dim", "hidden_size", "num_attention_heads"))
    if head is None and hidden is not None and heads is not None:
        head = hidden // heads
    if bits is None or head is None or head % group == 0:
        return None
    reason = f"kv_bits: the {role}'s head size {head} cannot be divided into groups of {group}"
    return Refusal(Status.UNSUPPORTED, reason, "set kv_group_size to 32, or kv_bits to null")


def _refuse_window(role: str, config: dict[str, Any], cell: Cell) -> Refusal | None:
    """Refuses a sliding window that the answer alone would fill; the worker looks again with the prompt's length."""
    window, kinds = _whole(config, "sliding_window"), config.get("layer_types")
    if window is None or not isinstance(kinds, list) or "sliding_attention" not in kinds:
        return None
    wanted = cell.workload.max_tokens + (cell.method.n_max or 0) + 1
    if wanted < window:
        return None
    reason = (
        f"{cell.workload.max_tokens} output tokens + {cell.method.n_max} draft tokens + the prompt fill the {role}'s "
        f"attention window of {window}; mlx-lm cannot take draft tokens back from a full window, and says nothing"
    )
    return Refusal(Status.UNSUPPORTED, reason, "lower the workload's max_tokens, or measure without a draft")


def _refuse_top_k(config: dict[str, Any], cell: Cell) -> Refusal | None:
    size = _whole(config, "vocab_size")
    if cell.sampling.greedy or size is None or cell.sampling.top_k < size:
        return None
    reason = f"top_k {cell.sampling.top_k} is not below the vocabulary's {size} tokens, which mlx-lm refuses"
    return Refusal(Status.UNSUPPORTED, reason, "set top_k to 0, which means off")


def _text_config(path: str) -> dict[str, Any]:
    config = _config(path)
    inner = config.get("text_config")
    return {**config, **inner} if isinstance(inner, dict) else config


def _config(path: str) -> dict[str, Any]:
    """``config.json`` of a model folder.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is not a JSON object.
    """
    found = json.loads((Path(path) / "config.json").read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004  (one error for all that is not such a file)
    return found


def _whole(config: dict[str, Any], key: str) -> int | None:
    """A positive whole number of the config, if it has one there."""
    value = config.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None

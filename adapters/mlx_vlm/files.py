"""Why a cell cannot run in mlx-vlm, as far as the model folders tell before anything is loaded."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

from orchestrator.schema.adapter import Refusal
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.status import Status

ASSISTANTS = frozenset({"gemma4_assistant", "gemma4_unified_assistant"})
"""Drafters that run as MTP though their names do not say so. Source: mlx-vlm 0.7.10 speculative/drafters."""
BUNDLES = frozenset(
    {
        "deepseek_v4",
        "glm4_moe_lite",
        "glm5_next",
        "glm5_next_text",
        "glm_moe_dsa",
        "hy_v4",
        "inkling",
        "inkling_mm_model",
        "nemotron_h",
        "nemotron_h_nano_omni",
        "qwen3_5",
        "qwen3_5_moe",
        "qwen3_next",
        "qwen4_exp",
        "qwen4_exp_text",
    }
)
"""Targets out of whose own folder mlx-vlm takes an MTP module. Source: 0.7.10 speculative/drafters/mtp_split.py."""
LONGEST_HEADER = 100_000_000


def drafter_folder(cell: Cell) -> str | None:
    """The folder that the drafter is loaded from: the target's own where its module is inside; ``None`` without one."""
    if cell.method.kind is not MethodKind.MTP:
        return None
    return cell.model.mtp or cell.model.target


def refuse_files(cell: Cell) -> Refusal | None:
    """The first reason against the cell's model folders, if any."""
    refusal = _refuse_path("target", cell.model.target)
    if refusal is not None:
        return refusal
    target = text_config(cell.model.target)
    refusal = _refuse_top_k(target, cell)
    drafter = drafter_folder(cell)
    if refusal is not None or drafter is None:
        return refusal
    if Path(drafter) == Path(cell.model.target):
        return _refuse_inside(cell.model.target)
    return _refuse_path("drafter", drafter) or _refuse_drafter(drafter, target, cell)


def _refuse_path(role: str, path: str) -> Refusal | None:
    if path.endswith(".gguf"):
        reason = f"{path}: the {role} is a GGUF file; mlx-vlm reads a folder with config.json and safetensors"
        return Refusal(Status.UNSUPPORTED, reason, "name the MLX folder of the same model for this engine")
    try:
        is_folder = Path(path).is_dir()
    except (OSError, ValueError):
        is_folder = False
    if not is_folder:
        reason = f"{path}: there is no such folder for the {role}"
        return Refusal(Status.UNAVAILABLE, reason, "put the model folder there, or correct its path in the matrix")
    try:
        found = config(path)
    except (OSError, ValueError) as err:
        reason = f"{path}: the {role}'s config.json cannot be read ({err})"
        return Refusal(Status.UNAVAILABLE, reason, "a model folder of mlx-vlm holds config.json, weights and tokenizer")
    if not isinstance(found.get("model_type"), str):
        reason = f"{path}: the {role}'s config.json names no model_type"
        return Refusal(Status.UNSUPPORTED, reason, "convert the model with mlx_vlm.convert")
    if found.get("model_file") is not None:
        reason = f"the {role} wants to run its own code ({found['model_file']}), and no code from a model folder is run"
        return Refusal(Status.UNSUPPORTED, reason, "use a model whose architecture mlx-vlm has")
    return None


def _refuse_drafter(path: str, target: dict[str, Any], cell: Cell) -> Refusal | None:
    """A folder that mlx-vlm would run as another kind of drafter, or would drop without failing."""
    told = config(path)
    kind = str(told["model_type"])
    if "mtp" not in kind.lower() and kind not in ASSISTANTS | BUNDLES:
        reason = (
            f"{path}: its model_type is {kind}, which is no MTP drafter; mlx-vlm would take it for one of kind dflash "
            "and fail, or draft with something else than the cell says"
        )
        remedy = "name a drafter such as a qwen3_5_mtp or gemma4_assistant folder (mlx_vlm.split_mtp writes one)"
        return Refusal(Status.UNSUPPORTED, reason, remedy)
    size = told.get("backbone_hidden_size") or told.get("target_hidden_size") or text_config(path).get("hidden_size")
    wanted = target.get("hidden_size")
    if isinstance(size, int) and isinstance(wanted, int) and size != wanted:
        reason = (
            f"{path}: the drafter was made for a target with hidden size {size}, {cell.model.target} has {wanted}; "
            "mlx-vlm's command line would drop it and go on without speculation"
        )
        return Refusal(Status.UNSUPPORTED, reason, "name the drafter that belongs to this target")
    return None


def _refuse_inside(path: str) -> Refusal | None:
    """A target that has no MTP module in its own folder, or none that mlx-vlm takes out."""
    kinds = {str(config(path)["model_type"]), str(text_config(path).get("model_type"))}
    if not kinds & BUNDLES:
        reason = f"{path}: mlx-vlm takes no MTP module out of a {' / '.join(sorted(kinds))} model's own folder"
        return Refusal(Status.UNSUPPORTED, reason, "name the drafter's folder: models.*.mtp")
    try:
        names = tensor_names(path)
    except (OSError, ValueError, struct.error) as err:
        reason = f"{path}: the headers of its weights cannot be read ({err})"
        return Refusal(Status.UNAVAILABLE, reason, "download or convert the model again")
    qwen = any(kind.startswith("qwen") for kind in kinds)
    if qwen and not any(name.startswith("mtp.") for name in names):
        reason = f"{path}: no tensor of the MTP module (mtp.*) is in this folder"
        remedy = "convert the model with its MTP tensors kept, or name a drafter's folder: models.*.mtp"
        return Refusal(Status.UNSUPPORTED, reason, remedy)
    return None


def _refuse_top_k(told: dict[str, Any], cell: Cell) -> Refusal | None:
    size = told.get("vocab_size")
    if cell.sampling.greedy or not isinstance(size, int) or cell.sampling.top_k < size:
        return None
    reason = f"top_k {cell.sampling.top_k} is not below the vocabulary's {size} tokens, which mlx-vlm refuses"
    return Refusal(Status.UNSUPPORTED, reason, "set top_k to 0, which means off")


def config(path: str) -> dict[str, Any]:
    """``config.json`` of a model folder.

    Raises:
        OSError: it cannot be opened.
        ValueError: it is not a JSON object.
    """
    found = json.loads((Path(path) / "config.json").read_text(encoding="utf-8"))
    if not isinstance(found, dict):
        raise ValueError("not an object")  # noqa: TRY004  (one error for all that is not such a file)
    return found


def text_config(path: str) -> dict[str, Any]:
    """The part of ``config.json`` that describes the language model, over the rest; errors as :func:`config`."""
    found = config(path)
    inner = found.get("text_config")
    return {**found, **inner} if isinstance(inner, dict) else found


def tensor_names(path: str) -> dict[str, int]:
    """Bytes of every tensor in a folder's safetensors files by name, from their headers.

    Raises:
        OSError: a file cannot be opened.
        ValueError: there is none, or a header is not one of safetensors.
        struct.error: a file is too short to have one.
    """
    files = sorted(Path(path).glob("*.safetensors"))
    if not files:
        raise ValueError("no *.safetensors")
    found: dict[str, int] = {}
    for file in files:
        with file.open("rb") as opened:
            (length,) = struct.unpack("<Q", opened.read(8))
            if length > LONGEST_HEADER:
                raise ValueError(f"{file.name}: a header of {length} bytes")
            header = json.loads(opened.read(length))
        if not isinstance(header, dict):
            raise ValueError(f"{file.name}: the header is no object")  # noqa: TRY004  (one error for no such file)
        for name, entry in header.items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = int(end) - int(begin)
    return found

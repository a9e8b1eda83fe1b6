"""What oMLX is told before it starts: it has no command-line option for speculation, only settings files.

Setting names: omlx/model_settings.py of the fork flyto-mlx 0.7.0, and of jundot/omlx 0029d71 (``mtp_num_draft_tokens``,
``mtp_fixed_draft_depth``, ``dflash_verify_mode``). A version drops names that it does not know.
"""

from __future__ import annotations

import json
from pathlib import PurePath
from typing import Any

from adapters.omlx.options import Path, dflash_options, engine_options, mtp_options, path_of
from orchestrator.schema.cell import Cell

HOME = "omlx-home"
"""The private ``--base-path`` in the session's folder: nothing of the user's ~/.omlx is read or written."""

NO_SECRET = "none: a private server of one measurement"  # noqa: S105  (it is none)
"""In the place of the key that oMLX would make up and write down: a run's folder shall hold no key."""


def model_id(cell: Cell) -> str:
    """The name under which oMLX serves the target: its folder's."""
    return PurePath(cell.model.target).name


def files(cell: Cell) -> dict[str, str]:
    """The settings files, by path relative to the session's folder."""
    server = {
        "version": "1.0",
        "server": {"server_aliases": ["127.0.0.1"]},
        "auth": {"secret_key": NO_SECRET},
    }
    models = {"version": 1, "models": {model_id(cell): model_settings(cell)}}
    return {f"{HOME}/settings.json": _text(server), f"{HOME}/model_settings.json": _text(models)}


def model_settings(cell: Cell) -> dict[str, Any]:
    """The target's entry in ``model_settings.json``.

    ``top_k`` and the repetition penalty have no place in a text-completion request, so they are set here. Loading at
    the start (``is_pinned``) keeps the load out of the first request.
    """
    asked, path = cell.sampling, path_of(cell)
    settings: dict[str, Any] = {
        "is_pinned": True,
        "is_default": True,
        "max_context_window": engine_options(cell).context,
        "max_tokens": cell.workload.max_tokens,
        "max_concurrent_requests": 1,
        "force_sampling": False,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "top_k": asked.top_k,
        "min_p": asked.min_p,
        "repetition_penalty": asked.repeat_penalty,
        "presence_penalty": asked.presence_penalty,
        "mtp_enabled": path is Path.NATIVE,
        "vlm_mtp_enabled": path is Path.VLM,
        "dflash_enabled": path is Path.DFLASH,
        "specprefill_enabled": False,
        "turboquant_kv_enabled": False,
    }
    if path is Path.NATIVE:
        settings["mtp_num_draft_tokens"] = cell.method.n_max
        if not mtp_options(cell.method).adaptive:
            settings["mtp_fixed_draft_depth"] = cell.method.n_max
    elif path is Path.VLM:
        settings["vlm_mtp_draft_model"] = cell.model.mtp
        settings["vlm_mtp_draft_block_size"] = block_size(cell)
    elif path is Path.DFLASH:
        settings["dflash_draft_model"] = cell.draft_path
        settings["dflash_block_size"] = block_size(cell)
        settings["dflash_in_memory_cache"] = False  # a prefix cache of its own, on by default
        settings["dflash_ssd_cache"] = False
        verify_mode = dflash_options(cell.method).verify_mode
        if verify_mode is not None:
            settings["dflash_verify_mode"] = verify_mode
    return settings


def block_size(cell: Cell) -> int:
    """A block is the token that is already known and the drafts behind it."""
    return (cell.method.n_max or 0) + 1


def _text(data: dict[str, Any]) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False, sort_keys=True) + "\n"

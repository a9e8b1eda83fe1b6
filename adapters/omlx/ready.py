"""Judges an oMLX server that came up: it is healthy even when the model, or what should draft for it, did not load."""

from __future__ import annotations

import json
import re
from pathlib import PurePath
from typing import Any

from adapters.omlx.log import message
from adapters.omlx.options import Path, path_of
from adapters.omlx.settings import model_id
from orchestrator.schema.adapter import HttpStep, Refusal, Step
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell
from orchestrator.schema.status import Status

STATUS, MODELS = "status", "models"

_SETTINGS = re.compile(r"^.*Failed to load settings for model .*$", re.MULTILINE)
_PRELOAD = re.compile(r"^.*Failed to preload pinned model .*$", re.MULTILINE)
_IGNORED = re.compile(
    r"^.*(?:toggle (?:will be )?ignored|MTP path will be inactive|clearing vlm_mtp_enabled|"
    r"VLM MTP drafter load (?:failed|raised)|DFlash .*(?:failed|fall(?:s|ing) back)).*$",
    re.MULTILINE,
)
_AS_TEXT = re.compile(r"^.*VLM loading failed for .*falling back to LLM.*$", re.MULTILINE)
"""Seen in a real run: the model is served as a text model then, which takes no drafter, and nothing is said of that."""

_DRAFTS = re.compile(
    r"^.*(?:Native MTP patch applied for .*, active\)|VLM MTP (?:enabled for|drafter loaded)|DFlashEngine loaded).*$",
    re.MULTILINE,
)


def ready_steps() -> tuple[Step, ...]:
    """Version and loaded models. Never an admin endpoint: they need a login, and some answer with keys."""
    return (HttpStep(STATUS, "GET", "/api/status"), HttpStep(MODELS, "GET", "/v1/models/status"))


def check_ready(cell: Cell, ready: TrialCapture, stderr: str) -> Refusal | None:
    """Why the process must not be measured, or ``None``."""
    if (said := _SETTINGS.search(stderr)) is not None:
        reason = f"oMLX refuses the cell's settings, and would go on without them: {message(said[0])}"
        return Refusal(
            Status.UNSUPPORTED, reason, "this version cannot combine them: change the method or the sampling"
        )
    if (said := _PRELOAD.search(stderr)) is not None:
        return Refusal(Status.FAILED, f"oMLX could not load the model: {message(said[0])}", "see stderr.log")
    status = answer(ready, STATUS)
    if status is None or not isinstance(status.get("version"), str):
        return Refusal(Status.FAILED, "GET /api/status does not tell oMLX's version", "see stderr.log")
    return _wrong_model(cell, ready, status) or _wrong_drafter(cell, stderr)


def answer(ready: TrialCapture, name: str) -> dict[str, Any] | None:
    """The JSON object that a step after readiness was answered with; ``None`` when there is none."""
    step = ready.step(name)
    if step is None or step.http_status not in (None, 200):
        return None
    try:
        found = json.loads(step.text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _wrong_model(cell: Cell, ready: TrialCapture, status: dict[str, Any]) -> Refusal | None:
    name = model_id(cell)
    loaded = status.get("loaded_models")
    if isinstance(loaded, list) and not any(_named(one, name) for one in loaded):
        reason = f"oMLX is up and has not loaded the model {name}"
        return Refusal(Status.FAILED, reason, "see stderr.log: oMLX serves folders with config.json and safetensors")
    models = answer(ready, MODELS)
    listed = models.get("models") if models is not None else None
    for one in listed if isinstance(listed, list) else ():
        path = one.get("model_path") if isinstance(one, dict) and one.get("id") == name else None
        if isinstance(path, str) and PurePath(path) != PurePath(cell.model.target):
            reason = f"by the name {name} oMLX serves {path}, the cell names {cell.model.target}"
            return Refusal(Status.CONTAMINATED, reason, "give the model's folder a name of its own")
    return None


def _wrong_drafter(cell: Cell, stderr: str) -> Refusal | None:
    if path_of(cell) is Path.NONE:
        said = _DRAFTS.search(stderr)
        if said is None:
            return None
        reason = f"the baseline's server has a drafter: {message(said[0])}"
        return Refusal(Status.CONTAMINATED, reason, "remove what sets it: oMLX reads settings outside of its base path")
    said = _IGNORED.search(stderr) or (_AS_TEXT.search(stderr) if path_of(cell) is Path.VLM else None)
    if said is None:
        return None
    reason = f"oMLX answers requests, but has no drafter: {message(said[0])}"
    return Refusal(Status.NOT_ENGAGED, reason, "see the reason in oMLX's own words; a drafter must fit its target")


def _named(one: object, name: str) -> bool:
    return one == name or (isinstance(one, dict) and name in (one.get("id"), one.get("model_id"), one.get("name")))

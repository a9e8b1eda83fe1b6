"""Judges a llama.cpp server that came up: a healthy one may be measuring something else than the cell."""

from __future__ import annotations

import json
import re
from pathlib import PurePath

from adapters.llama_cpp.drafters import drafters
from adapters.llama_cpp.options import speculative_options
from adapters.llama_cpp.request import READY_PROPS, READY_SLOTS
from orchestrator.schema.adapter import Refusal
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.status import Status

_ERROR_LINE = re.compile(r"^\S+ E (.*)$", re.MULTILINE)
_ADDED = re.compile(r"adding speculative implementation '([^']+)'")
_LENGTH = re.compile(
    r"- (?:n_max=(\d+)|size_n=\d+, size_m=(\d+)|size_key=\d+, size_value=(\d+)|n_match=\d+, n_max=(\d+)|n_draft=(\d+))"
)
_SYNTHETIC = re.compile(r"synthetic speculative acceptance is enabled")
_SHOWN_ERRORS = 3


def check_ready(cell: Cell, ready: TrialCapture, stderr: str) -> Refusal | None:
    """Why the process must not be measured, or ``None``.

    llama.cpp answers requests without speculating when the vocabularies differ, when a drafter is missing, or when
    a drafter file is given without its type; and a drafter can be added from outside the command line. So what the
    server says of itself is compared with the cell in both directions.
    """
    slots, props = _json(ready, READY_SLOTS), _json(ready, READY_PROPS)
    if not isinstance(slots, list) or not slots or not isinstance(slots[0], dict):
        return Refusal(Status.FAILED, "GET /slots does not tell the server's slots", "start the server with --slots")
    if len(slots) != 1:
        return Refusal(Status.CONTAMINATED, f"the server has {len(slots)} slots, one was asked for")
    return (
        _wrong_model(cell, props)
        or _wrong_speculation(cell, slots[0].get("speculative"), stderr)
        or _wrong_drafter(cell, stderr)
        or _wrong_acceptance(cell, stderr)
    )


def _wrong_model(cell: Cell, props: object) -> Refusal | None:
    path = props.get("model_path") if isinstance(props, dict) else None
    if not isinstance(path, str):
        return Refusal(Status.FAILED, "GET /props does not tell the model that the server has loaded")
    if PurePath(path).name != PurePath(cell.model.target).name:
        reason = f"the server that answers has loaded {path}, the cell names {cell.model.target}"
        return Refusal(Status.CONTAMINATED, reason, "end the other server, or run again for another port")
    return None


def _wrong_speculation(cell: Cell, speculative: object, stderr: str) -> Refusal | None:
    if not isinstance(speculative, bool):
        reason = "this build's GET /slots does not say whether it speculates, so nothing could be attributed"
        return Refusal(Status.UNSUPPORTED, reason, "use a build of b11434 or later")
    wanted = cell.method.kind is not MethodKind.NONE
    if speculative == wanted:
        return None
    if wanted:
        errors = _ERROR_LINE.findall(stderr)[-_SHOWN_ERRORS:]
        said = "; ".join(" ".join(line.split()) for line in errors) or "its log gives no reason"
        reason = f"the server answers requests, but does not speculate (/slots: speculative false): {said}"
        remedy = "give a drafter with the target's own vocabulary, or a target with MTP layers"
        return Refusal(Status.NOT_ENGAGED, reason, remedy)
    found = ", ".join(_ADDED.findall(stderr)) or "unknown"
    reason = f"the baseline's server speculates (/slots: speculative true; drafter: {found})"
    return Refusal(Status.CONTAMINATED, reason, "remove what adds the drafter: a configuration file of llama.cpp")


def _wrong_drafter(cell: Cell, stderr: str) -> Refusal | None:
    wanted = drafters(cell.method)
    found = _added(stderr)
    if not wanted or not found:
        return None
    if [name for name, _ in found] != [drafter.name for drafter in wanted]:
        reason = (
            f"the server drafts by {', '.join(name for name, _ in found)}, "
            f"the cell asks for {', '.join(drafter.name for drafter in wanted)} alone"
        )
        return Refusal(Status.CONTAMINATED, reason, "remove what adds the drafter: a configuration file of llama.cpp")
    for drafter, (name, length) in zip(wanted, found, strict=True):
        if length is not None and length != drafter.length:
            reason = f"the server's {name} drafts at most {length} tokens, the cell asks for {drafter.length}"
            return Refusal(Status.UNSUPPORTED, reason, f"set n_max of method {cell.method.name} to {length}")
    return None


def _added(stderr: str) -> list[tuple[str, int | None]]:
    """Each drafter that the log says was set up, with the longest draft that it says it makes."""
    marks = list(_ADDED.finditer(stderr))
    found: list[tuple[str, int | None]] = []
    ends = [*(mark.start() for mark in marks[1:]), len(stderr)]
    for mark, end in zip(marks, ends[: len(marks)], strict=True):
        said = _LENGTH.search(stderr, mark.end(), end)
        length = next((int(number) for number in said.groups() if number), None) if said is not None else None
        found.append((mark[1], length))
    return found


def _wrong_acceptance(cell: Cell, stderr: str) -> Refusal | None:
    """Text accepted by lot must not pass for the model's, nor the model's for text accepted by lot."""
    options = speculative_options(cell.method)
    wanted = options is not None and options.synthetic
    found = _SYNTHETIC.search(stderr) is not None
    if found == wanted:
        return None
    if found:
        reason = "the server accepts drafts by lot (synthetic acceptance), and the cell does not ask for that"
        return Refusal(Status.CONTAMINATED, reason, "remove what sets it: a configuration file of llama.cpp")
    reason = "the cell asks for synthetic acceptance, and the server's log does not say that it is on"
    return Refusal(Status.NOT_ENGAGED, reason, "use a build that knows --spec-synth-len")


def _json(capture: TrialCapture, name: str) -> object:
    step = capture.step(name)
    if step is None or step.http_status not in (None, 200):
        return None
    try:
        found: object = json.loads(step.text)
    except ValueError:
        return None
    return found

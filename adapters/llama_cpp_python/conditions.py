"""Requested and effective settings of a llama-cpp-python cell, from the worker's echo."""

from __future__ import annotations

import json

from adapters.llama_cpp_python.protocol import Done
from adapters.llama_cpp_python.support import engine_options, lookup_options
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind

ECHO = "worker's echo of what it passed to llama_cpp"
SOURCE = "llama-cpp-python 0.3.36 source"
UNSET = "not set by the matrix"
SAMPLERS = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty")


def all_conditions(cell: Cell, request: str, done: Done) -> tuple[Condition, ...]:
    """Every setting that could move a number.

    Args:
        cell: what was asked.
        request: the request as it was sent.
        done: the worker's answer.
    """
    echo, asked, options = done.effective, cell.sampling, engine_options(cell)
    rows = [_compared(name, f"{getattr(asked, name):g}", f"{getattr(echo.sampling, name):g}") for name in SAMPLERS]
    rows += [
        _compared("seed", _seed(request), str(echo.sampling.seed)),
        _compared("max_tokens", str(cell.workload.max_tokens), str(echo.max_tokens)),
        _threads("threads", options.threads, echo.threads),
        _threads("verify_threads", options.threads, echo.threads_batch),
        _context(options.context, echo.n_ctx),
        Condition("xtc_probability", "0", "0: the package has no XTC", Honoured.HONOURED, SOURCE),
        Condition("prompt_cache", "cold", "emptied before every trial", Honoured.HONOURED, ECHO),
        Condition("chat_template", "none", "none: the prompt is sent as it is", Honoured.HONOURED, ECHO),
        _end_of_text(cell.workload.eos, done),
        _stated("filter_order", "penalties → top_k → typical → top_p → min_p → temperature", SOURCE),
    ]
    if (asked.repeat_penalty, asked.presence_penalty, asked.frequency_penalty) != (1, 0, 0):
        rows.append(_stated("penalty_window", f"last {echo.penalty_window} tokens of the answer, not the prompt", ECHO))
    if cell.method.kind is MethodKind.NGRAM:
        rows += [
            _compared("draft_length", str(cell.method.n_max), str(echo.num_pred_tokens)),
            _compared("max_ngram_size", str(lookup_options(cell.method).max_ngram_size), str(echo.max_ngram_size)),
            _stated(
                "logits_all", "on: the package reads the scores of every token as soon as it has a drafter", SOURCE
            ),
        ]
    rows.append(
        _stated("scores_buffer", f"{echo.scores_bytes} B for scores, vocabulary × context with a drafter", ECHO)
    )
    return tuple(rows)


def _seed(request: str) -> str:
    try:
        return str(json.loads(request)["sampling"]["seed"])
    except (ValueError, KeyError, TypeError):
        return "not told"


def _threads(name: str, asked: int | None, effective: int) -> Condition:
    if asked is None:
        return Condition(name, "engine's own choice", str(effective), Honoured.HONOURED, ECHO)
    return _compared(name, str(asked), str(effective))


def _context(asked: int, effective: int) -> Condition:
    """llama.cpp rounds a context up; the package itself keeps to what was asked."""
    verdict = Honoured.HONOURED if effective >= asked else Honoured.CHANGED
    return Condition("context", str(asked), str(effective), verdict, ECHO)


def _end_of_text(policy: EosPolicy, done: Done) -> Condition:
    echo = done.effective
    ids = ", ".join(str(token) for token in done.end_of_text_ids) or "none"
    effective = {
        EosPolicy.STOP.value: f"stops at {ids}",
        EosPolicy.CONTINUE.value: f"emits {ids} and goes on",
        EosPolicy.MASK.value: f"{ids} set to −∞ by a logits processor in Python, before all samplers",
    }.get(echo.eos, echo.eos)
    kept = echo.eos == policy.value and (
        bool(echo.stops_at) == (policy is EosPolicy.STOP and bool(done.end_of_text_ids))
        and (echo.processors > 0) == (policy is EosPolicy.MASK)
    )
    return Condition("end_of_text", policy.value, effective, Honoured.HONOURED if kept else Honoured.CHANGED, ECHO)


def _compared(name: str, requested: str, effective: str) -> Condition:
    verdict = Honoured.HONOURED if requested == effective else Honoured.CHANGED
    return Condition(name, requested, effective, verdict, ECHO)


def _stated(name: str, effective: str, source: str) -> Condition:
    return Condition(name, UNSET, effective, Honoured.HONOURED, source)

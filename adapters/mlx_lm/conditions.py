"""Requested and effective settings of an MLX-LM cell, from the worker's echo of what it passed on."""

from __future__ import annotations

from adapters.mlx_lm.protocol import Done, Effective
from adapters.shared.penalties import neutral_penalties
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind

ECHO = "worker's echo of what it passed to mlx-lm"
SOURCE = "mlx-lm 0.32.2 source"
UNSET = "not set by the matrix"


def all_conditions(cell: Cell, seed: int | None, done: Done, options: dict[str, str]) -> tuple[Condition, ...]:
    """Every setting that could move a number.

    Args:
        cell: what was asked.
        seed: the trial's seed as it was sent.
        done: the worker's answer.
        options: the engine's options as the matrix sets them, in words.
    """
    echo = done.effective
    asked, got = cell.sampling, echo.sampling
    settings = ["temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty"]
    settings += ["xtc_probability"] if asked.xtc_probability == 0 else ["xtc_probability", "xtc_threshold"]
    rows = [_compared(name, f"{getattr(asked, name):g}", f"{getattr(got, name):g}") for name in settings]
    rows += [
        _compared("seed", "not told" if seed is None else str(seed), str(got.seed)),
        _compared("max_tokens", str(cell.workload.max_tokens), str(echo.max_tokens)),
        _compared("draft_length", str(cell.method.n_max or 0), str(echo.num_draft_tokens)),
        _compared("prefill_step_size", options["prefill_step_size"], str(echo.prefill_step_size)),
        _compared("kv_bits", options["kv_bits"], str(echo.kv_bits)),
        _end_of_text(cell.workload.eos, echo, done),
        _weights("dtype", options["dtype"], echo.dtype),
        Condition("prompt_cache", "cold", "a new one for every trial", Honoured.HONOURED, ECHO),
        Condition("chat_template", "none", "none: the prompt is sent as it is", Honoured.HONOURED, ECHO),
    ]
    if cell.method.kind is MethodKind.DRAFT:
        rows.append(_weights("draft_dtype", options["dtype"], echo.draft_dtype))
    if echo.kv_bits is not None:
        rows.append(_compared("kv_group_size", options["kv_group_size"], str(echo.kv_group_size)))
        rows.append(_stated("quantized_kv_start", str(echo.quantized_kv_start), ECHO))
    return tuple(rows + _engine_habits(cell, echo))


def _engine_habits(cell: Cell, echo: Effective) -> list[Condition]:
    """What mlx-lm does in its own way and other engines may do in another."""
    rows = []
    if not cell.sampling.greedy:
        order = "top_p → min_p → XTC → top_k → temperature (llama.cpp: top_k → top_p → min_p → XTC → temperature)"
        rows.append(_stated("filter_order", order, SOURCE))
    if not neutral_penalties(cell.sampling):
        seen = "the answer and the prompt's last token" if cell.method.kind is MethodKind.DRAFT else "prompt and answer"
        rows.append(_stated("penalty_window", f"last {echo.penalty_window} tokens of {seen}", ECHO))
    if cell.method.kind is MethodKind.DRAFT:
        how = "row by row, since a logits processor is at work" if echo.processors else "all rows at once"
        rows.append(_stated("verify_sampling", how, ECHO))
    if "cpu" in echo.device:
        how = f"compiled with {echo.compiler}" if echo.compiler else "not compiled: no g++ on PATH"
        rows.append(_stated("fused_kernels", how, ECHO))
    return rows


def _compared(name: str, requested: str, effective: str) -> Condition:
    verdict = Honoured.HONOURED if requested == effective else Honoured.CHANGED
    return Condition(name, requested, effective, verdict, ECHO)


def _stated(name: str, effective: str, source: str) -> Condition:
    return Condition(name, UNSET, effective, Honoured.HONOURED, source)


def _weights(name: str, requested: str, effective: tuple[str, ...]) -> Condition:
    words = ", ".join(effective)
    if requested == "None":
        return Condition(name, "as stored", words, Honoured.HONOURED, ECHO)
    floats = {kind for kind in effective if "float" in kind}
    verdict = Honoured.HONOURED if floats == {requested} else Honoured.CHANGED
    return Condition(name, requested, words, verdict, ECHO)


def _end_of_text(policy: EosPolicy, echo: Effective, done: Done) -> Condition:
    ids = ", ".join(str(token) for token in done.end_of_text_ids) or "none"
    stops = bool(echo.stops_at)
    effective = {
        EosPolicy.STOP.value: f"stops at {ids}",
        EosPolicy.CONTINUE.value: f"emits {ids} and goes on",
        EosPolicy.MASK.value: f"{ids} set to −∞ by a logits processor",
    }.get(echo.eos, echo.eos)
    kept = echo.eos == policy.value and (stops or policy is not EosPolicy.STOP or not done.end_of_text_ids)
    return Condition("end_of_text", policy.value, effective, Honoured.HONOURED if kept else Honoured.CHANGED, ECHO)

"""Requested and effective settings of an mlx-vlm cell, from the worker's echo of what it passed on."""

from __future__ import annotations

from adapters.mlx_vlm.protocol import Done, Effective
from adapters.shared.penalties import neutral_penalties
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind

ECHO = "worker's echo of what it passed to mlx-vlm"
SOURCE = "mlx-vlm 0.7.10 source"
UNSET = "not set by the matrix"
SAMPLED = ("temperature", "top_k", "top_p", "min_p", "repeat_penalty", "presence_penalty", "frequency_penalty")


def all_conditions(
    cell: Cell, seed: int | None, done: Done, seeding: str, prefill: int | None
) -> tuple[Condition, ...]:
    """Every setting that could move a number.

    Args:
        cell: what was asked.
        seed: the trial's seed as it was sent.
        done: the worker's answer.
        seeding: the engine's option of that name.
        prefill: prompt tokens a prefill pass as the matrix sets them.
    """
    echo = done.effective
    asked, got = cell.sampling, echo.sampling
    rows = [_compared(name, f"{getattr(asked, name):g}", f"{getattr(got, name):g}") for name in SAMPLED]
    rows += [
        _compared("seed", "not told" if seed is None else str(seed), str(got.seed)),
        _compared("max_tokens", str(cell.workload.max_tokens), str(echo.max_tokens)),
        _draft_length(cell, done),
        _compared("prefill_step_size", str(prefill), str(echo.prefill_step_size)),
        _end_of_text(cell.workload.eos, echo, done),
        Condition("dtype", "as stored", ", ".join(echo.dtype), Honoured.HONOURED, ECHO),
        Condition("prompt_cache", "cold", "a new one for every trial", Honoured.HONOURED, ECHO),
        Condition("chat_template", "none", "none: the prompt is sent as it is", Honoured.HONOURED, ECHO),
    ]
    return tuple(rows + _engine_habits(cell, done, seeding))


def _engine_habits(cell: Cell, done: Done, seeding: str) -> list[Condition]:
    """What mlx-vlm does in its own way and other engines may do in another."""
    echo = done.effective
    rows = []
    if not cell.sampling.greedy:
        first = "top_k → top_p" if echo.seeded_by == "position" else "top_p → min_p → top_k"
        rows.append(_stated("filter_order", f"{first} → temperature", SOURCE))
        how = {"position": "each place of the answer has a key of its own", "stream": "one stream of random numbers"}
        verdict = Honoured.HONOURED if echo.seeded_by == seeding else Honoured.CHANGED
        rows.append(Condition("seeding", seeding, how.get(echo.seeded_by, echo.seeded_by), verdict, ECHO))
    if not neutral_penalties(cell.sampling):
        words = f"last {echo.penalty_window} tokens of the answer and the prompt's last token"
        rows.append(_stated("penalty_window", words, ECHO))
    if cell.method.kind is MethodKind.MTP:
        rows += _drafting(cell, done)
    if "cpu" in echo.device:
        how_built = f"compiled with {echo.compiler}" if echo.compiler else "not compiled: no g++ on PATH"
        rows.append(_stated("fused_kernels", how_built, ECHO))
    return rows


def _drafting(cell: Cell, done: Done) -> list[Condition]:
    echo, told = done.effective, done.speculation
    rows = [
        _stated("drafter", f"{echo.draft_type}, run as {echo.draft_kind}", ECHO),
        Condition("draft_dtype", "as stored", ", ".join(echo.draft_dtype), Honoured.HONOURED, ECHO),
    ]
    if told is not None and told.prompt_shown is not None:
        words = f"{told.prompt_shown} of {done.prompt_tokens} tokens"
        if told.prompt_shown < done.prompt_tokens:
            words += ": a prompt that is read in pieces leaves the drafter its end"
        rows.append(_stated("prompt_shown_to_drafter", words, "counted by the worker at the drafter"))
    together = cell.sampling.greedy or echo.seeded_by == "position"
    rows.append(
        _stated("verify_sampling", "all rows at once" if together else "row by row, to the first refusal", SOURCE)
    )
    drafts = "greedy" if together else "sampled, with the random numbers that the target is to use"
    rows.append(_stated("draft_sampling", drafts, SOURCE))
    return rows


def _draft_length(cell: Cell, done: Done) -> Condition:
    """The blocks as they came: some drafters take a larger block only after many hits."""
    wanted, told = cell.method.n_max or 0, done.speculation
    if told is None or not told.proposed:
        return _compared("draft_length", str(wanted), str(max(done.effective.block_size - 1, 0)))
    longest = max(told.proposed)
    room = cell.workload.max_tokens - 1
    verdict = Honoured.HONOURED if longest == min(wanted, room) else Honoured.CHANGED
    return Condition("draft_length", str(wanted), str(longest), verdict, "counted by the worker at the drafter")


def _compared(name: str, requested: str, effective: str) -> Condition:
    verdict = Honoured.HONOURED if requested == effective else Honoured.CHANGED
    return Condition(name, requested, effective, verdict, ECHO)


def _stated(name: str, effective: str, source: str) -> Condition:
    return Condition(name, UNSET, effective, Honoured.HONOURED, source)


def _end_of_text(policy: EosPolicy, echo: Effective, done: Done) -> Condition:
    ids = ", ".join(str(token) for token in done.end_of_text_ids) or "none"
    effective = {
        EosPolicy.STOP.value: f"stops at {ids}",
        EosPolicy.CONTINUE.value: f"emits {ids} and goes on",
        EosPolicy.MASK.value: f"{ids} set to −∞ before the sampler, since mlx-vlm has no mask while it speculates",
    }.get(echo.eos, echo.eos)
    masked = echo.sampler != "mlx-vlm's"
    kept = echo.eos == policy.value and masked is (policy is EosPolicy.MASK)
    kept = kept and (bool(echo.stops_at) or policy is not EosPolicy.STOP or not done.end_of_text_ids)
    return Condition("end_of_text", policy.value, effective, Honoured.HONOURED if kept else Honoured.CHANGED, ECHO)

"""From one trial's capture to observations: our clock's, by one function for all engines, and the engine's own."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from orchestrator.schema.metrics import TIME_TO_N
from orchestrator.schema.observation import Absence, Observation, absent, observed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from orchestrator.schema.adapter import Adapter, Arrival, Arrivals
    from orchestrator.schema.capture import TrialCapture
    from orchestrator.schema.cell import Cell

SOURCE = "events:arrivals"
RATE_TOLERANCE = 0.05
"""Our decode rate against the engine's, relative (docs/methodology, Figures)."""
STAMP_JITTER_S = 0.002
"""What a stamp of ours may be late by on a loaded machine: below that two clocks do not disagree."""
FROM_GAPS = frozenset({"decode_time", "decode_rate", "tpot", "burst_gap_p50", "burst_gap_p95"})
"""What is computed from differences between our stamps, and is wrong when those are late."""


@dataclass(frozen=True, slots=True)
class ObservedTrial:
    """All that one capture says. ``curve`` holds (seconds since sent, tokens so far) at each burst."""

    observations: tuple[Observation, ...]
    token_ids: tuple[int, ...]
    text: str
    finish_reason: str
    curve: tuple[tuple[float, int], ...]
    problems: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Burst:
    t_s: float
    tokens: int


def observe_trial(adapter: Adapter, cell: Cell, capture: TrialCapture) -> ObservedTrial:
    """The engine's observations and ours, with the invariants between the two checked.

    Raises:
        CaptureError: the adapter cannot read the capture.
    """
    parsed = adapter.parse_trial(cell, capture)
    arrivals = adapter.arrivals(cell, capture)
    if arrivals is None or not arrivals.tokens:
        return ObservedTrial(
            parsed.observations,
            parsed.token_ids,
            parsed.text,
            parsed.finish_reason,
            (),
            (*parsed.problems, "no token arrived"),
        )
    bursts = _bursts(arrivals.tokens)
    ours = _our_observations(arrivals, bursts, cell.workload.cache)
    ids = tuple(token for arrival in arrivals.tokens for token in arrival.ids)
    problems = list(parsed.problems)
    if parsed.token_ids and ids != parsed.token_ids:  # none: the engine does not tell which text is whose
        problems.append(f"{len(ids)} token ids arrived in time order, the engine's answer has {len(parsed.token_ids)}")
    late = _late_stamps((*ours, *parsed.observations))
    if late is not None:
        problems.append(late)
        ours = [absent(o.metric, Absence.SUPPRESSED, late) if o.metric in FROM_GAPS else o for o in ours]
    ours += _cache_share(parsed.observations)
    if arrivals.burst_source == "engine":
        problems += _pass_problems((*ours, *parsed.observations), bursts)
    sent = arrivals.sent_s
    total, curve = 0, []
    for burst in bursts:
        total += burst.tokens
        curve.append((burst.t_s - sent, total))
    return ObservedTrial(
        (*ours, *parsed.observations),
        parsed.token_ids,
        parsed.text,
        parsed.finish_reason,
        tuple(curve),
        tuple(problems),
    )


def _cache_share(observations: Iterable[Observation]) -> list[Observation]:
    """What part of the prompt came from a cache, where the engine counts both."""
    counts = {one.metric: one.value for one in observations if isinstance(one.value, int)}
    if "cached_tokens" not in counts or not counts.get("prompt_tokens"):
        return []
    return [observed("cached_share", counts["cached_tokens"] / counts["prompt_tokens"], "cached ÷ prompt tokens")]


def _first_answer(wait_s: float, cache: str) -> list[Observation]:
    """Under the name that says what the engine had of the prompt: the two are never one number."""
    if cache == "cold":
        return [observed("ttft", wait_s, SOURCE)]
    why = f"the prompt is {cache}: see ttft_cached"
    return [
        observed("ttft_cached", wait_s, SOURCE, note=f"{cache} prompt"),
        absent("ttft", Absence.NOT_APPLICABLE, why),
    ]


def _bursts(tokens: tuple[Arrival, ...]) -> list[_Burst]:
    """Groups of consecutive arrivals with one key; a burst's time is that of its first token."""
    bursts: list[_Burst] = []
    key: str | None = None
    for arrival in tokens:
        if arrival.burst == key:
            bursts[-1] = _Burst(bursts[-1].t_s, bursts[-1].tokens + len(arrival.ids))
        else:
            bursts.append(_Burst(arrival.t_s, len(arrival.ids)))
            key = arrival.burst
    return bursts


def _our_observations(arrivals: Arrivals, bursts: list[_Burst], cache: str) -> list[Observation]:
    sent = arrivals.sent_s
    note = None if arrivals.burst_source == "engine" else "bursts inferred from arrival gaps"
    found = [
        *_first_answer(bursts[0].t_s - sent, cache),
        observed("e2e_latency", arrivals.done_s - sent, SOURCE),
        observed("burst_count", len(bursts), SOURCE, note=note),
    ]
    found += _time_to_n(arrivals)
    decode_s = bursts[-1].t_s - bursts[0].t_s
    gaps = sorted(later.t_s - earlier.t_s for earlier, later in pairwise(bursts))
    if len(bursts) < 2 or decode_s <= 0:
        why = f"{len(bursts)} burst(s) over {decode_s} s: no interval to divide by"
        names = ("decode_time", "decode_rate", "tpot", "burst_gap_p50", "burst_gap_p95")
        return found + [absent(name, Absence.SUPPRESSED, why) for name in names]
    rate = (sum(burst.tokens for burst in bursts) - bursts[0].tokens) / decode_s
    return [
        *found,
        observed("decode_time", decode_s, SOURCE, note=note),
        observed("decode_rate", rate, SOURCE, note=note),
        observed("tpot", 1 / rate, SOURCE, note=note),
        observed("burst_gap_p50", median(gaps), SOURCE, note=note),
        observed("burst_gap_p95", gaps[min(len(gaps) - 1, math.ceil(0.95 * len(gaps)) - 1)], SOURCE, note=note),
    ]


def _time_to_n(arrivals: Arrivals) -> list[Observation]:
    stamps = [arrival.t_s for arrival in arrivals.tokens for _ in arrival.ids]
    return [
        observed(f"time_to_{n}", stamps[n - 1] - arrivals.sent_s, SOURCE)
        if n <= len(stamps)
        else absent(f"time_to_{n}", Absence.NOT_APPLICABLE, f"the answer has {len(stamps)} tokens")
        for n in TIME_TO_N
    ]


def _late_stamps(observations: Iterable[Observation]) -> str | None:
    """Why the gaps between our stamps cannot be believed, if so: the engine's own clock says otherwise.

    A machine that is busy wakes us late, and events that came one by one are then stamped together.
    """
    values = _numbers(observations)
    ours, engine, decode_s = values.get("decode_rate"), values.get("engine_decode_rate"), values.get("decode_time")
    if not ours or not engine or not decode_s:
        return None
    if abs(ours / engine - 1) <= RATE_TOLERANCE + STAMP_JITTER_S / max(decode_s, decode_s * ours / engine):
        return None
    return f"our decode rate and the engine's disagree: {ours:.1f} and {engine:.1f} tok/s; was the machine busy?"


def _pass_problems(observations: Iterable[Observation], bursts: list[_Burst]) -> list[str]:
    values = _numbers(observations)
    passes = values.get("target_passes")
    if passes is None or values.get("replay_passes", 0) or passes in (len(bursts), len(bursts) - 1):
        return []
    return [f"target passes and bursts disagree: {passes:.0f} by the engine, {len(bursts)} arrived"]


def _numbers(observations: Iterable[Observation]) -> dict[str, float]:
    return {item.metric: float(item.value) for item in observations if isinstance(item.value, int | float)}

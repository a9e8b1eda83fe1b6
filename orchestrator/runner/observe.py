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
"""Our decode rate against the engine's, relative (``METRICS``, Invariants)."""
STAMP_JITTER_S = 0.002
"""What a stamp of ours may be late by on a loaded machine: below that two clocks do not disagree."""


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
            parsed.observations, parsed.token_ids, parsed.text, parsed.finish_reason, (),
            (*parsed.problems, "no token arrived"),
        )
    bursts = _bursts(arrivals.tokens)
    ours = _our_observations(arrivals, bursts)
    ids = tuple(token for arrival in arrivals.tokens for token in arrival.ids)
    problems = list(parsed.problems)
    if ids != parsed.token_ids:
        problems.append(f"{len(ids)} token ids arrived in time order, the engine's answer has {len(parsed.token_ids)}")
    problems += _cross_checks((*ours, *parsed.observations), bursts)
    sent = arrivals.sent_s
    total, curve = 0, []
    for burst in bursts:
        total += burst.tokens
        curve.append((burst.t_s - sent, total))
    return ObservedTrial(
        (*ours, *parsed.observations), parsed.token_ids, parsed.text, parsed.finish_reason, tuple(curve),
        tuple(problems),
    )


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


def _our_observations(arrivals: Arrivals, bursts: list[_Burst]) -> list[Observation]:
    sent = arrivals.sent_s
    note = None if arrivals.burst_source == "engine" else "bursts inferred from arrival gaps"
    found = [
        observed("ttft", bursts[0].t_s - sent, SOURCE),
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


def _cross_checks(observations: Iterable[Observation], bursts: list[_Burst]) -> list[str]:
    """Invariants between our clock and the engine's word (``METRICS``, Invariants)."""
    values = {item.metric: item.value for item in observations if isinstance(item.value, int | float)}
    problems = []
    ours, engine, decode_s = values.get("decode_rate"), values.get("engine_decode_rate"), values.get("decode_time")
    if ours and engine and decode_s:
        allowed = RATE_TOLERANCE + STAMP_JITTER_S / decode_s
        if abs(ours / engine - 1) > allowed:
            problems.append(f"our decode rate is {ours:.1f} tok/s, the engine's {engine:.1f} tok/s")
    passes = values.get("target_passes")
    if passes is not None and values.get("replay_passes", 0) == 0 and passes not in (len(bursts), len(bursts) - 1):
        problems.append(f"the engine made {passes} target passes, {len(bursts)} bursts arrived")
    return problems

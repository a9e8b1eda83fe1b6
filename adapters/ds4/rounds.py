"""What ds4 says of its speculation, in the formats of its generations.

* one-stage MTP: ``ds4: mtp timing …`` a cycle, and ``ds4: mtp spec miss first …`` for cycles whose first draft did not
  fit (``DS4_MTP_TIMING`` and ``DS4_MTP_SPEC_LOG``; ds4.c at 8d57664);
* DSpark: :mod:`adapters.ds4.dspark`;
* built-in MTP: a line a cycle for GLM (``ds4: glm mtp cycle: …``, ds4.c at 000401c; a branch: ``glm mtp utility``), a
  line at the end for Qwen (``--mtp-timing``).

Where sampling is exact above temperature 0, a cycle that refuses a draft draws the token in its place and prints it
too; elsewhere the next cycle begins with that token.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from adapters.ds4.run import Line
from orchestrator.schema.errors import CaptureError

MAY_CYCLE = "ds4:2026-05:cycle"
"""Definition of what is counted cycle by cycle from the lines of one-stage MTP."""
GLM_CYCLE, QWEN_TOTAL = "ds4:2026-09:glm-cycle", "ds4:2026-09:qwen-total"
ONE_PASS = frozenset({GLM_CYCLE, QWEN_TOTAL})
"""Definitions of built-in MTP, whose cycle judges its drafts in the pass over its own token."""

_TIMING = re.compile(r"^ds4: mtp timing (margin-skip|decode2|micro|seq) (.*)$")
_MISS = re.compile(r"^ds4: mtp spec miss first draft=-?\d+$")
_FELL_BACK = re.compile(r"^ds4: mtp (?:spec micro|decode2) verifier failed")
_GLM = re.compile(r"^ds4: glm mtp utility: (.*)$")
_GLM_CYCLE = re.compile(
    r"^ds4: glm mtp cycle: verify2 (\d+\.\d+) ms, head\+draft \d+\.\d+ ms, (ACCEPT|reject|EXACT_ACCEPT|exact_reject) \("
)
_QWEN = re.compile(r"^ds4: (?:\S.*)?\bmtp: (\d+) verify cycles, (\d+) drafts accepted\b", re.IGNORECASE)
_PAIR = re.compile(r"([a-z][a-z0-9_]*(?:\[[^\]]*\])?)=(\S+)")
_TIMES = ("draft", "snapshot", "verify", "prefix", "replay", "exact_replay", "rollback")
_BACK = ("snapshot", "prefix", "replay", "exact_replay", "rollback")
_REPLAYS = ("replay", "exact_replay")


@dataclass(frozen=True, slots=True)
class Cycle:
    """One cycle in which something was drafted.

    Args:
        drafted: tokens proposed and judged or refused with them; ``accepted`` of them were kept.
        rejected: 1 where the target refused one, else 0.
        seconds: by part, where the engine measured it.
        dropped: tokens proposed and withdrawn before the target was asked.
        replaced: 1 where the token in a refused draft's place was printed by the same cycle.
    """

    drafted: int
    accepted: int
    rejected: int
    seconds: tuple[tuple[str, float], ...] = ()
    dropped: int = 0
    replaced: int = 0


@dataclass(frozen=True, slots=True)
class Spoken:
    """All that one trial's output says of speculation. ``None`` is what it does not say.

    Args:
        source: which lines, and under which definition they count.
        drafted: tokens proposed; ``accepted``, ``rejected`` likewise.
        cycles: cycles in which something was proposed.
        idle: cycles in which nothing was.
        replaced: tokens that the target chose where it refused a draft, printed by the same cycle.
        lengths: proposed tokens of each cycle; ``kept`` the accepted ones.
        draft_s: seconds in the drafter; ``verify_s`` and ``back_s`` (restoring and replaying) likewise.
        replays: passes that decoded accepted tokens again.
        dropped: tokens proposed and withdrawn unasked, which ``drafted`` leaves out.
        problems: where the lines contradict each other, in words.
    """

    source: str
    definition: str
    drafted: int | None
    accepted: int
    rejected: int | None
    cycles: int | None
    idle: int | None = None
    lengths: tuple[int, ...] | None = None
    kept: tuple[int, ...] | None = None
    draft_s: float | None = None
    verify_s: float | None = None
    back_s: float | None = None
    replays: int | None = None
    dropped: int = 0
    problems: tuple[str, ...] = ()
    replaced: int | None = 0

    @property
    def by_rounds(self) -> int | None:
        """Tokens of the cycles that drafted: their own, the accepted ones and those put in place of refused ones."""
        if self.cycles is None or self.replaced is None:
            return None
        return self.cycles + self.accepted + self.replaced

    def left(self, tokens: int) -> int | None:
        """Tokens of an answer that no line accounts for; negative where the lines tell more than it has."""
        return None if self.by_rounds is None else tokens - self.by_rounds - (self.idle or 0)


def support_cycles(lines: Iterable[Line]) -> Spoken | None:
    """One-stage MTP, cycle by cycle; ``None`` where no line speaks of it.

    ``committed`` counts drafts that were kept; the cycle's own token comes on top. A cycle whose first draft does not
    fit prints no timing, so that without the lines on misses acceptance would be too high.

    Raises:
        CaptureError: a line is not as this format has it.
    """
    cycles: list[Cycle] = []
    problems: list[str] = []
    for line in lines:
        if _MISS.match(line.text):
            cycles.append(Cycle(1, 0, 1))
        elif _FELL_BACK.match(line.text):
            problems.append(f"the batched verifier failed and ds4 went on one by one: {line.text}")
        elif (found := _TIMING.match(line.text)) is not None:
            cycles.append(_support_cycle(found[1], pairs_of(found[2])))
    if not cycles:
        return None
    replays = sum(1 for cycle in cycles for name, _ in cycle.seconds if name in _REPLAYS)
    return _summed("stderr:mtp timing, mtp spec miss", MAY_CYCLE, cycles, replays, problems)


def _support_cycle(path: str, pairs: dict[str, str]) -> Cycle:
    drafted, kept = whole(pairs, "drafted"), whole(pairs, "verified" if path == "seq" else "committed")
    if not 0 <= kept <= drafted:
        raise CaptureError(f"a cycle of ds4 keeps {kept} of {drafted} drafts")
    if path == "margin-skip":
        # The second draft's confidence was too low to ask the target: it was never handed to verification.
        return Cycle(kept, kept, 0, _times(pairs), drafted - kept)
    return Cycle(drafted, kept, int(kept < drafted), _times(pairs))


def embedded_cycles(lines: Iterable[Line], *, exact: bool = False) -> Spoken | None:
    """Built-in MTP; ``None`` where no line speaks of it.

    Args:
        lines: what ds4 printed.
        exact: it samples exactly above temperature 0.

    Raises:
        CaptureError: a line is not as this format has it.
    """
    cycles: list[Cycle] = []
    total: tuple[int, int] | None = None
    for line in lines:
        if (found := _GLM.match(line.text)) is not None:
            cycles.append(_utility_cycle(pairs_of(found[1])))
        elif (found := _GLM_CYCLE.match(line.text)) is not None:
            kept = int(found[2].endswith("ACCEPT"))
            seconds = (("verify", float(found[1]) / 1e3),)
            cycles.append(Cycle(1, kept, 1 - kept, seconds, replaced=int(found[2] == "exact_reject")))
        elif (found := _QWEN.match(line.text)) is not None:
            total = int(found[1]), int(found[2])
    if cycles:
        return _summed("stderr:glm mtp", GLM_CYCLE, cycles, None, [])
    if total is None:
        return None
    # A cycle drafts one token, or two while that pays: what was proposed is not told, nor what was refused.
    replaced = None if exact else 0
    return Spoken("stderr:mtp: verify cycles", QWEN_TOTAL, None, total[1], None, total[0], replaced=replaced)


def _utility_cycle(pairs: dict[str, str]) -> Cycle:
    drafted, more = whole(pairs, "width") - 1, whole(pairs, "committed") - 1
    if not 0 <= more <= drafted:
        raise CaptureError(f"a cycle of ds4 prints {more} tokens for {drafted} drafts")
    refused = "reject" in pairs.get("result", "").lower() or more < drafted
    # It drafts one token: what a refusing cycle prints beside its own is in the draft's place.
    kept = 0 if refused and drafted == 1 else more
    return Cycle(drafted, kept, int(refused), _times(pairs), replaced=more - kept)


def _summed(source: str, definition: str, cycles: list[Cycle], replays: int | None, problems: list[str]) -> Spoken:
    return Spoken(
        source,
        definition,
        sum(cycle.drafted for cycle in cycles),
        sum(cycle.accepted for cycle in cycles),
        sum(cycle.rejected for cycle in cycles),
        len(cycles),
        None,
        tuple(cycle.drafted for cycle in cycles),
        tuple(cycle.accepted for cycle in cycles if cycle.accepted),
        _spent(cycles, ("draft",)),
        _spent(cycles, ("verify",)),
        _spent(cycles, _BACK),
        replays,
        sum(cycle.dropped for cycle in cycles),
        tuple(problems),
        sum(cycle.replaced for cycle in cycles),
    )


def _spent(cycles: list[Cycle], names: tuple[str, ...]) -> float | None:
    """Seconds of those parts; ``None`` where no cycle tells any of them, which is not 0."""
    told = [seconds for cycle in cycles for name, seconds in cycle.seconds if name in names]
    return sum(told) if told else None


def pairs_of(text: str) -> dict[str, str]:
    """``key=value`` of a line, in any order."""
    return dict(_PAIR.findall(text))


def _times(pairs: dict[str, str]) -> tuple[tuple[str, float], ...]:
    found = []
    for key, value in pairs.items():
        name = key.partition("[")[0]
        if name in _TIMES:
            try:
                found.append((name, float(value) / 1e3))
            except ValueError as err:
                raise CaptureError(f"{key}={value} is no time") from err
    return tuple(found)


def whole(pairs: dict[str, str], key: str, default: int | None = None) -> int:
    """A count of a line.

    Raises:
        CaptureError: it is none, or missing without a default.
    """
    value = pairs.get(key)
    if value is None and default is not None:
        return default
    if value is None or not value.isdecimal():
        raise CaptureError(f"ds4 prints no whole number for {key!r}")
    return int(value)

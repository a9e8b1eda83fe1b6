"""Reads oMLX's log lines about speculation: the only place where it tells what was drafted and accepted.

Forms, each read by an expression of its own and to its end, so that a line with anything new counts as unread:

* ``MTP/1``: flyto-mlx 0.7.0 (real runs). One draft a cycle; accepted of cycles.
* ``MTP/2``: jundot/omlx 4219ab1 and later (source, issue 3370). Chains of drafts; the second number of ``accept`` and
  of each ``depth`` entry counts drafts that were *judged*: a cycle stops counting at its first refusal. Where no depth
  counts any, ``accept`` has the number of cycles in that place, be they with drafts or without (``d0``).
  ``finish=parked…`` ends a line where the adaptive drafter gave up: what follows is decoded without drafts and counted
  nowhere. Given up at its last token, an answer has the same line once more, with the finish that is true.
* ``VLM``: ``omlx/scheduler.py`` of both (real runs of 0.7.0). The second number is rounds × (block − 1): *capacity*.
* ``DFlash``: ``omlx/engine/dflash.py`` (source). A rate without its counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

_HEAD = r"MTP\[(?P<uid>[^\]]*)\] finish=(?P<finish>\S+) tokens=(?P<tokens>\d+) cycles=(?P<cycles>\d+)"
_ACCEPT = r" accept=(?P<accepted>\d+)/(?P<judged>\d+) \((?:[\d.]+%|n/a)\)"
_DEPTH = r"(?: depth\[(?P<depth>d\d+=\d+/\d+(?:,d\d+=\d+/\d+)*)\])?(?: d0=(?P<idle>\d+))?"
_TAIL = (
    r" emits\[init=(?P<init>\d+),draft=(?P<draft>\d+),bonus=(?P<bonus>\d+),verify=(?P<verify>\d+)\]"
    r" timing\[backbone=(?P<backbone>[\d.]+)ms mtp=(?P<mtp>[\d.]+)ms sample=(?P<sample>[\d.]+)ms"
    r" cache=(?P<cache>[\d.]+)ms\]\s*$"
)
_NATIVE = {
    "MTP/1": re.compile(_HEAD + _ACCEPT + _TAIL),
    "MTP/2": re.compile(_HEAD + r" tok/cycle=[\d.]+" + _ACCEPT + _DEPTH + _TAIL),
}
_VLM = re.compile(
    r"vlm_mtp stats: request=\S+ finish=(?P<finish>\S+) rounds=(?P<rounds>\d+) accepted=(?P<accepted>\d+)/"
    r"(?P<capacity>\d+) \([\d.]+%\) tokens_per_round=[\d.]+ emitted=(?P<emitted>\d+) block_size=(?P<block>\d+)\s*$"
)
_DFLASH = re.compile(
    r"DFlash generation complete: (?P<tokens>\d+) tokens, [\d.]+ tok/s, acceptance=[\d.]+%, "
    r"cycles=(?P<cycles>\d+)(?P<plain>, fallback=AR)?\s*$"
)
_COMPLETION = re.compile(r"- Completion: .*\d+ tokens in ")
_MARK = re.compile(r"\bMTP\[|\bvlm_mtp\b|\bDFlash gener|\bMTP batched")
_STARTED = re.compile(r"vlm_mtp decode started: ")
_FELL_BACK = re.compile(
    r"falling back|routing skipped|parked for \d+ standard|context fallback|toggle (?:will be )?ignored|"
    r"MTP path will be inactive"
)
_SIDE = re.compile(r"re-entry probe|DFlash generation aborted|DFlash generate cancelled")
_MESSAGE = re.compile(r"^[\d-]+ [\d:,]+ - \S+ - [A-Z]+ - (?:\[[^\]]*\] - )?")
_DEPTH_ENTRY = re.compile(r"d(\d+)=(\d+)/(\d+)")
_PARKED = "parked"
"""``parked-at-depth-0``, in some versions ``parked`` alone."""

COMPLETED = r"- Completion: .*\d+ tokens in "
"""The line that ends a request in the log; the statistics come before it."""


@dataclass(frozen=True, slots=True)
class NativeLine:
    """One answer by native MTP. ``in_rounds`` tokens were emitted by verify cycles, ``init`` before the first."""

    form: str
    finish: str
    tokens: int
    cycles: int
    accepted: int
    judged: int
    depth: tuple[tuple[int, int], ...]
    idle: int
    init: int
    draft: int
    in_rounds: int
    seconds: Mapping[str, float]

    @property
    def parked(self) -> bool:
        """The drafter gave up before the answer was whole."""
        return self.finish.startswith(_PARKED)

    @property
    def by_cycles(self) -> bool:
        """``judged`` is the number of cycles in the place of a count that is not there."""
        return self.form == "MTP/2" and not sum(judged for _, judged in self.depth)


@dataclass(frozen=True, slots=True)
class VlmLine:
    """One answer by mlx-vlm's rounds. ``capacity`` is what the rounds could have drafted at most."""

    finish: str
    rounds: int
    accepted: int
    capacity: int
    emitted: int
    block: int


@dataclass(frozen=True, slots=True)
class DflashLine:
    """One answer by DFlash; ``plain``: it decoded without drafts."""

    tokens: int
    cycles: int
    plain: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """What the log of one request says.

    Args:
        whole: the request's last line is there.
        unread: lines about speculation in no known form.
        fell_back: lines that say why oMLX decoded without drafts.
        started: VLM MTP took the request.
    """

    whole: bool
    native: tuple[NativeLine, ...]
    vlm: tuple[VlmLine, ...]
    dflash: tuple[DflashLine, ...]
    unread: tuple[str, ...]
    fell_back: tuple[str, ...]
    started: bool


def read_log(text: str) -> Reading:
    """Every complete line of the log; one that is cut counts as none."""
    native: list[NativeLine] = []
    vlm: list[VlmLine] = []
    dflash: list[DflashLine] = []
    unread: list[str] = []
    fell_back: list[str] = []
    whole = started = False
    for line in text.split("\n")[:-1]:
        whole = whole or _COMPLETION.search(line) is not None
        if (found := read_native(line)) is not None:
            if native and native[-1].parked and replace(native[-1], finish=found.finish) == found:
                native.pop()
            native.append(found)
        elif (match := _VLM.search(line)) is not None:
            counts = {name: int(match[name]) for name in ("rounds", "accepted", "capacity", "emitted", "block")}
            vlm.append(VlmLine(match["finish"], **counts))
        elif (match := _DFLASH.search(line)) is not None:
            dflash.append(DflashLine(int(match["tokens"]), int(match["cycles"]), match["plain"] is not None))
        elif _STARTED.search(line):
            started = True
        elif _FELL_BACK.search(line):
            fell_back.append(message(line))
        elif _MARK.search(line) and not _SIDE.search(line):
            unread.append(message(line))
    fell_back += [f"MTP finish={one.finish} after {one.tokens} tokens" for one in native if one.parked]
    return Reading(whole, tuple(native), tuple(vlm), tuple(dflash), tuple(unread), tuple(fell_back), started)


def read_native(line: str) -> NativeLine | None:
    """The statistics of native MTP in this line, if it holds them in a known form."""
    for form, expression in _NATIVE.items():
        match = expression.search(line)
        if match is None:
            continue
        found = match.groupdict()
        emitted = sum(int(found[name]) for name in ("draft", "bonus", "verify"))
        return NativeLine(
            form,
            found["finish"],
            int(found["tokens"]),
            int(found["cycles"]),
            int(found["accepted"]),
            int(found["judged"]),
            tuple((int(a), int(d)) for _, a, d in _DEPTH_ENTRY.findall(found.get("depth") or "")),
            int(found.get("idle") or 0),
            int(found["init"]),
            int(found["draft"]),
            emitted,
            {name: float(found[name]) / 1e3 for name in ("backbone", "mtp", "sample", "cache")},
        )
    return None


def message(line: str) -> str:
    """A log line without time, logger and level."""
    return _MESSAGE.sub("", line).strip()

"""Records of an invented run, and a runner that measures nothing: it appends what a real one would."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from orchestrator.schema.adapter import Claim, EngineIdentity, Rule
from orchestrator.schema.observation import Absence, absent, observed
from orchestrator.schema.record import (
    SCHEMA_VERSION,
    AttemptRecord,
    CellRecord,
    Engagement,
    MatrixRecord,
    NoteRecord,
    Phase,
    Place,
    Record,
    RunHeader,
    SessionRecord,
    SetRecord,
    TrialRecord,
)
from orchestrator.schema.status import Status
from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import CellState, Index

UTC = "2026-11-29T15:30:05.123Z"
BLOCK = "eng/tiny/greedy/short"
BASE, S1, S2, TWIN = (f"eng/tiny/{name}/greedy/short" for name in ("none", "draft-k4", "ngram", "none~twin"))
PRINTS = {BASE: "b" * 16, S1: "1" * 16, S2: "2" * 16}
ROLES = {BASE: "baseline", TWIN: "twin"}
TRIALS = (Phase.WARMUP, Phase.MEASURED, Phase.MEASURED)

HEADER = RunHeader(SCHEMA_VERSION, "0.1.0", "a-run", UTC, "matrix.yaml", "matrix: {}", {"cpus": 2}, "run")


def make_run(path: Path) -> RunDirectory:
    return RunDirectory.create(path, HEADER)


def matrix(prints: Mapping[str, str] = PRINTS, text: str = "first") -> MatrixRecord:
    cells = tuple(
        {
            "id": cell,
            "fingerprint": fingerprint,
            "block": BLOCK,
            "role": ROLES.get(cell, "speculative"),
            "baseline": BASE,
            "settings": settings(cell),
        }
        for cell, fingerprint in prints.items()
    )
    claims = {cell: Claim(Rule.GREEDY_MATCH, exact=True, by="its source") for cell in prints}
    return MatrixRecord(text, cells, {"eng": EngineIdentity(version="1")}, claims, {"sessions": 2}, UTC)


def settings(cell: str) -> dict[str, object]:
    axes = ("engine", "model", "method", "sampling", "workload")
    return {axis: {"name": name} for axis, name in zip(axes, cell.removesuffix("~twin").split("/"), strict=True)}


def attempt(number: int, prints: Mapping[str, str] = PRINTS, planned: int = 2) -> AttemptRecord:
    return AttemptRecord(BLOCK, number, dict(prints), planned, len(TRIALS), "abba", 7, UTC)


def place(cell: str, number: int, set_index: int, take: int = 0, fingerprint: str | None = None) -> Place:
    order = list(PRINTS).index(cell) if cell in PRINTS else len(PRINTS)
    return Place(cell, fingerprint or PRINTS.get(cell, "t" * 16), BLOCK, number, set_index, take, order)


def trial(where: Place, index: int, status: Status = Status.OK, reason: str = "") -> TrialRecord:
    values = (
        observed("e2e_latency", 1.5 + index + 10 * where.set_index + 100 * where.attempt, "events:request"),
        observed("output_tokens", 2, "events:request"),
        observed("finish_reason", "length", "events:request"),
        observed("accepted_by_position", (2, 1), "events:request", note="a lower bound"),
        absent("draft_time", Absence.NOT_REPORTED, "this engine does not say"),
    )
    return TrialRecord(
        where,
        index,
        TRIALS[index],
        f"p{index}",
        "prose",
        "en",
        40 + index,
        status,
        reason,
        values,
        (5, index),
        f"text {index} \u2028 ü",
        "length",
        ((0.25, 1), (0.5, 2)),
        (),
        UTC,
    )


def session(
    where: Place, status: Status = Status.OK, reason: str = "", engagement: Engagement = Engagement.ENGAGED
) -> SessionRecord:
    values = (observed("load_time", 0.5, "process"),)
    return SessionRecord(
        where,
        status,
        reason,
        f"fix {reason}" if reason else "",
        engagement,
        values,
        (),
        0,
        "cells/x",
        ("last line",),
        UTC,
        UTC,
    )


def closing(number: int, set_index: int, take: int = 0, prints: Mapping[str, str] = PRINTS) -> SetRecord:
    return SetRecord(BLOCK, number, set_index, take, dict(prints), UTC)


def fate(cell: str, status: Status, fingerprint: str | None = None) -> CellRecord:
    return CellRecord(cell, fingerprint or PRINTS[cell], status, "not here", "get it", UTC)


def note(text: str = "a pause") -> NoteRecord:
    return NoteRecord("resumed", text, UTC)


def one_session(where: Place, status: Status = Status.OK, reason: str = "") -> Iterator[Record]:
    for index in range(len(TRIALS)):
        yield trial(where, index)
    yield session(where, status, reason)


def one_set(
    number: int,
    set_index: int,
    take: int = 0,
    prints: Mapping[str, str] = PRINTS,
    bad: Mapping[str, Status] | None = None,
) -> Iterator[Record]:
    """A whole set with its closing line; ``bad`` names cells whose session ends with another status."""
    for cell, fingerprint in prints.items():
        status = (bad or {}).get(cell, Status.OK)
        where = place(cell, number, set_index, take, fingerprint)
        yield from one_session(where, status, "" if status is Status.OK else f"{status.value}!")
    yield closing(number, set_index, take, prints)


def whole_attempt(number: int, prints: Mapping[str, str] = PRINTS, planned: int = 2) -> Iterator[Record]:
    yield attempt(number, prints, planned)
    for set_index in range(planned):
        yield from one_set(number, set_index, 0, prints)


def whole_run() -> list[Record]:
    return [matrix(), *whole_attempt(1)]


def build(*records: Record) -> Index:
    return Index.build(records)


def places(state: CellState) -> list[tuple[int, int, int]]:
    """Attempt, set and take of each pooled session."""
    return [(one.place.attempt, one.place.set_index, one.place.take) for one in state.sessions]


def resume(run: RunDirectory, planned: int = 2) -> None:
    """What the runner does on an existing run: a new attempt only where none can go on, then the missing sets."""
    with run.lock():
        index = Index.build(run.records())
        if index.matrix is None:
            run.append(matrix())
            index = Index.build(run.records())
        states = index.attempts.get(BLOCK, [])
        if not states:
            run.append(attempt(1, planned=planned))
            states = Index.build(run.records()).attempts[BLOCK]
        state = states[-1]
        assert state.current
        for set_index in state.missing:
            on_disk = run.next_take(state.cells, state.attempt, set_index)
            take = max(state.next_take(set_index), on_disk)
            for record in one_set(state.attempt, set_index, take, state.cells):
                if isinstance(record, TrialRecord) and record.trial == 0:
                    where = record.place
                    run.session_folder(where.cell, where.fingerprint, where.attempt, set_index, take)
                run.append(record)


def without_notes(index: Index) -> Index:
    return replace(index, notes=())

"""Pooled observations as a long table: one row per metric of one trial or session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.schema.errors import StoreError
from orchestrator.schema.hidden import inert
from orchestrator.schema.observation import Observation
from orchestrator.schema.record import SessionRecord, TrialRecord
from orchestrator.store.index import Index
from orchestrator.store.states import CellState

if TYPE_CHECKING:
    import pandas as pd

SESSION_TRIAL = -1
"""The trial index of values that describe a whole session; their phase is :data:`SESSION_PHASE`."""
SESSION_PHASE = "session"

COLUMNS: dict[str, str] = {
    "cell": "string",
    "block": "string",
    "role": "string",
    "engine": "string",
    "model": "string",
    "method": "string",
    "sampling": "string",
    "workload": "string",
    "fingerprint": "string",
    "attempt": "int64",
    "current": "bool",
    "set_index": "int64",
    "take": "int64",
    "session_order": "int64",
    "trial": "int64",
    "phase": "string",
    "prompt_id": "string",
    "category": "string",
    "language": "string",
    "seed": "Int64",
    "metric": "string",
    "value": "Float64",
    "text_value": "string",
    "absent": "string",
    "unit": "string",
    "clock": "string",
    "definition": "string",
    "source": "string",
    "note": "string",
    "status": "string",
}
"""Column and dtype. A row has exactly one of ``value`` (numbers and truths), ``text_value`` (words, and lists as JSON)
and ``absent`` (the reason); the other two are ``NA``. ``value`` is a nullable float, so that NaN is never in it."""

_AXES = ("engine", "model", "method", "sampling", "workload")


def observations_frame(index: Index, *, partners: bool = False) -> pd.DataFrame:
    """Observations of pooled trials and sessions, in order of the matrix, attempt, set and trial.

    Args:
        index: the run.
        partners: with the rows of a baseline or twin from older attempts on which other cells of the block stand:
            needed to compare those cells inside their attempt, and never part of the baseline's own figures. Such
            rows have ``current`` false.

    Returns:
        Columns as in :data:`COLUMNS`; durations in seconds, sizes in bytes.

    Raises:
        StoreError: a cell's settings lack the name of an axis.
    """
    import pandas as pd  # noqa: PLC0415  (heavy, and not needed to start)

    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    adders: list[Callable[[Any], None]] = [column.append for column in columns.values()]
    for row in _rows(index, partners):
        for add, value in zip(adders, row, strict=True):
            add(value)
    as_array: Callable[..., Any] = pd.array  # its overloads want literal dtypes
    return pd.DataFrame({name: as_array(columns[name], dtype=dtype) for name, dtype in COLUMNS.items()})


def write_csv(index: Index, path: Path) -> None:
    """All rows, partners included, as UTF-8 CSV; an empty field is a column that does not apply to the row.

    Texts are made inert (:func:`orchestrator.schema.hidden.inert`), since prompt files and engines name them; Parquet
    has them as they came.
    """
    frame = observations_frame(index, partners=True)
    for name in (name for name, dtype in COLUMNS.items() if dtype == "string"):
        told = {text: inert(text) for text in frame[name].dropna().unique()}
        if any(text != safe for text, safe in told.items()):
            frame[name] = frame[name].map(told).astype("string")
    _replace(path, lambda draft: frame.to_csv(draft, index=False, lineterminator="\n", encoding="utf-8"))


def write_parquet(index: Index, path: Path) -> None:
    """All rows, partners included, as Parquet; the same index gives the same bytes with the same pyarrow."""
    frame = observations_frame(index, partners=True)
    _replace(path, lambda draft: frame.to_parquet(draft, engine="pyarrow", index=False))


def _replace(path: Path, write: Callable[[Path], object]) -> None:
    """Puts a derived file in place whole, so that a reader never sees half of it."""
    draft = path.with_name(path.name + ".part")
    try:
        write(draft)
        draft.replace(path)
    except OSError as err:
        raise StoreError(f"{path}: cannot be written: {err.strerror}; make room or choose another place") from err


def _rows(index: Index, partners: bool) -> Iterator[tuple[Any, ...]]:
    for state in index.cells.values():
        head = (state.id, state.block, state.role.value, *_axes(state), state.fingerprint)
        if partners:
            yield from _attempt_rows(head, False, state.partner_sessions, state.partner_trials)
        yield from _attempt_rows(head, True, state.sessions, state.trials)


def _attempt_rows(
    head: tuple[str, ...], current: bool, sessions: tuple[SessionRecord, ...], trials: tuple[TrialRecord, ...]
) -> Iterator[tuple[Any, ...]]:
    records: tuple[TrialRecord | SessionRecord, ...] = (*trials, *sessions)
    for record in records:
        place = record.place
        where = (place.attempt, current, place.set_index, place.take, place.order)
        what: tuple[Any, ...] = (SESSION_TRIAL, SESSION_PHASE, None, None, None, None)
        if isinstance(record, TrialRecord):
            prompt = (record.prompt_id, record.category, record.language, record.seed)
            what = (record.trial, record.phase.value, *prompt)
        for item in record.observations:
            yield (*head, *where, *what, *_fact(item), record.status.value)


def _fact(item: Observation) -> tuple[Any, ...]:
    number, text = None, None
    if isinstance(item.value, str):
        text = item.value
    elif isinstance(item.value, tuple):
        text = json.dumps(item.value)
    elif item.value is not None:
        number = float(item.value)
    absent = item.absent.value if item.absent is not None else None
    source = (item.unit.value, item.clock.value, item.definition, item.source, item.note)
    return (item.metric, number, text, absent, *source)


def _axes(state: CellState) -> tuple[str, ...]:
    try:
        return tuple(str(state.settings[axis]["name"]) for axis in _AXES)
    except (KeyError, TypeError) as err:
        raise StoreError(f"journal: the settings of {state.id} lack the name of {err}") from err

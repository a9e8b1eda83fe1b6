"""Golden captures: real output of an engine, kept with what its adapter must read from it.

``tests/golden/<adapter>/<case>/`` holds ``cell.json``, ``trial.json`` (the one trial, or ``null`` where the session ends
before it), ``events.jsonl``, ``stdout.log``, ``stderr.log`` and ``expected.json``.
"""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from orchestrator.schema.adapter import TrialSpec
from orchestrator.schema.capture import SessionCapture, TrialCapture, read_session
from orchestrator.schema.cell import Cell
from orchestrator.schema.errors import CaptureError

if TYPE_CHECKING:
    from orchestrator.schema.adapter import Adapter

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
CELL, TRIAL, EVENTS, STDOUT, STDERR, EXPECTED = (
    "cell.json",
    "trial.json",
    "events.jsonl",
    "stdout.log",
    "stderr.log",
    "expected.json",
)


@dataclass(frozen=True)
class Case:
    """One golden capture, its files as bytes."""

    folder: Path
    cell: Cell
    trial: TrialSpec | None
    events: bytes
    stdout: bytes
    stderr: bytes

    def capture(
        self, *, events: bytes | None = None, stdout: bytes | None = None, stderr: bytes | None = None
    ) -> SessionCapture:
        """The session, with files replaced where given."""
        return read_session(
            (self.events if events is None else events).decode("utf-8", "replace"),
            (self.stdout if stdout is None else stdout).decode("utf-8", "replace"),
            self.stderr if stderr is None else stderr,
        )

    def trial_of(self, session: SessionCapture) -> TrialCapture:
        """The trial's capture, an empty one when nothing of it is there."""
        assert self.trial is not None
        return session.trials.get(self.trial.index, TrialCapture(self.trial.index))

    @property
    def expected(self) -> dict[str, Any]:
        """What the adapter must read."""
        found: dict[str, Any] = json.loads((self.folder / EXPECTED).read_text(encoding="utf-8"))
        return found


def case_folders(adapter: str) -> list[Path]:
    """The adapter's golden captures."""
    return sorted(path.parent for path in (GOLDEN / adapter).glob(f"*/{CELL}"))


def load_case(folder: Path) -> Case:
    """A golden capture from its folder."""
    cell = TypeAdapter(Cell).validate_json((folder / CELL).read_text(encoding="utf-8"))
    trial = TypeAdapter(TrialSpec | None).validate_json((folder / TRIAL).read_text(encoding="utf-8"))
    return Case(
        folder,
        cell,
        trial,
        (folder / EVENTS).read_bytes(),
        (folder / STDOUT).read_bytes(),
        (folder / STDERR).read_bytes(),
    )


def read_case(adapter: Adapter, case: Case) -> dict[str, Any]:
    """Everything the adapter reads from a golden capture, as plain data."""
    session = case.capture()
    refusal = adapter.check_ready(case.cell, session.ready, session.stdout, session.stderr)
    found = {
        "refusal": None if refusal is None else dataclasses.asdict(refusal),
        "session": [dataclasses.asdict(item) for item in adapter.parse_session(case.cell, session)],
        "trial": None if case.trial is None else _trial(adapter, case, session),
    }
    plain: dict[str, Any] = json.loads(json.dumps(found, ensure_ascii=False))
    return plain


def write_expected(adapter: Adapter, case: Case) -> None:
    """Makes what the adapter reads now the expectation: to be called on request alone, and read in review."""
    text = json.dumps(read_case(adapter, case), indent=1, ensure_ascii=False)
    (case.folder / EXPECTED).write_text(text + "\n", encoding="utf-8")


def _trial(adapter: Adapter, case: Case, session: SessionCapture) -> dict[str, Any]:
    capture = case.trial_of(session)
    try:
        parsed = adapter.parse_trial(case.cell, capture)
    except CaptureError as err:
        return {"error": str(err)}
    arrivals = adapter.arrivals(case.cell, capture)
    assert arrivals is not None
    return {
        **dataclasses.asdict(parsed),
        "arrivals": {
            "source": arrivals.burst_source,
            "events": len(arrivals.tokens),
            "tokens": sum(len(item.ids) for item in arrivals.tokens),
            "bursts": sum(a.burst != b.burst for a, b in zip(arrivals.tokens, arrivals.tokens[1:], strict=False)) + 1,
            "done_after_sent_s": round(arrivals.done_s - arrivals.sent_s, 6),
        },
        "conditions": [dataclasses.asdict(item) for item in adapter.conditions(case.cell, capture)],
    }

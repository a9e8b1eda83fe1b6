"""A test of an engine does not fail because another program made the machine short of memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.host import pressure


@pytest.fixture(autouse=True)
def _counts_no_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    """The counter is the whole machine's: to a trial of some milliseconds any other program's stall is too long."""
    monkeypatch.setattr(pressure, "PSI", Path("/nowhere/pressure"))

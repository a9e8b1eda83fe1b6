"""When a session is warm: three warm-up trials in a row agree (docs/methodology, Warm-up)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.schema.record import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from orchestrator.schema.record import TrialRecord

AGREEMENT = 0.05
IN_A_ROW = 3


def settled(records: Sequence[TrialRecord]) -> bool:
    """Whether the last three warm-up trials have decode rates within 5 % of each other."""
    rates = [
        float(item.value)
        for record in records
        if record.phase is Phase.WARMUP
        for item in record.observations
        if item.metric == "decode_rate" and isinstance(item.value, int | float)
    ][-IN_A_ROW:]
    return len(rates) == IN_A_ROW and max(rates) <= min(rates) * (1 + AGREEMENT)

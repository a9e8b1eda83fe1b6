"""Which token ids the prompts of a session became: two engines were asked the same where these are the same."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.record import Phase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.schema.record import TrialRecord

ASKED = "as the engine makes them of the text that is sent"
SOURCE = "the engine's own tokenizer, asked before the first trial"


def ids_condition(ids: Mapping[str, Sequence[int]] | None, trials: Sequence[TrialRecord]) -> Condition:
    """One line of the ledger for all prompts of a session.

    Args:
        ids: token ids by prompt id, as the engine's tokenizer tells them; ``None`` where it cannot be asked.
        trials: what was measured. An engine that counted another number of prompt tokens evaluated something else.
    """
    if not ids:
        return Condition("prompt_ids", ASKED, None, Honoured.UNKNOWN, "not told by this engine")
    text = json.dumps([[name, list(ids[name])] for name in sorted(ids)], separators=(",", ":"))
    digest = hashlib.sha256(text.encode()).hexdigest()[:12]
    said = f"{len(ids)} prompts, {sum(map(len, ids.values()))} tokens, sha256 {digest}"
    measured = [one for one in trials if one.phase is Phase.MEASURED and one.prompt_id in ids]
    wrong = [one.prompt_id for one in measured if _counted(one) not in {None, len(ids[one.prompt_id])}]
    if wrong:
        said += f"; counted otherwise by the engine: {', '.join(dict.fromkeys(wrong))}"
    return Condition("prompt_ids", ASKED, said, Honoured.CHANGED if wrong else Honoured.HONOURED, SOURCE)


def common_start(ids: Mapping[str, Sequence[int]]) -> int | None:
    """With how many tokens all prompts begin; ``None`` where their ids are not known."""
    if not ids:
        return None
    ordered = sorted(tuple(one) for one in ids.values())
    first, last = ordered[0], ordered[-1]
    return next((place for place, pair in enumerate(zip(first, last, strict=False)) if pair[0] != pair[1]), len(first))


def _counted(trial: TrialRecord) -> int | None:
    for item in trial.observations:
        if item.metric == "prompt_tokens" and isinstance(item.value, int):
            return item.value
    return None

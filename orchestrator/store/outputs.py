"""The answers of pooled trials, for the exactness checks."""

from __future__ import annotations

from orchestrator.schema.result import Output
from orchestrator.store.index import Index


def outputs(index: Index) -> tuple[Output, ...]:
    """One output per pooled trial, warm-ups included, in order of the matrix, attempt, set and trial.

    Outputs of a baseline's or twin's older attempts come too while other cells of the block stand on them.
    """
    return tuple(
        Output(
            cell=trial.place.cell,
            attempt=trial.place.attempt,
            set_index=trial.place.set_index,
            trial=trial.trial,
            phase=trial.phase,
            prompt_id=trial.prompt_id,
            token_ids=trial.token_ids,
            text=trial.text,
        )
        for state in index.cells.values()
        for trial in (*state.partner_trials, *state.trials)
    )

"""What MLX-LM is asked for the draft-directed z, where it cannot tell it, and how its answer is read."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel, ConfigDict, ValidationError

from adapters.mlx_lm.protocol import STEP, read_done
from adapters.mlx_lm.rounds import split_rounds
from adapters.shared.penalties import neutral_penalties
from orchestrator.schema.adapter import Step, TrialSpec, WorkerStep
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.judged import Judged

ROUNDING = 1e-4
"""How far the worker's single precision may take a probability out of its bounds."""


class _Told(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore", allow_inf_nan=False)

    judged: tuple[tuple[float, float, float, float], ...]


class MlxJudging:
    """The part of the adapter that :class:`orchestrator.schema.adapter.JudgesDrafts` names."""

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """The adapter's own."""
        raise NotImplementedError

    def why_unjudged(self, cell: Cell) -> str:
        """What makes the distribution of a token another one than the worker can tell; empty where nothing does."""
        if cell.method.kind is not MethodKind.DRAFT:
            return "without a draft nothing is judged"
        if cell.sampling.greedy:
            return "at temperature 0 nothing is drawn"
        if cell.sampling.xtc_probability:
            return "under XTC the distribution of a token depends on a coin"
        if not neutral_penalties(cell.sampling):
            return "with penalties a draft's verify pass sees other tokens than the baseline"
        if cell.engine.options.get("kv_bits") is not None:
            return "with a quantised cache one pass over a text gives other scores than the baseline's"
        return ""

    def judged_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """The trial's one request, asking for judged places: no timed trial does."""
        steps = self.trial_steps(cell, trial)
        return tuple(
            replace(one, message={**one.message, "judge": True}) if isinstance(one, WorkerStep) else one
            for one in steps
        )

    def parse_judged(self, cell: Cell, capture: TrialCapture) -> tuple[Judged, ...]:
        """The judged places, whose number must be that of the rounds: kept drafts, and the first refused of each.

        Raises:
            CaptureError: they are missing, are others, or are no probabilities.
        """
        done = read_done(capture)
        try:
            told = _Told.model_validate_json(capture.steps[STEP].events[-1].data).judged
        except ValidationError as err:
            raise CaptureError(f"trial {capture.index}: the worker's judged places: {err.errors()[0]['msg']}") from err
        rounds = split_rounds(done.from_draft, cell.workload.max_tokens, cell.method.n_max or 0)
        expected = sum(one.accepted + int(one.closed and one.accepted < one.drafted) for one in rounds)
        if len(told) != expected:
            raise CaptureError(f"trial {capture.index}: {len(told)} judged places told, its rounds have {expected}")
        places = tuple(Judged(*row) for row in told)
        wrong = next((one for one in places if not _possible(one)), None)
        if wrong is not None:
            raise CaptureError(f"trial {capture.index}: a judged place with impossible probabilities: {wrong}")
        return places


def _possible(one: Judged) -> bool:
    top = 1 + ROUNDING
    likely = 0 <= one.q <= one.favourite + ROUNDING and 0 <= one.expected <= one.favourite + ROUNDING
    return likely and one.favourite <= top and 0 <= one.variance <= top / 4

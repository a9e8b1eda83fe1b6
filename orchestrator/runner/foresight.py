"""Memory before the run: what each cell will need by its adapter, against what the machine has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.host.fit import Budget, Fit, Verdict, judge
from orchestrator.schema.adapter import Refusal
from orchestrator.schema.fit import ForeseesMemory, MemoryNeed
from orchestrator.schema.status import Status

if TYPE_CHECKING:
    from orchestrator.schema.adapter import Adapter
    from orchestrator.schema.cell import Cell

REMEDY = (
    "take a smaller model, context or draft, end other programs, lower host.reserve, or measure it all the same with "
    "run.force_fit: true"
)


def foresee(adapter: Adapter, cell: Cell) -> MemoryNeed | None:
    """What the cell will need; ``None`` where the adapter does not foresee it."""
    return adapter.memory(cell) if isinstance(adapter, ForeseesMemory) else None


def fit_in(need: MemoryNeed | None, room: Budget | None) -> Fit | None:
    """The verdict; ``None`` where one of the two is not known."""
    return judge(need, room) if need is not None and room is not None else None


def refuse_unfit(fit: Fit | None, *, forced: bool) -> Refusal | None:
    """Why a cell that cannot fit is not measured."""
    if fit is None or fit.verdict is not Verdict.DOES_NOT_FIT or forced:
        return None
    return Refusal(Status.UNSUPPORTED, f"memory: {fit.sentence}", REMEDY)

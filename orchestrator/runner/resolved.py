"""The matrix as this machine resolves it, as one record: a report needs neither the file nor the engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.clock import utc_now
from orchestrator.demo.packaged import PACKAGED
from orchestrator.matrix.paths import DEMO
from orchestrator.runner.check_plan import prints_of
from orchestrator.schema.record import MatrixRecord

if TYPE_CHECKING:
    from orchestrator.matrix.types import Expansion, Matrix, ModelSpec, RunSettings
    from orchestrator.runner.survey import Survey
    from orchestrator.schema.cell import CheckCell


def matrix_record(matrix: Matrix, expansion: Expansion, survey: Survey) -> MatrixRecord:
    """The matrix as resolved on this machine, so that a report needs neither the file nor the engines."""
    cells = []
    for block in expansion.blocks:
        for cell in block.members:
            fate = survey.fates[cell.id]
            cells.append(
                {
                    "id": cell.id,
                    "fingerprint": fate.fingerprint,
                    "block": block.id,
                    "role": cell.role.value,
                    "baseline": block.baseline.id,
                    "settings": _plain(cell.settings()),
                    "facts": dict(fate.facts),
                    "memory": fate.need.plain() if fate.need is not None else None,
                    "fit": {"verdict": fate.fit.verdict.value, "why": fate.fit.sentence} if fate.fit else None,
                }
            )
    run = matrix.run
    settings = {
        "matrix": matrix.name,
        "preset": run.preset,
        "sessions": run.sessions,
        "trials": run.trials,
        "warmup": run.warmup,
        "order": run.order,
        "order_seed": run.order_seed,
        "cache": run.cache,
        "twin": run.twin,
        "adaptive": _adaptive(run),
        "confirm_winner": run.confirm_winner,
        "phases": run.phases,
        "silence_timeout_s": run.silence_timeout_s,
        "total_timeout_s": run.total_timeout_s,
        "environment": matrix.host.environment,
        "reserve": [{"name": item.name, "bytes": item.bytes} for item in matrix.host.reserve],
        "language": matrix.language,
        "unpinned": list(survey.unpinned),
        "pins": {name: dict(found.config.pin) for name, found in survey.engines.items()},
        "mismatches": {name: found.mismatch for name, found in survey.engines.items() if found.mismatch},
        "force_fit": run.force_fit,
        "not_formed": [list(item) for item in expansion.not_formed],
        "demo_models": sorted(name for name, model in matrix.models.items() if _made_here(model)),
    }
    return MatrixRecord(
        matrix.text,
        tuple(cells),
        {name: found.identity for name, found in survey.engines.items()},
        {cell_id: fate.claim for cell_id, fate in survey.fates.items()},
        settings,
        utc_now(),
        host=dict(survey.host),
        checks=tuple(_check(check, survey) for check in expansion.checks),
    )


def _made_here(model: ModelSpec) -> bool:
    """Whether the target is one of the tiny ones made for this tool, whose speed says nothing of another's."""
    others = {f"{DEMO}{one.name}" for one in PACKAGED}
    return any(files.target.startswith(DEMO) and files.target not in others for files in model.files.values())


def _check(check: CheckCell, survey: Survey) -> dict[str, str]:
    prints = prints_of(check, survey.fates)
    return {
        "id": check.id,
        "cell": check.cell.id,
        "baseline": check.baseline.id,
        "block": check.block_id,
        "preset": check.preset,
        "fingerprint": prints.own,
        "base": prints.base,
    }


def _adaptive(run: RunSettings) -> dict[str, float | int] | None:
    if run.adaptive is None:
        return None
    return {"half_width": run.adaptive.half_width, "max_sessions": run.adaptive.max_sessions}


def _plain(value: object) -> object:
    """The value with enums and tuples as JSON has them, so that a record equals itself after a round trip."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value.value if hasattr(value, "value") else value

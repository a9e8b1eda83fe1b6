"""The conclusions as versioned JSON: embedded in the page and written beside it."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.report.analysis.findings import Analysis, CellFinding, Drafting
from orchestrator.report.data.quality import quality_data
from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.record import RunHeader
from orchestrator.schema.result import Comparison, Estimate
from orchestrator.stats.speedup import Decomposition

SUMMARY_VERSION = 1
"""Of the layout below. History: 1, first version."""
WHOLE_CELLS = 250
"""Up to so many cells, twins included, a page holds every raw value."""
LEFT_OUT = ("absent", "faults", "problems")
"""What the page of a larger run leaves out of each cell, besides single values."""


def summary_data(analysis: Analysis, header: RunHeader) -> dict[str, Any]:
    """Every conclusion, with the raw values; absent figures are named with their reason and have no value."""
    return {
        "summary_version": SUMMARY_VERSION,
        "run": header.run,
        "tool_version": header.tool_version,
        "schema": header.schema,
        "created_utc": header.created_utc,
        "validity": analysis.validity.value,
        "reasons": [
            {
                "kind": one.kind.value,
                "effect": one.effect.value,
                "about": list(one.about),
                "status": one.status.value if one.status is not None else None,
                "detail": one.detail,
            }
            for one in analysis.reasons
        ],
        "coverage": {status.value: list(ids) for status, ids in analysis.coverage},
        "recommendations": [
            {
                "engine": one.engine,
                "model": one.model,
                "workload": one.workload,
                "advice": one.advice.value if one.advice is not None else "depends",
                "by_sampling": [
                    {
                        "sampling": part.sampling,
                        "advice": part.advice.value,
                        "why": part.why.value or None,
                        "best": part.best.id if part.best is not None else None,
                        "confirmed": part.confirmed,
                    }
                    for part in one.by_sampling
                ],
            }
            for one in analysis.recommendations
        ],
        "noise_floors": [
            {
                "block": block,
                "attempt": attempt,
                "metric": metric,
                "half_width": floor.half_width,
                "ratio": estimate_data(floor.ratio),
                "inconclusive": floor.inconclusive,
                "reason": floor.reason,
            }
            for (block, attempt, metric), floor in sorted(analysis.floors.items())
        ],
        "sweeps": [
            {
                "block": one.block,
                "drafter": one.drafter,
                "lengths": list(one.lengths),
                "best": one.best,
                "cell": one.cell,
                "clear": one.clear,
                "confirmed": one.confirmed,
            }
            for one in analysis.sweeps
        ],
        "cells": [_cell(cell) for cell in analysis.cells],
    }


def summary_json(analysis: Analysis, header: RunHeader) -> str:
    """The same as text, ASCII only and in a fixed order, so that equal conclusions have equal bytes.

    Of a run with more than :data:`WHOLE_CELLS` cells the single values and the reasons of absences are left out, as
    ``left_out`` says: a page of a thousand cells must still open. ``summary.json`` beside it holds them.
    ``units`` are those of the metrics, for the CSV that the page makes of this.
    """
    told = _short(summary_data(analysis, header))
    metrics = {metric for cell in analysis.cells for metric in (*cell.summaries, *cell.missing)}
    told["units"] = {metric: VOCABULARY[metric].unit.value for metric in sorted(metrics)}
    if not is_whole(analysis):
        for cell in told["cells"]:
            for one in (*cell["values"].values(), *cell["phases"].values(), *cell["per_process"].values()):
                del one["values"]
            for row in cell["comparisons"].values():
                del row["bootstrap"], row["session_ratios"]
            for name in LEFT_OUT:
                del cell[name]
        told["left_out"] = ["values.*.values", "comparisons.*.bootstrap", "comparisons.*.session_ratios", *LEFT_OUT]
    return json.dumps(told, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def is_whole(analysis: Analysis) -> bool:
    """Whether a page of this run holds every raw value."""
    return len(analysis.cells) <= WHOLE_CELLS


def _short(value: Any) -> Any:  # noqa: ANN401  (whatever JSON holds)
    """Floats to six digits, a millionth of the figure: half the bytes of a page. The file has all of them."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else float(f"{value:.6g}")
    if isinstance(value, dict):
        return {key: _short(one) for key, one in value.items()}
    return [_short(one) for one in value] if isinstance(value, list | tuple) else value


def _cell(cell: CellFinding) -> dict[str, Any]:
    state = cell.state
    identity = cell.identity
    return {
        "id": cell.id,
        "block": state.block,
        "role": state.role.value,
        "baseline": state.baseline,
        "fingerprint": state.fingerprint,
        "status": state.status.value,
        "reason": state.reason,
        "attempt": state.attempt,
        "sessions": len(state.sessions),
        "stopped_early": cell.stopped or None,
        "confirms": cell.confirmed,
        "group": cell.group.value,
        "checked": cell.mark.value if cell.mark is not None else None,
        "engagement": state.engagement.value if state.engagement is not None else None,
        "headline": cell.headline if cell.comparisons else None,
        "same_length": cell.lengths[0] if cell.lengths is not None else None,
        "values": {
            metric: {"median": one.median, "mad": one.mad, "n": one.n, "values": list(one.values)}
            for metric, one in sorted(cell.summaries.items())
        },
        "phases": {
            metric: {
                "median": one.median, "mad": one.mad, "n": one.n, "values": list(one.values),
                "note": "instrumented repeat; adds synchronisations",
            }
            for metric, one in sorted(cell.phases.items())
        },
        "per_process": {
            metric: {
                "median": one.total.median, "mad": one.total.mad, "n": one.total.n, "values": list(one.total.values),
                "requests": list(one.requests), "note": one.note,
            }
            for metric, one in sorted(cell.per_process.items())
        },
        "absent": {metric: {"why": one.absence.value, "note": one.why} for metric, one in sorted(cell.missing.items())},
        "draft_totals": {
            "drafted": cell.totals.drafted, "accepted": cell.totals.accepted, "refused": cell.totals.refused,
            "discarded": cell.totals.discarded, "verify_rounds": cell.totals.verify_rounds,
        } if cell.totals is not None else None,
        "acceptance_rate": estimate_data(cell.acceptance),
        "acceptance": _drafting(cell.drafting),
        "speedup_model": _model(cell.decomposition),
        "comparisons": {metric: _comparison(row) for metric, row in sorted(cell.comparisons.items())},
        "greedy_identity": {
            "verdict": identity.verdict.value, "same": identity.same, "compared": identity.compared,
            "control_same": identity.control_same, "control_compared": identity.control_compared,
            "evidence": identity.evidence,
            "divergences": [
                {
                    "prompt": one.prompt_id, "index": one.index, "tie": one.tie, "why": one.why,
                    "margin_nat": one.margin_nat, "limit_nat": one.limit_nat,
                }
                for one in identity.divergences
            ],
        } if identity is not None else None,
        "faults": [
            {"fault": one.fault.value, "caught": one.caught, "by": [gate.value for gate in one.by]}
            for one in cell.faults
        ],
        "quality": quality_data(cell.quality),
        "flags": [{"kind": flag.kind.value, "sentence": flag.sentence} for flag in cell.flags],
        "problems": [{"text": text, "trials": count} for text, count in cell.problems],
    }  # fmt: skip


def _comparison(row: Comparison) -> dict[str, Any]:
    return {
        "baseline": row.baseline,
        "outcome": row.outcome.value,
        "reason": row.reason,
        "ratio": estimate_data(row.ratio),
        "noise_floor": row.noise_floor,
        "prompts_worse": row.prompts_worse,
        "prompts": row.prompts,
        "p_value": row.p_value,
        "p_holm": row.p_holm,
        "sign_flip_p": row.sign_flip_p,
        "bootstrap": estimate_data(row.bootstrap),
        "session_ratios": list(row.session_ratios),
        "sessions_needed": row.sessions_needed,
        "sessions_more": row.sessions_more,
    }


def _drafting(found: Drafting | None) -> dict[str, Any] | None:
    """Acceptance by draft position and by category of prompt."""
    if found is None:
        return None
    return {
        "by_position": [
            {
                "position": one.position,
                "drafted": one.drafted,
                "accepted": one.accepted,
                "unconditional": one.unconditional,
                "conditional": [one.conditional_low, one.conditional_high],
            }
            for one in found.positions
        ],
        "flat_p": found.flat_p,
        "by_category": [
            {
                "category": one.category,
                "rate": estimate_data(one.rate),
                "drafted": one.totals.drafted if one.totals is not None else None,
                "accepted": one.totals.accepted if one.totals is not None else None,
                "refused": one.totals.refused if one.totals is not None else None,
                "discarded": one.totals.discarded if one.totals is not None else None,
            }
            for one in found.categories
        ],
        "problem": found.problem or None,
    }


def _model(found: Decomposition | None) -> dict[str, Any] | None:
    """The speed-up model beside the measurement; costs in plain passes of the baseline."""
    if found is None:
        return None
    return {
        "speedup": found.speedup,
        "tokens_per_pass": found.tokens_per_pass,
        "mean_draft_length": found.mean_draft_length,
        "pass_cost": found.pass_cost,
        "draft_cost": found.draft_cost,
        "verify_cost": [found.verify_cost_low, found.verify_cost_high],
        "break_even_acceptance": found.break_even_acceptance,
        "judged_alpha": found.judged_alpha,
        "predicted_tokens_per_pass": found.predicted_tokens,
        "predicted_speedup": found.predicted_speedup,
        "words": found.words(),
        "model_words": found.model_words() or None,
    }


def estimate_data(one: Estimate | None) -> dict[str, Any] | None:
    """An estimate as plain data; ``null`` where there is none."""
    if one is None:
        return None
    return {"point": one.point, "low": one.low, "high": one.high, "level": one.level, "n": one.n, "method": one.method}

"""The conclusions as versioned JSON: embedded in the page and written beside it."""

from __future__ import annotations

import json
from typing import Any

from orchestrator.report.findings import Analysis, CellFinding
from orchestrator.schema.record import RunHeader
from orchestrator.schema.result import Comparison, Estimate

SUMMARY_VERSION = 1
"""Of the layout below. History: 1, first version."""


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
                "ratio": _estimate(floor.ratio),
                "inconclusive": floor.inconclusive,
                "reason": floor.reason,
            }
            for (block, attempt, metric), floor in sorted(analysis.floors.items())
        ],
        "cells": [_cell(cell) for cell in analysis.cells],
    }


def summary_json(analysis: Analysis, header: RunHeader) -> str:
    """The same as text, ASCII only and in a fixed order, so that equal conclusions have equal bytes."""
    return json.dumps(summary_data(analysis, header), ensure_ascii=True, allow_nan=False, separators=(",", ":"))


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
        "group": cell.group.value,
        "checked": cell.mark.value if cell.mark is not None else None,
        "engagement": state.engagement.value if state.engagement is not None else None,
        "headline": cell.headline if cell.comparisons else None,
        "same_length": cell.lengths[0] if cell.lengths is not None else None,
        "values": {
            metric: {"median": one.median, "mad": one.mad, "n": one.n, "values": list(one.values)}
            for metric, one in sorted(cell.summaries.items())
        },
        "absent": {metric: {"why": one.absence.value, "note": one.why} for metric, one in sorted(cell.missing.items())},
        "draft_totals": {
            "drafted": cell.totals.drafted, "accepted": cell.totals.accepted, "refused": cell.totals.refused,
            "discarded": cell.totals.discarded, "verify_rounds": cell.totals.verify_rounds,
        } if cell.totals is not None else None,
        "acceptance_rate": _estimate(cell.acceptance),
        "comparisons": {metric: _comparison(row) for metric, row in sorted(cell.comparisons.items())},
        "greedy_identity": {
            "verdict": identity.verdict.value, "same": identity.same, "compared": identity.compared,
            "control_same": identity.control_same, "control_compared": identity.control_compared,
            "evidence": identity.evidence,
        } if identity is not None else None,
        "flags": [{"kind": flag.kind.value, "sentence": flag.sentence} for flag in cell.flags],
        "problems": [{"text": text, "trials": count} for text, count in cell.problems],
    }  # fmt: skip


def _comparison(row: Comparison) -> dict[str, Any]:
    return {
        "baseline": row.baseline,
        "outcome": row.outcome.value,
        "reason": row.reason,
        "ratio": _estimate(row.ratio),
        "noise_floor": row.noise_floor,
        "prompts_worse": row.prompts_worse,
        "prompts": row.prompts,
        "p_value": row.p_value,
        "p_holm": row.p_holm,
        "sign_flip_p": row.sign_flip_p,
        "bootstrap": _estimate(row.bootstrap),
        "session_ratios": list(row.session_ratios),
        "sessions_needed": row.sessions_needed,
    }


def _estimate(one: Estimate | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {"point": one.point, "low": one.low, "high": one.high, "level": one.level, "n": one.n, "method": one.method}

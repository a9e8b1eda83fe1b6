"""The figures of one block: tokens over time, every raw value, and the order in which trials ran."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from orchestrator.report.analysis.findings import WAIT, CellFinding
from orchestrator.report.analysis.measures import Arm
from orchestrator.report.figures import lines
from orchestrator.report.language.words import Rich, Words
from orchestrator.report.model.parts import CellView, Column, FigureView, LegendItem, RowView, TableView
from orchestrator.report.page.naming import figure_id, names
from orchestrator.schema import units


def arrival(
    key: str, base: Arm, base_name: str, members: Sequence[tuple[CellFinding, Arm]], words: Words
) -> FigureView | None:
    """Tokens on screen against seconds, off and on, up to the length that every answer reached."""
    whole = sum(len(arm.trials) for arm in (base, *(arm for _, arm in members)))
    arms = [_believable(base), *(_believable(arm) for _, arm in members)]
    base, members = arms[0], [(cell, arm) for (cell, _), arm in zip(members, arms[1:], strict=True)]
    common = min(
        (trial.arrival_curve[-1][1] if trial.arrival_curve else 0 for arm in arms for trial in arm.trials), default=0
    )
    if common < 2 or not all(arm.trials for arm in arms):
        return None
    off = lines.Curve(base_name, _median_curve(base, common), -1)
    on = [
        lines.Curve(names(cell, "method"), _median_curve(arm, common), series)
        for series, (cell, arm) in enumerate(members)
    ]
    title = words.say("Tokens on screen against seconds")
    identifier = figure_id("arrival", key)
    quick = min(on, key=lambda curve: curve.seconds[-1])
    caption = words.rich(
        "**{n} tokens are on screen after {on} with {method}, {off} without.** "
        "Medians of {used} of {whole} answers, first {n} tokens.",
        used=sum(len(arm.trials) for arm in arms),
        whole=whole,
        n=common,
        on=units.seconds(quick.seconds[-1]),
        off=units.seconds(off.seconds[-1]),
        method=quick.label,
    )
    marks = [n for n in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) if n < common] + [common]
    columns = tuple(Column(f"{n}", words.say("tok"), "") for n in marks)
    rows = tuple(
        RowView("", curve.label, "", (), tuple(CellView(units.seconds(curve.seconds[n - 1])) for n in marks))
        for curve in (off, *on)
    )
    data = TableView(
        f"{identifier}-data", words.say("The numbers of this figure"), words.say("seconds to"), columns, rows
    )
    return FigureView(identifier, title, lines.curves((off, *on), identifier, title), caption, (), data)


def _believable(arm: Arm) -> Arm:
    """Without the answers whose stamps contradict the engine's clock."""
    return Arm(arm.sessions, tuple(trial for trial in arm.trials if not trial.problems))


def _median_curve(arm: Arm, common: int) -> tuple[float, ...]:
    """Median over trials of the moment at which token 1, 2, … was there."""
    times = []
    for trial in arm.trials:
        moments, totals = np.asarray(trial.arrival_curve).T
        counts = np.diff(np.minimum(totals, common), prepend=0).astype(int)
        times.append(np.repeat(moments, counts))
    return tuple(np.median(np.asarray(times), axis=0).tolist())


def strip(
    key: str, base: Arm, base_name: str, members: Sequence[tuple[CellFinding, Arm]], words: Words
) -> FigureView | None:
    """Every raw total wait, session by session."""
    named = [(base_name, base, -1), *((names(cell, "method"), arm, n) for n, (cell, arm) in enumerate(members))]
    rows = []
    for label, arm, series in named:
        lanes = _by_session(arm)
        values = [value for lane in lanes for value in lane]
        if values:
            rows.append(lines.StripRow(label, lanes, median(values), series))
    if not rows:
        return None
    title = words.say("Every total wait that was measured")
    identifier = figure_id("strip", key)
    columns = (Column(words.say("total waits by session"), words.say("s"), ""),)
    table = tuple(
        RowView(
            "", row.label, "", (), (CellView(" | ".join(" ".join(f"{v:.4g}" for v in lane) for lane in row.sessions)),)
        )
        for row in rows
    )
    data = TableView(f"{identifier}-data", words.say("The numbers of this figure"), words.say("cell"), columns, table)
    count = sum(len(lane) for row in rows for lane in row.sessions)
    caption = words.rich(
        "**{count} raw values, none dropped**: a dot is one answer, a lane one engine process, the stroke the median. "
        "Prompts differ in length.",
        count=count,
    )
    return FigureView(identifier, title, lines.strip(rows, identifier, title), caption, (), data)


def _by_session(arm: Arm) -> tuple[tuple[float, ...], ...]:
    found: dict[int, list[float]] = {}
    for trial in arm.trials:
        value = next((one.value for one in trial.observations if one.metric == WAIT), None)
        if isinstance(value, int | float):
            found.setdefault(trial.place.set_index, []).append(float(value))
    return tuple(tuple(found[session]) for session in sorted(found))


def order(key: str, arms: Sequence[tuple[str, Arm, int]], everything: Sequence[Arm], words: Words) -> FigureView | None:
    """Trials in the order they ran, each ÷ its cell's own median of that prompt.

    Args:
        key: of the figure.
        arms: label, arm and series of the cells shown.
        everything: arms of all cells of the block attempt, so that positions are those of the whole run.
        words: the language.
    """
    moments = sorted(
        (trial.started_utc, trial.place.set_index, trial.place.order, trial.trial, trial.place.cell)
        for arm in everything for trial in arm.trials
    )  # fmt: skip
    position = {moment: index + 1 for index, moment in enumerate(moments)}
    series = []
    for label, arm, number in arms:
        points = _relative(arm, position)
        if points:
            series.append(lines.OrderSeries(label, points, number))
    if not series:
        return None
    title = words.say("Trials in the order they ran")
    identifier = figure_id("order", key)
    columns = (Column(words.say("position: value ÷ the cell's own median of that prompt"), "", ""),)
    rows = tuple(
        RowView("", one.label, "", (), (CellView(" ".join(f"{p}: {v:.3f}" for p, v in one.points)),)) for one in series
    )
    data = TableView(f"{identifier}-data", words.say("The numbers of this figure"), words.say("cell"), columns, rows)
    legend = tuple(
        LegendItem("off" if one.series < 0 else f"m{(one.series + 1) % 6} s{one.series % 6}", one.label)
        for one in series
    )
    return FigureView(
        identifier,
        title,
        lines.order(series, identifier, title),
        _order_caption(series, words),
        legend,
        data,
    )


def _relative(arm: Arm, position: dict[tuple[str, int, int, int, str], int]) -> tuple[tuple[int, float], ...]:
    waits: dict[str, list[float]] = {}
    found = []
    for trial in arm.trials:
        value = next((o.value for o in trial.observations if o.metric == WAIT), None)
        if isinstance(value, int | float):
            waits.setdefault(trial.prompt_id, []).append(float(value))
            place = trial.place
            at = position[trial.started_utc, place.set_index, place.order, trial.trial, place.cell]
            found.append((at, trial.prompt_id, float(value)))
    return tuple((at, value / median(waits[prompt])) for at, prompt, value in sorted(found))


def _order_caption(series: Sequence[lines.OrderSeries], words: Words) -> Rich:
    """How the last third of the run compares with the first, over everything shown."""
    points = sorted(point for one in series for point in one.points)
    third = max(1, len(points) // 3)
    early, late = median(v for _, v in points[:third]), median(v for _, v in points[-third:])
    message = "**The last third of the trials took {change} the first third.** A slope is a machine that drifts."
    return words.rich(message, change=units.ratio(late / early))

"""The figures of a panel with captions that state what was found, and their numbers as tables."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.analysis.findings import Analysis, CellFinding
from orchestrator.report.figures import lines, scatter_plot, svg
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Rich, Segment, Words
from orchestrator.report.model.parts import CellView, Column, FigureView, LegendItem, RowView, TableView
from orchestrator.report.page.cells import tone_of
from orchestrator.report.page.first_screen.sentences import wait_clause
from orchestrator.report.page.naming import figure_id, names, told_apart
from orchestrator.schema import units
from orchestrator.schema.result import Outcome


def forest(key: str, members: Sequence[CellFinding], analysis: Analysis, words: Words) -> FigureView | None:
    """Total wait of every compared cell of a panel, each over its block's A/A band."""
    shown = [cell for cell in members if cell.wait is not None and cell.wait.ratio is not None]
    if not shown:
        return None
    rows = []
    for cell in shown:
        row = cell.wait
        if row is None or row.ratio is None:
            continue
        floor = analysis.floors.get((cell.state.block, cell.state.attempt or 0, row.metric))
        number = f"{numerals.ratio(row.ratio)} {numerals.interval(row.ratio)}".strip()
        rows.append(
            lines.ForestRow(
                names(cell, "engine", "model", "method", "sampling"),
                number,
                row.ratio.point,
                row.ratio.low,
                row.ratio.high,
                floor.half_width if floor is not None else None,
                tone_of(row),
                row.session_ratios,
            )
        )
    title = words.say("Total wait, on ÷ off")
    identifier = figure_id("forest", key)
    return FigureView(
        identifier,
        title,
        lines.forest(rows, identifier, title),
        _forest_caption(shown, words),
        (
            LegendItem("dot good", words.say("less waiting")),
            LegendItem("sq bad", words.say("more waiting")),
            LegendItem("ring flat", words.say("not told apart")),
            LegendItem("tick", words.say("one session")),
            LegendItem("band", words.say("A/A: what this machine cannot tell from nothing")),
        ),
        _forest_data(f"{identifier}-data", shown, analysis, words),
    )


def _forest_caption(shown: Sequence[CellFinding], words: Words) -> Rich:
    if len(shown) == 1:
        return wait_clause(shown[0], words).rich
    outcomes = [cell.wait.outcome for cell in shown if cell.wait is not None]
    less, more = outcomes.count(Outcome.LOWER), outcomes.count(Outcome.HIGHER)
    message = (
        "**{less} of {all} cells wait less, {more} wait longer**, {rest} cannot be told apart. Left of 1× is less."
    )
    return words.rich(message, less=less, all=len(outcomes), more=more, rest=len(outcomes) - less - more)


def _forest_data(identifier: str, shown: Sequence[CellFinding], analysis: Analysis, words: Words) -> TableView:
    columns = tuple(
        Column(label, "", "")
        for label in (
            words.say("ratio"),
            words.say("95 % interval"),
            words.say("bootstrap, a check"),
            words.say("A/A band"),
            words.say("p, Holm"),
            words.say("p, sign flips"),
            words.say("sessions"),
            words.say("more for ±2 %"),
            words.say("prompts slower"),
            words.say("outcome"),
        )
    )
    rows = []
    for cell in shown:
        row = cell.wait
        if row is None or row.ratio is None:
            continue
        floor = analysis.floors.get((cell.state.block, cell.state.attempt or 0, row.metric))
        band = (
            f"±{words.percent(floor.half_width, 1)}" if floor is not None and floor.half_width else words.say("unknown")
        )
        nothing = words.say("none")
        boot = numerals.interval(row.bootstrap) if row.bootstrap is not None else ""
        values = (
            numerals.ratio(row.ratio),
            numerals.interval(row.ratio) or nothing,
            boot or nothing,
            band,
            f"{row.p_holm:.3f}" if row.p_holm is not None else nothing,
            f"{row.sign_flip_p:.3f}" if row.sign_flip_p is not None else nothing,
            " ".join(f"{value:.2f}" for value in row.session_ratios),
            str(row.sessions_more) if row.sessions_more is not None else words.say("unknown"),
            f"{row.prompts_worse}/{row.prompts}",
            words.say(row.outcome.value),
        )
        label = names(cell, "engine", "model", "method", "sampling")
        rows.append(RowView("", label, "", (), tuple(map(CellView, values))))
    return TableView(identifier, words.say("The numbers of this figure"), words.say("cell"), columns, tuple(rows))


def scatter(key: str, members: Sequence[CellFinding], words: Words) -> FigureView | None:
    """Acceptance against wait, for cells that have both; one cell alone shows nothing that its row does not."""
    shown = [
        cell for cell in members
        if cell.acceptance is not None and cell.wait is not None and cell.wait.ratio is not None
    ]  # fmt: skip
    if len(shown) < 2:
        return None
    engines = list(dict.fromkeys(cell.name("engine") for cell in shown))
    # A name with engine and model finds no room among the points: where both differ, marks tell the engine.
    marked = len(engines) > 1 and len({cell.name("model") for cell in members}) > 1
    points = []
    for cell in shown:
        if cell.acceptance is None or cell.wait is None or cell.wait.ratio is None:
            continue
        ratio = cell.wait.ratio
        label = told_apart(cell, members, engine=len(engines) > 1 and not marked)
        points.append(
            scatter_plot.ScatterPoint(
                label, cell.acceptance.point, ratio.point, ratio.low, ratio.high, engines.index(cell.name("engine"))
            )
        )
    title = words.say("Accepted drafts against total wait")
    identifier = figure_id("scatter", key)
    columns = tuple(Column(label, "", "") for label in (words.say("accepted"), words.say("total wait, on ÷ off")))
    rows = tuple(
        RowView(
            "", told_apart(cell, members), "", (),
            (CellView(words.percent(point.acceptance)), CellView(units.ratio(point.ratio))),
        )
        for cell, point in zip(shown, points, strict=True)
    )  # fmt: skip
    legend = [LegendItem("", words.say("across: accepted drafts · down: less waiting"))]
    if marked:
        legend += [LegendItem(f"m{number % 6} s{number % 6}", clean(name, 60)) for number, name in enumerate(engines)]
    data = TableView(f"{identifier}-data", words.say("The numbers of this figure"), words.say("cell"), columns, rows)
    drawn, bare = scatter_plot.scatter(points)
    caption = _scatter_caption(shown, members, words)
    if bare:
        told = words.count(
            " {number} point has no name here for want of room; the numbers below name every one.",
            " {number} points have no name here for want of room; the numbers below name every one.",
            bare,
        )
        caption = (*caption, Segment(told))
    return FigureView(
        identifier,
        title,
        svg.inline(drawn, identifier, title),
        caption,
        tuple(legend),
        data,
    )


def _scatter_caption(shown: Sequence[CellFinding], members: Sequence[CellFinding], words: Words) -> Rich:
    def accepted(cell: CellFinding) -> float:
        return cell.acceptance.point if cell.acceptance is not None else 0.0

    def wait(cell: CellFinding) -> float:
        return cell.wait.ratio.point if cell.wait is not None and cell.wait.ratio is not None else 0.0

    top, quick = max(shown, key=accepted), min(shown, key=wait)
    values = {
        "top": told_apart(top, members),
        "rate": words.percent(accepted(top)),
        "wait": units.ratio(wait(top)),
        "quick": told_apart(quick, members),
        "quick_rate": words.percent(accepted(quick)),
        "quick_wait": units.ratio(wait(quick)),
    }
    if top is quick:
        return words.rich(
            "**The most accepted drafts and the least wait coincide here**: {top}, {rate}, {wait}.", **values
        )
    message = (
        "**Acceptance is not speed**: {top} accepts most ({rate}) and waits {wait}; "
        "{quick} waits least ({quick_wait}) with {quick_rate} accepted."
    )
    return words.rich(message, **values)

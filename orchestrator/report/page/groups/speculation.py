"""What drafting cost and brought, per panel: draft lengths, acceptance by position, the price of a pass."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from orchestrator.report.analysis.findings import CellFinding, Drafting
from orchestrator.report.figures import length_lines, lines
from orchestrator.report.language import numerals
from orchestrator.report.language.words import Rich, Words
from orchestrator.report.model.parts import CellView, Column, FigureView, LegendItem, RowView, TableView
from orchestrator.report.page.cells import per_process
from orchestrator.report.page.naming import figure_id, names, told_apart
from orchestrator.schema import units
from orchestrator.stats.speedup import Decomposition, expected_tokens

DRAWN = 6
"""Curves in one figure, as many as there are colours; the table beside it holds all."""
MODEL_MAX = 16


def cost(key: str, members: Sequence[CellFinding], words: Words) -> FigureView | None:
    """The price of a pass beside what it brought, for cells whose engine reports its passes."""
    known = [(cell, cell.decomposition) for cell in members if cell.decomposition is not None]
    if not known:
        return None
    title, identifier = words.say("What a pass costs, and what it brings"), figure_id("cost", key)
    rows = [
        lines.CostRow(told_apart(cell, members), found.tokens_per_pass, found.pass_cost, found.draft_cost)
        for cell, found in known
    ]
    gains = sum(row.tokens_per_pass >= row.pass_cost for row in rows)
    caption = words.rich(
        "**In {gains} of {all} cells a pass brings more tokens than it costs.** The bar is its price in passes of the "
        "baseline, the stroke the tokens it brought; stroke ÷ bar is the decode rate, on ÷ off.",
        gains=gains,
        all=len(rows),
    )
    legend = [LegendItem("s0", words.say("price of a pass"))]
    if any(row.draft for row in rows):
        legend.append(LegendItem("s1", words.say("the drafter's share of it")))
    return FigureView(
        identifier, title, lines.cost(rows, identifier, title), caption, tuple(legend),
        _cost_table(f"{identifier}-data", known, members, words),
    )  # fmt: skip


def _cost_table(
    identifier: str, known: Sequence[tuple[CellFinding, Decomposition]], members: Sequence[CellFinding], words: Words
) -> TableView:
    labels = (
        words.say("tokens per pass"), words.say("price of a pass"), words.say("of it drafting"),
        words.say("of it verification and the rest"), words.say("pays above"), words.say("accepted"),
        words.say("α of the counts"), words.say("α of the model"),
        words.say("model, verify pass at the price of a plain one"),
        words.say("draft, verify, rollback as the engine measures them"),
    )  # fmt: skip
    unknown, never = words.say("not reported"), words.say("never")
    rows = []
    for cell, found in known:
        low, high = units.plain(found.verify_cost_low), units.plain(found.verify_cost_high)
        pays = words.percent(found.break_even_acceptance) if found.break_even_acceptance is not None else never
        values = (
            units.plain(found.tokens_per_pass),
            units.plain(found.pass_cost),
            units.plain(found.draft_cost) if found.draft_cost is not None else unknown,
            low if low == high else f"{low}–{high}",
            pays,
            words.percent(found.acceptance) if found.acceptance is not None else unknown,
            f"{found.judged_alpha:.2f}" if found.judged_alpha is not None else unknown,
            f"{found.model_alpha:.2f}" if found.model_alpha is not None else words.say("none fits"),
            units.ratio(found.model_speedup) if found.model_speedup is not None else unknown,
            " · ".join(_engine_time(cell, metric, words) for metric in ("draft_time", "verify_time", "rollback_time")),
        )
        rows.append(RowView("", told_apart(cell, members), "", (), tuple(map(CellView, values))))
    columns = tuple(Column(label, "", "") for label in labels)
    return TableView(identifier, words.say("The numbers of this figure"), words.say("cell"), columns, tuple(rows))


def _engine_time(cell: CellFinding, metric: str, words: Words) -> str:
    found, repeated, whole = cell.summaries.get(metric), cell.phases.get(metric), cell.per_process.get(metric)
    if found is None and repeated is None and whole is not None:
        return f"{numerals.quantity(metric, whole.total.median)} {per_process(whole, words)}"
    if found is not None or repeated is None:
        return numerals.quantity(metric, found.median) if found is not None else words.say("not reported")
    message = "{value} in an instrumented repeat, which adds synchronisations (n = {n})"
    return words.say(message, value=numerals.quantity(metric, repeated.median), n=repeated.n)


def sweep(key: str, members: Sequence[CellFinding], words: Words) -> tuple[FigureView | None, str]:
    """Decode rate by draft length, measured and by the i.i.d. model; or the sentence why there is none."""
    groups: dict[str, list[CellFinding]] = {}
    for cell in members:
        rate = cell.comparisons.get("decode_rate")
        if _length(cell) and rate is not None and rate.ratio is not None:
            groups.setdefault(f"{names(cell, 'engine', 'model', 'sampling')} · {_kind(cell)}", []).append(cell)
    swept = {label: cells for label, cells in groups.items() if len({_length(cell) for cell in cells}) > 1}
    if not swept:
        tried = sorted({_length(cell) for cell in members if _length(cell)})
        if not tried:
            return None, ""
        message = "Draft-length sweep: to be measured. One draft length per drafter was asked for (K = {lengths})."
        return None, words.say(message, lengths=", ".join(map(str, tried)))
    series = [_series(label, cells) for label, cells in list(swept.items())[:DRAWN]]
    best = max((cell for cells in swept.values() for cell in cells), key=_rate)
    title, identifier = words.say("Draft length against the decode rate"), figure_id("sweep", key)
    luck = _luck(best, [cell for cells in swept.values() if best in cells for cell in cells], words)
    caption = words.rich(
        "**Of the lengths that were tried, K = {k} decodes fastest: {ratio} ({cell}).** {luck} Dashed: the model, "
        "every draft token accepted with one chance α, each position of the draft at one price.",
        luck=luck,
        k=_length(best),
        ratio=units.ratio(_rate(best)),
        cell=told_apart(best, members),
    )
    legend = tuple(LegendItem(f"m{n % 6} s{n % 6}", one.label) for n, one in enumerate(series))
    drawn = length_lines.sweep(series, identifier, title)
    return FigureView(identifier, title, drawn, caption, legend, _sweep_table(f"{identifier}-data", swept, words)), ""


def _luck(best: CellFinding, family: Sequence[CellFinding], words: Words) -> str:
    """How far the best of a sweep is known to be the best; a winner by total wait may be another length."""
    if best.confirmed:
        return words.say("It was confirmed in fresh sessions.")
    confirmed = next((cell for cell in family if cell.confirmed), None)
    if confirmed is not None:
        message = "K = {k} waits least and was confirmed in fresh sessions: {ratio} the decode rate there."
        return words.say(message, k=_length(confirmed), ratio=units.ratio(_rate(confirmed)))
    return words.say("The best of a sweep is partly luck: measure it again before it is called best.")


def _series(label: str, cells: Sequence[CellFinding]) -> length_lines.SweepSeries:
    points = []
    for cell in sorted(cells, key=_length):
        rate = cell.comparisons["decode_rate"].ratio
        if rate is not None:
            points.append((_length(cell), rate.point, rate.low, rate.high))
    return length_lines.SweepSeries(label, tuple(points), _model(cells, max(k for k, *_ in points)))


def _model(cells: Sequence[CellFinding], longest: int) -> tuple[tuple[int, float], ...]:
    """E(α, K) ÷ (1 + c·K), with α and c as medians of what the measured lengths imply."""
    found = [cell.decomposition for cell in cells if cell.decomposition is not None]
    alphas = [one.model_alpha for one in found if one.model_alpha is not None]
    prices = [(one.pass_cost - 1) / one.mean_draft_length for one in found if one.mean_draft_length > 0]
    if not alphas or not prices:
        return ()
    alpha, price = median(alphas), median(prices)
    top = min(MODEL_MAX, longest + 2)
    curve = ((k, expected_tokens(alpha, k) / (1 + price * k)) for k in range(1, top + 1) if 1 + price * k > 0)
    return tuple(curve)


def _sweep_table(identifier: str, swept: dict[str, list[CellFinding]], words: Words) -> TableView:
    labels = ("K", words.say("decode, on ÷ off"), words.say("95 % interval"), words.say("total wait, on ÷ off"),
              words.say("accepted"))  # fmt: skip
    rows = []
    for label, cells in swept.items():
        for cell in sorted(cells, key=_length):
            rate = cell.comparisons["decode_rate"].ratio
            wait = cell.wait.ratio if cell.wait is not None else None
            values = (
                str(_length(cell)),
                numerals.ratio(rate) if rate is not None else words.say("not comparable"),
                (numerals.interval(rate) if rate is not None else "") or words.say("none"),
                numerals.ratio(wait) if wait is not None else words.say("not comparable"),
                words.percent(cell.acceptance.point) if cell.acceptance is not None else words.say("not reported"),
            )
            rows.append(RowView("", label, names(cell, "method"), (), tuple(map(CellView, values))))
    columns = tuple(Column(one, "", "") for one in labels)
    return TableView(identifier, words.say("The numbers of this figure"), words.say("cell"), columns, tuple(rows))


def positions(key: str, members: Sequence[CellFinding], words: Words) -> FigureView | None:
    """Acceptance by draft position, where the engine tells or its rounds do."""
    told = [(cell, cell.drafting) for cell in members if cell.drafting is not None and len(cell.drafting.positions) > 1]
    if not told:
        return None
    title, identifier = words.say("Accepted by draft position"), figure_id("positions", key)
    series = [
        length_lines.PositionSeries(told_apart(cell, members), tuple(
            (row.position, row.conditional_low, row.conditional_high) for row in found.positions
            if row.conditional_low is not None and row.conditional_high is not None
        )) for cell, found in told[:DRAWN]
    ]  # fmt: skip
    series = [one for one in series if one.points]
    if not series:
        return None
    legend = tuple(LegendItem(f"m{n % 6} s{n % 6}", one.label) for n, one in enumerate(series))
    drawn = length_lines.positions(series, identifier, title)
    caption = _position_caption(told, words)
    return FigureView(
        identifier, title, drawn, caption, legend, _position_table(f"{identifier}-data", told, members, words)
    )


def _position_caption(told: Sequence[tuple[CellFinding, Drafting]], words: Words) -> Rich:
    chances = [found.flat_p for _, found in told if found.flat_p is not None]
    tail = words.rich(
        " Of the tokens judged at a position, how many were accepted; a stroke spans what the counts leave open."
    )
    if not chances:
        return (*words.rich("**Whether acceptance is the same at every position cannot be tested here.**"), *tail)
    uneven = sum(p < 0.01 for p in chances)
    message = (
        "**In {uneven} of {all} cells acceptance changes with the position** (χ², p < 0.01): there the model is off."
    )
    return (*words.rich(message, uneven=uneven, all=len(chances)), *tail)


def _position_table(
    identifier: str, told: Sequence[tuple[CellFinding, Drafting]], members: Sequence[CellFinding], words: Words
) -> TableView:
    labels = (words.say("position"), words.say("drafted"), words.say("accepted"), words.say("accepted ÷ drafted"),
              words.say("accepted ÷ judged"))  # fmt: skip
    rows = []
    for cell, found in told:
        for row in found.positions:
            low, high = row.conditional_low, row.conditional_high
            judged = words.say("none judged")
            if low is not None and high is not None:
                judged = words.percent(low) if high - low < 0.005 else f"{words.percent(low)}–{words.percent(high)}"
            share = words.percent(row.unconditional) if row.unconditional is not None else words.say("none")
            values = (str(row.position), str(row.drafted), str(row.accepted), share, judged)
            rows.append(RowView("", told_apart(cell, members), "", (), tuple(map(CellView, values))))
    columns = tuple(Column(one, "", "") for one in labels)
    return TableView(identifier, words.say("The numbers of this figure"), words.say("cell"), columns, tuple(rows))


def _kind(cell: CellFinding) -> str:
    return str(cell.state.settings["method"].get("kind", ""))


def _length(cell: CellFinding) -> int:
    """K as the matrix asks for it; 0 where the method has none."""
    return int(cell.state.settings["method"].get("n_max") or 0)


def _rate(cell: CellFinding) -> float:
    ratio = cell.comparisons["decode_rate"].ratio
    return ratio.point if ratio is not None else 0.0

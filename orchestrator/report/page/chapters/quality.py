"""The answers in words and tables: form and correctness on against off, answers that are none, and each category."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.report.analysis.findings import WAIT, Analysis, CategoryAcceptance, CellFinding
from orchestrator.report.analysis.quality_findings import CategoryQuality, Quality
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean
from orchestrator.report.language.words import Words
from orchestrator.report.model.chapters import QualitySection
from orchestrator.report.model.parts import CellView, Column, RowView, TableView
from orchestrator.report.page.cells import Notes
from orchestrator.report.page.first_screen.quality_words import range_of, share_of, tone_of_truth
from orchestrator.report.page.naming import SECTION_ORDER, full_name, group_title, metric_anchor, names, slug
from orchestrator.schema.cell import Role
from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.result import Group
from orchestrator.stats.tasks import PairedTruth


def quality_sections(analysis: Analysis, words: Words) -> tuple[QualitySection, ...]:
    """A section for every group with measured cells, which never share a table, and one for baselines left alone."""
    made = [
        _section(group, members, analysis, words)
        for group in SECTION_ORDER
        if (members := [cell for cell in _compared(analysis) if cell.group is group])
    ]
    alone = _alone(analysis)
    if alone:
        rows = tuple(_base_row(cell, cell.quality, words) for cell in alone)
        title = words.say("Baselines without a measured cell")
        table = TableView("t-quality-baseline", title, words.say("cell"), _answer_columns(words), rows)
        made.append(QualitySection(Group.BASELINE.value, title, (), (table,), ()))
    return tuple(made)


def _alone(analysis: Analysis) -> list[CellFinding]:
    """Graded baselines that no measured cell stands on: their answers are shown all the same."""
    used = {cell.state.block for cell in _compared(analysis)}
    return [
        cell
        for cell in analysis.cells
        if cell.state.role is Role.BASELINE and cell.state.block not in used and cell.quality and cell.quality.graded
    ]


def _compared(analysis: Analysis) -> list[CellFinding]:
    return [cell for cell in analysis.cells if cell.state.role is Role.SPECULATIVE and cell.quality is not None]


def no_task(analysis: Analysis, words: Words) -> str:
    """Says so where no answer was graded, so that silence is not read as praise."""
    if any(cell.quality is not None and cell.quality.graded for cell in analysis.cells):
        return ""
    return words.say("No prompt of this run states a task, so nothing is said on whether the answers are right.")


def _section(group: Group, members: Sequence[CellFinding], analysis: Analysis, words: Words) -> QualitySection:
    graded = [cell for cell in members if cell.quality is not None and cell.quality.graded]
    tables = (_answers(group, graded, analysis, words),) if graded else ()
    said = tuple(line for cell in members if (line := _broken_words(cell, words)))
    by_workload: dict[str, list[CellFinding]] = {}
    for cell in members:
        # Of one category without tasks the table would repeat what stands above.
        if cell.quality is not None and (len(cell.quality.by_category) > 1 or cell.quality.graded):
            by_workload.setdefault(cell.name("workload"), []).append(cell)
    categories = tuple(_categories(group, name, cells, words) for name, cells in by_workload.items())
    return QualitySection(group.value, group_title(words, group), said, tables, categories)


def _broken_words(cell: CellFinding, words: Words) -> str:
    """What is to be said of answers that are none; empty where there is nothing."""
    quality = cell.quality
    if quality is None or not (quality.broken.on or quality.broken.off):
        return ""
    broken = quality.broken
    head = words.say(
        "{cell}: {on} of {n} answers are no answer, {off} without it ({kinds}).",
        cell=full_name(cell),
        on=broken.on,
        off=broken.off,
        n=broken.pairs,
        kinds=", ".join(words.said(kind) for kind in broken.kinds),
    )
    parts = [head]
    if broken.refusal:
        parts.append(words.say("Not ranked, and no verdict on its speed."))
    if broken.both:
        message = (
            "{n} of them are broken the same way without it: that is the model, and their speed says little about "
            "other text."
        )
        parts.append(words.say(message, n=broken.both))
    example = words.say("For example: {what}", what=words.said(clean(quality.example, 160)))
    return " ".join([*parts, example])


def _answers(group: Group, members: Sequence[CellFinding], analysis: Analysis, words: Words) -> TableView:
    notes = Notes()
    rows = []
    blocks = dict.fromkeys((cell.state.block, cell.state.attempt) for cell in members)
    for block, attempt in blocks:
        mine = [cell for cell in members if (cell.state.block, cell.state.attempt) == (block, attempt)]
        base = next((c for c in analysis.cells if c.state.block == block and c.state.role is Role.BASELINE), None)
        if base is not None:
            rows.append(_base_row(base, mine[0].quality, words))
        rows += [_answer_row(cell, cell.quality, notes, words) for cell in mine if cell.quality is not None]
    caption = words.say("{group}: the answers, off and on", group=group_title(words, group))
    columns = _answer_columns(words)
    return TableView(f"t-quality-{group.value}", caption, words.say("cell"), columns, tuple(rows), tuple(notes.texts))


def _answer_columns(words: Words) -> tuple[Column, ...]:
    return (
        _column(words, words.say("well formed"), words.say("prompts"), "task_valid"),
        _column(words, words.say("right"), words.say("prompts"), "task_correct"),
        Column(
            words.say("what this sample could have shown"),
            words.say("loss, 9 times in 10"),
            words.say(
                "The smallest share of the answers that are right without it whose loss an exact test would have found "
                "at 5 % nine times in ten, if none were gained: a smaller loss may hide. Under it the upper 95 % limit "
                "of the loss less the gain, of all prompts (Clopper–Pearson, exact)."
            ),
        ),
        _column(words, words.say("no answer"), words.say("answers"), "output_degenerate"),
    )


def _column(words: Words, label: str, unit: str, metric: str) -> Column:
    return Column(label, unit, words.say(VOCABULARY[metric].definition), "#" + metric_anchor(metric))


def _base_row(base: CellFinding, beside: Quality | None, words: Words) -> RowView:
    """The baseline as the cells under it were held against: over the same prompts, in the same attempt."""
    head, sub = names(base, "engine"), names(base, "method", "model", "sampling", "workload")
    if beside is None:
        return RowView("", head, sub, (), (), base=True)
    views = (
        _count(beside.valid, words) if beside.valid is not None else _unstated(words),
        _count(beside.correct, words) if beside.correct is not None else _unstated(words),
        CellView("–", absent=True, why=words.say("A baseline is not held against itself.")),
        CellView(f"{beside.broken.off}/{beside.broken.pairs}", tone="bad" if beside.broken.off else ""),
    )
    return RowView("", head, sub, (), views, base=True)


def _answer_row(cell: CellFinding, quality: Quality, notes: Notes, words: Words) -> RowView:
    told = quality.correct or quality.valid
    views = (
        _against(quality.valid, notes, words),
        _against(quality.correct, notes, words),
        _can_show(told, words, right=told is quality.correct) if told is not None else _unstated(words),
        CellView(
            f"{quality.broken.on}/{quality.broken.pairs}",
            tone="bad" if quality.broken.on else "",
            lines=(words.say("not ranked"),) if quality.broken.refusal else (),
        ),
    )
    return RowView("", names(cell, "method"), names(cell, "engine", "model", "sampling", "workload"), (), views)


def _count(found: PairedTruth, words: Words) -> CellView:
    if not found.n:
        return _untold(found, words)
    return CellView(share_of(found.off, found, words), lines=_shares(found.off, found.open_off, found, words))


def _shares(yes: float, still: float, found: PairedTruth, words: Words) -> tuple[str, ...]:
    """The share in percent, with the prompts where prompts do not count whole."""
    share = range_of(yes, still, found, words)
    return (share,) if found.greedy else (*((share,) if still else ()), words.say("mean of {n} prompts", n=found.n))


def _against(found: PairedTruth | None, notes: Notes, words: Words) -> CellView:
    if found is None:
        return _unstated(words)
    if not found.n:
        return _untold(found, words)
    changed = words.say("{lost} lost, {gained} gained", lost=found.lost, gained=found.gained)
    lines = [*_shares(found.on, found.open_on, found, words), changed]
    lines += [words.say("{k} undetermined", k=found.undetermined), words.say("p = {p}", p=f"{found.p_value:.2g}")]
    note = None
    if found.mixed and found.greedy:
        note = notes.number(
            words.say("Trials of {n} prompts do not agree; a prompt counts by most of its trials.", n=found.mixed)
        )
    shown, sort = share_of(found.on, found, words), f"{found.on / found.n:.9g}"
    return CellView(shown, tone_of_truth(found), tuple(lines), note=note, sort=sort)


def _can_show(found: PairedTruth, words: Words, *, right: bool) -> CellView:
    of = (
        words.say("of {n} right without it", n=found.losable)
        if right
        else words.say("of {n} well formed without it", n=found.losable)
    )
    lines = [of]
    if found.net_loss_limit is not None:
        lines.append(words.say("net loss ≤ {share}", share=words.percent(found.net_loss_limit)))
    if found.detectable is None:
        why = words.say("With fewer than six such answers without it, not even the loss of all would show.")
        return CellView(words.say("nothing"), lines=tuple(lines), absent=True, why=why)
    share = words.percent(found.detectable)
    return CellView(f"≥ {share}", lines=tuple(lines), sort=f"{found.detectable:.9g}")


def _untold(found: PairedTruth, words: Words) -> CellView:
    why = words.say("None of these answers could be judged.")
    return CellView(words.say("{k} undetermined", k=found.undetermined), absent=True, why=why)


def _unstated(words: Words) -> CellView:
    why = words.say("No task asks for it.")
    return CellView(words.say("not applicable"), absent=True, why=why)


def _categories(group: Group, workload: str, members: Sequence[CellFinding], words: Words) -> TableView:
    notes = Notes()
    rows = [
        _category_row(cell, one, notes, words)
        for cell in members
        for one in (cell.quality.by_category if cell.quality is not None else ())
    ]
    columns = (
        Column(words.say("wait"), words.say("on ÷ off"), words.say(VOCABULARY[WAIT].definition)),
        Column(words.say("accepted"), words.say("Σ ÷ Σ"), words.say(VOCABULARY["acceptance_rate"].definition)),
        Column(words.say("thrown away"), words.say("draft tokens"), words.say("Drafted and not accepted.")),
        Column(words.say("well formed"), words.say("on, off"), words.say(VOCABULARY["task_valid"].definition)),
        Column(words.say("right"), words.say("on, off"), words.say(VOCABULARY["task_correct"].definition)),
        Column(words.say("no answer"), words.say("answers"), words.say(VOCABULARY["output_degenerate"].definition)),
    )
    shown = clean(workload, 60)
    caption = words.say("{workload}: by category of prompt, without a verdict", workload=shown)
    identifier = f"t-categories-{slug(f'{group.value}/{workload}').replace('/', '-')}"
    return TableView(
        identifier, caption, words.say("category"), columns, tuple(rows), tuple(notes.texts), sortable=True
    )


def _category_row(cell: CellFinding, one: CategoryQuality, notes: Notes, words: Words) -> RowView:
    drafts = cell.drafting.categories if cell.drafting is not None else ()
    drafted = next((each for each in drafts if each.category == one.category), None)
    views = (
        _wait(one, notes, words),
        *_drafts(drafted, words),
        _both(one.valid, words),
        _both(one.correct, words),
        CellView(f"{one.broken}/{one.answers}", tone="bad" if one.broken else ""),
    )
    sub = names(cell, "method", "engine", "model", "sampling")
    return RowView("", clean(one.category, 60), sub, (), views)


def _wait(one: CategoryQuality, notes: Notes, words: Words) -> CellView:
    if one.wait is None:
        why = words.said(clean(one.why)) or words.say("Nothing to pair.")
        return CellView(words.say("not comparable"), absent=True, why=why, note=notes.number(why))
    lines = [line for line in (numerals.interval(one.wait), words.say("n = {n}", n=one.answers)) if line]
    if one.metric != WAIT:
        lines.append(words.say("up to token {n}", n=one.metric.rsplit("_", 1)[-1]))
    return CellView(numerals.ratio(one.wait), "", tuple(lines), sort=f"{one.wait.point:.9g}")


def _drafts(drafted: CategoryAcceptance | None, words: Words) -> tuple[CellView, CellView]:
    if drafted is None or drafted.totals is None:
        absent = CellView(words.say("not reported"), absent=True, why=words.say("The engine does not say."))
        return absent, absent
    totals = drafted.totals
    if drafted.rate is None:
        nothing = CellView(words.say("not applicable"), absent=True, why=words.say("Nothing was drafted."))
        return nothing, CellView("0", sort="0")
    interval = ""
    if drafted.rate.low is not None and drafted.rate.high is not None:
        interval = f"[{words.percent(drafted.rate.low)}, {words.percent(drafted.rate.high)}]"
    accepted = CellView(
        words.percent(drafted.rate.point), lines=(interval,) if interval else (), sort=f"{drafted.rate.point:.9g}"
    )
    lost = totals.drafted - totals.accepted
    return accepted, CellView(
        f"{lost}", lines=(words.say("of {n} drafted", n=totals.drafted),), sort=f"{lost / totals.drafted:.9g}"
    )


def _both(found: PairedTruth | None, words: Words) -> CellView:
    if found is None:
        return _unstated(words)
    if not found.n:
        return _untold(found, words)
    lines = [words.say("off {share}", share=share_of(found.off, found, words))]
    if found.undetermined:
        lines.append(words.say("{k} undetermined", k=found.undetermined))
    return CellView(share_of(found.on, found, words), lines=tuple(lines), sort=f"{found.on / found.n:.9g}")

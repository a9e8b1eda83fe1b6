"""Advice never says more than the intervals bear: every combination of outcomes, and of samplings."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import run_builder
from report_runs import Report, report_of

from orchestrator.report.analysis.advice import recommend, together
from orchestrator.report.analysis.findings import Advice, CellFinding, Recommendation, SamplingAdvice, Why
from orchestrator.report.language.words import Words, plain
from orchestrator.report.model.first_screen import Decision
from orchestrator.report.page.first_screen.decisions import decisions
from orchestrator.schema.cell import Role
from orchestrator.schema.result import Comparison, Estimate, Group, Outcome
from orchestrator.schema.status import Status
from orchestrator.stats.stability import Flag, FlagKind

NBSP = "\u00a0"
ON, OFF, SAME, UNKNOWN = Advice.ON, Advice.OFF, Advice.SAME, Advice.UNKNOWN
UNSTABLE = Flag(FlagKind.UNSTABLE, "coefficient of variation 20.0 %, above 10 %", ranked=False)

KINDS: Mapping[str, tuple[Outcome, float | None, float | None]] = {
    "gain": (Outcome.LOWER, 0.7, 0.8),
    "loss": (Outcome.HIGHER, 1.2, 1.4),
    "equal": (Outcome.EQUIVALENT, 0.99, 1.01),
    "narrow": (Outcome.NO_DIFFERENCE, 0.97, 1.05),
    "wide": (Outcome.NO_DIFFERENCE, 0.92, 1.79),
    "above": (Outcome.NO_DIFFERENCE, 1.01, 1.60),
    "range": (Outcome.RANGE_ONLY, None, None),
    "refused": (Outcome.NOT_COMPARABLE, None, None),
}
"""``above``: not told apart after Holm's correction, though its own interval lies above 1."""

PAIRS: Mapping[str, str] = {
    # first:     gain loss    equal   narrow  wide    above   range   refused
    "gain":    "on   on      on      on      on      on      on      on",
    "loss":    "on   off     off     off     unknown off     unknown unknown",
    "equal":   "on   off     same    same    unknown unknown unknown unknown",
    "narrow":  "on   off     same    same    unknown unknown unknown unknown",
    "wide":    "on   unknown unknown unknown unknown unknown unknown unknown",
    "above":   "on   off     unknown unknown unknown unknown unknown unknown",
    "range":   "on   unknown unknown unknown unknown unknown unknown unknown",
    "refused": "on   unknown unknown unknown unknown unknown unknown unknown",
}  # fmt: skip
WORDS = {"on": ON, "off": OFF, "same": SAME, "unknown": UNKNOWN}


def cell(
    name: str, kind: str, *, sampling: str = "greedy", unstable: bool = False, confirmed: bool = False
) -> CellFinding:
    """A measured exact cell as far as advice looks at it."""
    outcome, low, high = KINDS[kind]
    ratio = None
    if low is not None and high is not None:
        ratio = Estimate((low * high) ** 0.5, low, high, 0.95, 4, "test")
    wait = Comparison(name, "base", "e2e_latency", ratio=ratio, outcome=outcome, reason="")
    axes = {"engine": "e", "model": "m", "method": name, "sampling": sampling, "workload": "w"}
    made = SimpleNamespace(
        id=f"{name}/{sampling}", group=Group.EXACT, wait=wait, headline="e2e_latency", confirmed=confirmed, quality=None,
        flags=(UNSTABLE,) if unstable else (), comparisons={"e2e_latency": wait}, name=axes.__getitem__,
        state=SimpleNamespace(role=Role.SPECULATIVE, baseline="base", block="b", attempt=1, reason="", status=Status.OK, engagement=None),
    )  # fmt: skip
    return cast("CellFinding", made)


def advised(*cells: CellFinding) -> SamplingAdvice:
    (found,) = recommend(cells, {})
    (part,) = found.by_sampling
    return part


@pytest.mark.parametrize("first", KINDS)
@pytest.mark.parametrize("second", KINDS)
def test_advice_of_two_cells(first: str, second: str) -> None:
    expected = WORDS[PAIRS[first].split()[list(KINDS).index(second)]]
    part = advised(cell("a", first), cell("b", second))
    assert part.advice is expected
    if part.best is not None:
        kind = {"a": first, "b": second}[part.best.name("method")]
        fitting = {
            ON: ("gain",), OFF: ("loss",), SAME: ("equal", "narrow"), UNKNOWN: ("wide", "above"),
        }[expected]  # fmt: skip
        assert kind in fitting
    else:
        assert expected is UNKNOWN
        assert part.why in (Why.TOO_FEW, Why.NOT_COMPARABLE)


@pytest.mark.parametrize(
    ("kind", "advice"),
    [
        ("gain", ON), ("loss", OFF), ("equal", SAME), ("narrow", SAME), ("wide", UNKNOWN), ("above", UNKNOWN),
        ("range", UNKNOWN), ("refused", UNKNOWN),
    ],
)  # fmt: skip
def test_advice_of_one_cell(kind: str, advice: Advice) -> None:
    assert advised(cell("a", kind)).advice is advice


def test_the_loser_that_is_named_is_the_one_that_lost_least() -> None:
    found = advised(cell("a", "equal"), cell("b", "loss"))
    assert found.best is not None
    assert found.best.name("method") == "b"


SETS = tuple(chain.from_iterable(combinations((ON, OFF, SAME, UNKNOWN), size) for size in (1, 2, 3, 4)))
TOGETHER: Mapping[frozenset[Advice], Advice | None] = {
    frozenset({ON}): ON, frozenset({OFF}): OFF, frozenset({SAME}): SAME, frozenset({UNKNOWN}): UNKNOWN,
    frozenset({ON, OFF}): None, frozenset({ON, SAME}): None, frozenset({ON, UNKNOWN}): None,
    frozenset({OFF, SAME}): OFF, frozenset({OFF, UNKNOWN}): None, frozenset({SAME, UNKNOWN}): UNKNOWN,
    frozenset({ON, OFF, SAME}): None, frozenset({ON, OFF, UNKNOWN}): None, frozenset({ON, SAME, UNKNOWN}): None,
    frozenset({OFF, SAME, UNKNOWN}): None, frozenset({ON, OFF, SAME, UNKNOWN}): None,
}  # fmt: skip


@pytest.mark.parametrize("some", SETS)
def test_one_word_for_several_samplings(some: Sequence[Advice]) -> None:
    assert together(set(some)) is TOGETHER[frozenset(some)]


def told(*parts: tuple[str, str]) -> Decision:
    """The card of one cell per sampling, each of the kind named."""
    cells = tuple(cell("draft", kind, sampling=sampling) for sampling, kind in parts)
    for one in cells:
        vars(one).update(
            identity=None, mark=None, missing={}, summaries={}, baseline_summaries={},
        )  # fmt: skip
    found: tuple[Recommendation, ...] = recommend(cells, {})
    (made,) = decisions(cast("Any", SimpleNamespace(recommendations=found)), Words("en"))
    return made


@pytest.mark.parametrize(
    ("parts", "word", "tone"),
    [
        ((("greedy", "wide"), ("t0.8", "loss")), "Leave it off for t0.8; greedy: cannot say", "bad"),
        ((("greedy", "wide"), ("t0.8", "narrow")), "Cannot say", "ask"),
        ((("greedy", "gain"), ("t0.8", "wide")), "On for greedy; t0.8: cannot say", "good"),
        ((("greedy", "gain"), ("t0.8", "loss")), "On for greedy", "good"),
        ((("greedy", "narrow"), ("t0.8", "loss")), "Leave it off", "bad"),
        ((("greedy", "narrow"), ("t0.8", "equal")), "No difference", "flat"),
        ((("greedy", "gain"), ("t0.8", "gain")), "Turn it on", "good"),
    ],
)
def test_the_word_covers_no_sampling_of_which_nothing_is_known(
    parts: tuple[tuple[str, str], ...], word: str, tone: str
) -> None:
    made = told(*parts)
    assert (made.word, made.tone) == (word, tone)
    assert len(made.kept) == len(made.lines) == 2


def test_an_unstable_cell_is_called_best_only_where_no_stable_one_gains() -> None:
    loose, firm = cell("a", "gain", unstable=True), cell("b", "gain")
    found = advised(loose, firm)
    assert (found.best, found.unstable, found.gaining) == (firm, False, 2)
    alone = advised(loose, cell("b", "loss"))
    assert (alone.advice, alone.best, alone.unstable) == (ON, loose, True)
    sure = cell("a", "gain", unstable=True, confirmed=True)
    assert advised(sure, firm).best is sure


def test_what_unstable_waits_take_away_is_said_beside_the_advice() -> None:
    cells = tuple(cell(name, "gain", unstable=True) for name in ("a", "b"))
    for one in cells:
        vars(one).update(identity=None, mark=None, missing={}, summaries={}, baseline_summaries={})
    found = recommend(cells, {})
    (made,) = decisions(cast("Any", SimpleNamespace(recommendations=found)), Words("en"))
    assert made.notes == (
        "a · greedy: one of 2 that gain; their waits are unstable, so that which is best is not known",
        "a · greedy: unstable waits, with it or without; the interval holds that spread, and the advice rests on it",
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """A loser beside one that could still win, and a sampling of which nothing was measured."""
    gain = run_builder.full_blocks()[2]
    lost = run_builder.Spec(run_builder.DRAFT4, 0.08, 0.09, 4, 0.3, memory=171e6, claim=run_builder.MATCH)
    open_one = run_builder.Spec(run_builder.NGRAM, 0.026, 0.06, 4, 0.05, noise=0.4, claim=run_builder.MATCH)
    block = dataclasses.replace(gain, cells=(lost, open_one), attempts=1)
    path = run_builder.write_run(tmp_path_factory.mktemp("runs") / "mixed", (block,), run_builder.IDENTITIES)
    return report_of(path)


def test_off_waits_until_nothing_unsettled_could_still_win(mixed: Report) -> None:
    outcomes = {one.name("method"): one.wait.outcome for one in mixed.analysis.cells if one.wait is not None}
    assert outcomes == {"draft-k4": Outcome.HIGHER, "ngram": Outcome.NO_DIFFERENCE}
    (made,) = mixed.view.decisions
    assert made.word == "Cannot say"
    assert plain(made.lines[0]).startswith("greedy: with ngram no detectable difference")
    assert "draft-k4 · greedy: you wait longer with it" in made.notes


def test_the_answers_and_the_memory_stand_beside_the_decision(full: Report) -> None:
    card = next(one for one in full.view.decisions if one.where == "mlx-lm · tiny · short")
    best = full.analysis.by_id("mlx-lm/tiny/draft-k4/greedy/short")
    more = (best.summaries["peak_unified"].median - best.baseline_summaries["peak_unified"].median) / 1e6
    (kept,) = card.kept
    assert [plain(one.rich).replace(NBSP, " ") for one in kept] == [
        "same tokens in 12/12 answers", f"peak memory +{more:.1f} MB",
    ]  # fmt: skip
    assert 'class="says kept"' in full.html
    drawn = next(one for one in full.view.decisions if one.where == "llama.cpp · tiny · short")
    refused, noisy = drawn.lines
    assert plain(refused) == "greedy: not comparable: draft-k4; the reason stands at the cell"
    assert plain(noisy).startswith("t0.8: with draft-k4 no detectable difference")
    assert drawn.kept[0] == ()
    assert plain(drawn.kept[1][0].rich) == "same output: not tested"


def test_twins_are_not_counted_among_unstable_cells(tmp_path: Path) -> None:
    wild = dataclasses.replace(run_builder.full_blocks()[2].base, noise=0.3)
    block = dataclasses.replace(run_builder.full_blocks()[2], base=wild, attempts=1)
    path = run_builder.write_run(tmp_path / "wild", (block,), run_builder.IDENTITIES)
    found = report_of(path)
    loose = {one.id for one in found.analysis.cells if any(not flag.ranked for flag in one.flags)}
    assert "mlx-lm/tiny/none/greedy/short~twin" in loose
    (reason,) = [one for one in found.analysis.reasons if one.kind.value == "unstable"]
    assert set(reason.about) == {name for name in loose if not name.endswith("~twin")}

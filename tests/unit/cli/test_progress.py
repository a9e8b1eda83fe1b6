"""What the person watching sees, off a terminal: a line per session, with the time left by what is known."""

from __future__ import annotations

import io

from rich.console import Console

from orchestrator.cli.progress import ProgressView
from orchestrator.runner.events import BatchDone, CellGivenUp, RunStarted, SessionDone, TrialDone
from orchestrator.schema.status import Status
from orchestrator.store.durations import expected_s


def shown(*events, verbose=False):
    out = io.StringIO()
    with ProgressView(Console(file=out, width=200), verbose=verbose) as view:
        for event in events:
            view(event)
    return out.getvalue()


def test_sessions_are_counted_and_the_time_left_comes_from_the_same_engine():
    text = shown(
        RunStarted(("a/1", "a/2", "b/1"), 2),
        SessionDone("a/1", Status.OK, "", 2.0),
        SessionDone("a/2", Status.OK, "", 4.0),
        SessionDone("b/1", Status.FAILED, "it fell [over]", 1.0),
    )
    assert "3 cells to measure in 3 sessions, 2 cells cannot be measured here" in text
    assert "[1/3] a/1  2.00 s · about 4.00 s left" in text
    assert "[2/3] a/2  4.00 s · about 3.00 s left" in text
    assert "b/1: failed: it fell [over]" in text


def test_a_cell_given_up_leaves_the_queue():
    text = shown(
        RunStarted(("a/1", "a/1", "a/2"), 0),
        SessionDone("a/1", Status.FAILED, "x", 1.0),
        CellGivenUp("a/1", 1),
        SessionDone("a/2", Status.OK, "", 1.0),
    )
    assert "[2/2] a/2" in text


def test_verbose_shows_each_trial_with_the_engines_last_line():
    trial = TrialDone("a/1", 0, "warmup", Status.OK, 0.5, "I slot released")
    assert "I slot released" not in shown(trial)
    assert "warmup 0: 500 ms   I slot released" in shown(trial, verbose=True)


def test_expected_time_prefers_the_cell_then_its_engine_then_everything():
    spent = {"a/1": [1.0], "a/2": [3.0], "b/1": [10.0]}
    assert expected_s(["a/1", "a/3", "c/1"], spent) == 1.0 + 2.0 + 3.0


def test_a_checks_generations_are_counted_on_a_terminal_alone():
    batch = BatchDone("a/1~check", "off", 300, 2000, 30.0)
    assert shown(batch) == ""
    out = io.StringIO()
    with ProgressView(Console(file=out, width=200, force_terminal=True), verbose=False) as view:
        view(RunStarted((), 0))
        view(batch)
    assert "a/1~check · off: 300 of 2000 · about 2 min 50 s left" in out.getvalue()

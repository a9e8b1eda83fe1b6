"""What ``specmatrix selftest`` says and how it exits, by results made up here; the faults themselves need no engine."""

from __future__ import annotations

import copy
from types import SimpleNamespace

import pytest

from orchestrator.cli.selftest import run_selftest
from orchestrator.exactness.coverage import Fault, Gate
from orchestrator.schema.status import Status
from orchestrator.selftest import run as selftest_run
from orchestrator.selftest.proxy import AT, EVERY, FOREIGN, Corruption

CLEAN = selftest_run.Result(Fault.CONTROL, "greedy", (), (), ())
CAUGHT = selftest_run.Result(Fault.DUPLICATED, "greedy", (Gate.STREAM,), ("unparsed",), (Gate.STREAM,))
BLIND = selftest_run.Result(Fault.LENIENT, "t0.8", (), (), ())
MISSED = selftest_run.Result(Fault.STALLED, "greedy", (), (), (Gate.CLOCKS,))
WRONG_GATE = selftest_run.Result(Fault.STALLED, "greedy", (Gate.COUNTS,), ("x",), (Gate.CLOCKS,))
BROKEN = selftest_run.Result(Fault.DUPLICATED, "greedy", (), (), (Gate.STREAM,), "failed: the engine ended")
CRASHED = selftest_run.Result(Fault.CONTROL, "greedy", (), (), (), "failed: the engine ended")
DIRTY = selftest_run.Result(Fault.CONTROL, "greedy", (Gate.COUNTS,), ("x",), ())


@pytest.mark.parametrize(
    ("results", "code", "said"),
    [
        ((CLEAN, CAUGHT), 0, "caught"),
        ((CLEAN, BLIND), 0, "not caught at these settings"),
        ((CLEAN, MISSED), 1, "NOT CAUGHT"),
        ((CLEAN, WRONG_GATE), 1, "NOT CAUGHT as it must be"),
        ((DIRTY, CAUGHT), 1, "NOT CLEAN"),
        ((CLEAN, BROKEN), 1, "no gate: failed: the engine ended"),
        ((CRASHED, CAUGHT), 1, "BROKE OFF"),
    ],
)
def test_exit_status_and_words(results, code, said, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("COLUMNS", "200")
    asked = []
    monkeypatch.setattr(
        selftest_run, "selftest", lambda _folder, checks, _listen: asked.append(checks) or list(results)
    )
    assert run_selftest(tmp_path / "matrix.yaml", None) == code
    shown = capsys.readouterr().out
    assert said in shown
    assert "default checks: greedy identity" in shown
    assert (asked[0].greedy_identity, asked[0].cross_scoring) == (True, False)


@pytest.mark.parametrize(
    ("status", "gate"),
    [
        (Status.UNPARSED, Gate.STREAM),
        (Status.CONTAMINATED, Gate.CONTAMINATION),
        (Status.NOT_ENGAGED, Gate.ENGAGEMENT),
        (Status.FAILED, None),
        (Status.TIMEOUT, None),
        (Status.ABORTED, None),
    ],
)
def test_only_a_status_that_a_gate_gives_counts_as_caught(status, gate):
    cell = SimpleNamespace(sampling=SimpleNamespace(name="greedy"))
    state = SimpleNamespace(id="c", status=status, reason="why", trials=(), failed_trials=())
    judged = SimpleNamespace(placements={"c": SimpleNamespace(checks=())})
    found = selftest_run._result(Fault.DUPLICATED, cell, state, judged, frozenset({Gate.STREAM}))
    assert found.caught_by == ((gate,) if gate is not None else ())
    assert found.broke == ("" if gate is not None else f"{status.value}: why")
    assert found.good is (gate is Gate.STREAM)


def stream(fault: str, count: int = 30) -> list[dict]:
    """What a client sees of a stream of tokens 10, 11, 12, 10, …, and its closing event."""
    corruption = Corruption(fault)
    sent = []
    for number in range(count):
        data = {
            "tokens": [10 + number % 3],
            "content": "abc"[number % 3],
            "tokens_predicted": number + 1,
            "timings": {},
        }
        sent += copy.deepcopy(corruption.event(data))
    return sent + corruption.event({"stop": True, "tokens": [], "timings": {"draft_n_accepted": 5}})


def ids(fault: str) -> list[int]:
    return [token for data in stream(fault) for token in data["tokens"]]


def test_the_control_changes_nothing():
    assert stream("control") == stream("dropped_drafter")
    assert ids("control") == [10 + number % 3 for number in range(30)]
    assert stream("control")[-1]["timings"] == {"draft_n_accepted": 5}


def test_each_corruption_is_what_it_says():
    plain = ids("control")
    assert ids("duplicated") == [*plain[:AT], plain[AT - 1], *plain[AT:]]
    assert ids("injected") == [*plain[: AT - 1], FOREIGN, *plain[AT - 1 :]]
    counts = [data["tokens_predicted"] for data in stream("injected") if data["tokens"]]
    assert counts == list(range(1, 32))  # consistent, so that no count gives it away before the end
    lenient = ids("lenient")
    changed = [place for place, (one, other) in enumerate(zip(lenient, plain, strict=True)) if one != other]
    assert changed == list(range(EVERY - 1, 30, EVERY))
    assert stream("count_in_answer")[-1]["timings"] == {"draft_n_accepted": 6}

"""The order, the adaptive stop and the confirmed winner as a matrix file asks for them."""

from __future__ import annotations

from pathlib import Path

import pytest
from matrix_samples import changed, load, problems, text_of

from orchestrator.matrix.quantities import share
from orchestrator.matrix.types import Adaptive


def test_what_is_not_asked_for_is_off_except_the_confirmation_in_publish(tmp_path: Path) -> None:
    plain = load(tmp_path, changed("run/preset", "standard")).run
    assert (plain.adaptive, plain.confirm_winner, plain.most_sessions) == (None, False, 4)
    assert load(tmp_path, changed("run/preset", "publish")).run.confirm_winner is True
    assert load(tmp_path, changed("run", {"preset": "publish", "confirm_winner": False})).run.confirm_winner is False


@pytest.mark.parametrize("written", ["2%", "2 %", 0.02])
def test_the_precision_is_a_share(tmp_path: Path, written: object) -> None:
    run = load(tmp_path, changed("run/adaptive", {"half_width": written, "max_sessions": 12})).run
    assert run.adaptive == Adaptive(0.02, 12)
    assert (run.sessions, run.most_sessions) == (4, 12)
    assert load(tmp_path, changed("run/adaptive", {"max_sessions": 12})).run.adaptive == Adaptive(0.02, 12)


@pytest.mark.parametrize("bad", ["2", "0%", "100%", 0, 1, -0.1, True, "two %"])
def test_what_is_no_share_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match="share"):
        share(bad)


def test_a_blocked_order_brings_its_canary(tmp_path: Path) -> None:
    run = load(tmp_path, changed("run", {"preset": "demo", "order": "blocked_with_canary"})).run
    assert (run.order, run.twin) == ("blocked_with_canary", True)
    odd = load(tmp_path, changed("run", {"order": "blocked_with_canary", "sessions": 3})).run
    assert odd.sessions == 3


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        (
            {"order": "blocked_with_canary", "twin": False},
            "run.twin: in order blocked_with_canary the twin is the canary; take the key out, or choose another order",
        ),
        (
            {"order": "blocked_with_canary", "adaptive": {"max_sessions": 8}},
            "run.adaptive: order blocked_with_canary completes all sets at its end and cannot stop early; "
            "choose one of the two",
        ),
        (
            {"adaptive": {"max_sessions": 9}},
            "run.adaptive.max_sessions: order abba needs an even number of sessions, 9 is odd; change it",
        ),
        (
            {"preset": "publish", "adaptive": {"max_sessions": 6}},
            "run.adaptive.max_sessions: 6 is less than the 8 sessions that are measured in any case; write more",
        ),
        ({"adaptive": {"half_width": "2", "max_sessions": 8}}, "not a share"),
        ({"adaptive": {"max_sessions": 2}}, "run.adaptive.max_sessions"),
        ({"adaptive": {}}, "max_sessions"),
    ],
)
def test_designs_that_contradict_themselves_are_refused(tmp_path: Path, run: dict[str, object], fault: str) -> None:
    found = problems(tmp_path, text_of(changed("run", run)))
    assert len(found) == 1
    assert fault in found[0]

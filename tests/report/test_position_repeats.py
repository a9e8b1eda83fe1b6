"""Repeats of one greedy answer are no further evidence that acceptance changes with the draft position."""

from __future__ import annotations

import pytest

from orchestrator.report.analysis.acceptance import drafting_of
from orchestrator.report.analysis.measures import Arm
from orchestrator.schema.observation import observed
from orchestrator.schema.record import Phase, Place, TrialRecord
from orchestrator.schema.status import Status
from orchestrator.stats.acceptance import by_position, flatness

COUNTS = {"p1": ((40, 40), (32, 20)), "p2": ((30, 30), (24, 10)), "p3": ((50, 50), (40, 22))}
"""Drafted and accepted by position, by prompt."""


def trial(prompt: str, number: int, *, ids: tuple[int, ...] = (), text: str = "", seed: int = 7) -> TrialRecord:
    drafted, accepted = COUNTS[prompt]
    seen = (
        observed("drafted_tokens", sum(drafted), "engine"), observed("accepted_tokens", sum(accepted), "engine"),
        observed("drafted_by_position", drafted, "engine"), observed("accepted_by_position", accepted, "engine"),
    )  # fmt: skip
    place = Place("cell", "print", "block", 1, number, 0, 1)
    return TrialRecord(
        place, number, Phase.MEASURED, prompt, "prose", "en", seed, Status.OK, "", seen, ids, text, "eos", (), (), "utc"
    )


def flat_p(trials: list[TrialRecord], *, greedy: bool) -> float | None:
    found = drafting_of(Arm((), tuple(trials)), greedy=greedy)
    assert found is not None
    # What is shown counts every trial.
    assert found.positions == by_position([COUNTS[one.prompt_id] for one in trials])
    return found.flat_p


ONCE, TWICE = (flatness(by_position(list(COUNTS.values()) * times)) for times in (1, 2))


@pytest.mark.parametrize("told", ["ids", "text"])
def test_greedy_repeats_count_once_by_token_ids_or_by_text(told: str) -> None:
    answers = {"ids": {"ids": (5, 6, 7)}, "text": {"text": "a river"}}[told]
    trials = [trial(prompt, n, seed=n, **answers) for n in range(4) for prompt in COUNTS]  # type: ignore[arg-type]
    assert ONCE is not None
    assert flat_p(trials, greedy=True) == pytest.approx(ONCE)
    every = flatness(by_position([COUNTS[one.prompt_id] for one in trials]))
    assert every is not None
    assert ONCE > 1e-6
    assert every < 1e-15


def test_greedy_answers_that_differ_count_each() -> None:
    trials = [trial(prompt, n, ids=(5, n)) for n in range(2) for prompt in COUNTS]
    assert flat_p(trials, greedy=True) == pytest.approx(TWICE)


def test_sampled_answers_are_copies_only_with_one_seed() -> None:
    trials = [trial(prompt, n, ids=(5,), seed=n % 2) for n in range(4) for prompt in COUNTS]
    assert flat_p(trials, greedy=False) == pytest.approx(TWICE)

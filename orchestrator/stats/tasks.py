"""Right and wrong answers with speculation against without it: exact, paired by prompt, with what n can tell."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache

from scipy.optimize import brentq
from scipy.stats import beta, binom, binomtest

from orchestrator.stats.flips import sign_flips

ALPHA = 0.05
POWER = 0.9
MCNEMAR, SIGN_FLIP = "McNemar", "sign flip"


class State(Enum):
    """What a grader said of one answer."""

    RIGHT = "right"
    WRONG = "wrong"
    SO_FAR = "so far"
    """Right as far as it goes, and cut at the output limit."""
    UNTOLD = "untold"
    """It could not be judged."""


@dataclass(frozen=True, slots=True)
class PairedTruth:
    """One yes-or-no property of the answers to the same prompts, on against off.

    The unit is the prompt, not the trial: the trials of one prompt are alike. Greedy, a prompt is in the state that
    most of its trials are in. Drawn, its rate is the share of its trials that are right, and a difference of rates is
    a difference however small. An answer that is right as far as it goes is not wrong: beside a wrong one it counts as
    right, beside another it leaves the pair undetermined.

    Args:
        n: prompts judged in both arms, those right so far among them.
        on: of them, those with the property with speculation; ``off`` without. Drawn, the sum of the rates.
        open_on: of them, those right as far as they go, likewise; the share that is right lies between
            ``on`` ÷ ``n`` and (``on`` + ``open_on``) ÷ ``n``.
        lost: those that have it less on than off; ``gained`` the other way round.
        undetermined: prompts of which neither can be said: cut before an answer was wrong, or not judged. Those that
            could not be judged are not in ``n``.
        mixed: prompts whose trials within an arm do not agree.
        trials_on: trials with speculation that were graded, ``trials_off`` without.
        p_value: two-sided; 1 where no prompt differs.
        test: what it is of: :data:`MCNEMAR` or :data:`SIGN_FLIP`.
        losable: prompts of which the baseline's answer is right, or right so far: what could have been lost.
        detectable: the smallest loss, as a share of ``losable``, that this sample could have shown at 5 % with 90 %
            power if nothing were gained; ``None`` where no loss could be.
        net_loss_limit: upper 95 % limit of lost less gained, as a share of prompts; ``None`` without prompts.
    """

    n: int
    on: float
    off: float
    open_on: float
    open_off: float
    lost: int
    gained: int
    undetermined: int
    mixed: int
    trials_on: int
    trials_off: int
    p_value: float
    test: str
    losable: int
    detectable: float | None
    net_loss_limit: float | None

    @property
    def greedy(self) -> bool:
        """Whether prompts count whole."""
        return self.test == MCNEMAR


@dataclass(frozen=True, slots=True)
class _Side:
    """One arm's answers to one prompt: shares of its trials."""

    right: float
    so_far: float

    @property
    def not_wrong(self) -> float:
        return self.right + self.so_far


def paired_truth(
    on: Iterable[tuple[str, State]], off: Iterable[tuple[str, State]], *, greedy: bool, alpha: float = ALPHA
) -> PairedTruth | None:
    """Compares the arms over the prompts that both were graded on; ``None`` where there is none.

    Args:
        on: (prompt id, state of its answer) of each graded trial with speculation.
        off: likewise without, from the same block attempt.
        greedy: whether sampling is.
        alpha: of the test that ``detectable`` is about.

    Source: McNemar (1947), in its exact form: of the prompts that differ, each way is as likely as the other. Fisher
    (1935), sign flips of paired differences: without an effect the arms of each prompt could be exchanged.
    """
    mine, theirs = _by_prompt(on), _by_prompt(off)
    both = sorted(mine.keys() & theirs.keys())
    if not both:
        return None
    sides = [(_side(mine[prompt], greedy=greedy), _side(theirs[prompt], greedy=greedy)) for prompt in both]
    pairs = [(here, there) for here, there in sides if here is not None and there is not None]
    n = len(pairs)
    differences = [here.not_wrong - there.not_wrong for here, there in pairs]
    lost, gained = sum(one < 0 for one in differences), sum(one > 0 for one in differences)
    untold = sum((here.so_far > 0 or there.so_far > 0) and here.not_wrong == there.not_wrong for here, there in pairs)
    losable = sum(2 * there.not_wrong > 1 for _, there in pairs)
    return PairedTruth(
        n,
        sum(here.right for here, _ in pairs),
        sum(there.right for _, there in pairs),
        sum(here.so_far for here, _ in pairs),
        sum(there.so_far for _, there in pairs),
        lost,
        gained,
        untold + len(both) - n,
        sum(1 for prompt in both if len(set(mine[prompt])) > 1 or len(set(theirs[prompt])) > 1),
        sum(len(mine[prompt]) for prompt in both),
        sum(len(theirs[prompt]) for prompt in both),
        mcnemar(lost, gained) if greedy else sign_flips(differences),
        MCNEMAR if greedy else SIGN_FLIP,
        losable,
        detectable(losable, alpha),
        net_loss_limit(lost, gained, n, whole=greedy) if n else None,
    )


def mcnemar(lost: int, gained: int) -> float:
    """The exact two-sided p of McNemar's test; 1 where nothing differs.

    Raises:
        ValueError: a negative count.
    """
    if lost < 0 or gained < 0:
        raise ValueError(f"no test of {lost=} and {gained=}")
    if lost + gained == 0:
        return 1.0
    return float(binomtest(lost, lost + gained, 0.5).pvalue)


@lru_cache(maxsize=256)
def detectable(losable: int, alpha: float = ALPHA, power: float = POWER) -> float | None:
    """The smallest share of right answers lost, none gained, that so many of them could have shown.

    Only what the baseline gets right can be lost, so it is these prompts that count and not all.

    Returns:
        ``None`` where even all of them lost would not be significant: fewer than six at 5 %.
    """
    needed = 1
    while 2 * 0.5**needed > alpha:
        needed += 1
    if losable < needed:
        return None

    def missed(share: float) -> float:
        return float(binom.sf(needed - 1, losable, share)) - power

    return float(brentq(missed, 0.0, 1.0, xtol=1e-9))


def net_loss_limit(lost: int, gained: int, n: int, *, whole: bool, level: float = 0.95) -> float:
    """An upper limit of the share of prompts lost less the share gained, at least at ``level`` whatever they are.

    Clopper–Pearson, exact: the upper limit of the lost less the lower limit of the gained, each at half of what is
    left of the level. Where prompts do not count ``whole``, a prompt that gained may have gained little, so the limit
    is that of the lost alone: no prompt loses more than itself.

    Raises:
        ValueError: counts that are none, or more than ``n``.
    """
    if min(lost, gained) < 0 or lost + gained > n or n < 1:
        raise ValueError(f"no limit of {lost=} and {gained=} of {n=}")
    each = (1 - level) / 2 if whole else 1 - level
    upper = 1.0 if lost == n else float(beta.ppf(1 - each, lost + 1, n - lost))
    lower = float(beta.ppf(each, gained, n - gained + 1)) if whole and gained else 0.0
    return upper - lower


def _by_prompt(rows: Iterable[tuple[str, State]]) -> Mapping[str, list[State]]:
    found: dict[str, list[State]] = defaultdict(list)
    for prompt, value in rows:
        found[prompt].append(value)
    return found


def _side(states: Sequence[State], *, greedy: bool) -> _Side | None:
    """One arm's answers to a prompt; ``None`` where they, or most of them, could not be judged."""
    if not greedy:
        told = [one for one in states if one is not State.UNTOLD]
        if not told:
            return None
        return _Side(told.count(State.RIGHT) / len(told), told.count(State.SO_FAR) / len(told))
    most = len(states) / 2
    right, so_far, untold = (states.count(one) for one in (State.RIGHT, State.SO_FAR, State.UNTOLD))
    if right > most:
        return _Side(1.0, 0.0)
    if right + so_far > most:
        return _Side(0.0, 1.0)
    return None if right + so_far + untold > most and untold else _Side(0.0, 0.0)

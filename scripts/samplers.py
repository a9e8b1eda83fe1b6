"""Simulated samplers whose exactness is known by construction: what the distribution check is tried on.

A target and a draft over twelve tokens, each a table of next-token probabilities given the last token. A *round* is
what one verify pass commits: the exact rules (rejection, sample match) and the faults that engines have had.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

import numpy as np

from orchestrator.exactness.checking import TOKENS, Outcome, judge_check
from orchestrator.exactness.distribution import Preset
from orchestrator.exactness.draft_directed import draft_directed, draft_directed_z
from orchestrator.exactness.prefix_tree import MIN_PER_ARM
from orchestrator.schema.judged import Judged
from orchestrator.schema.record import CheckArm, CheckPlanRecord, CheckRecord
from orchestrator.schema.result import CheckResult, Verdict
from orchestrator.schema.status import Status
from orchestrator.store.check_states import CheckState

VOCABULARY, LENGTH, DRAFTED = 12, TOKENS, 3
RNG = np.random.default_rng(2)
TARGET_LOGITS = RNG.normal(0, 2.2, (VOCABULARY, VOCABULARY))
DRAFT_LOGITS = TARGET_LOGITS + RNG.normal(0, 0.9, (VOCABULARY, VOCABULARY))


def softmax(logits: np.ndarray, temperature: float = 1.0) -> np.ndarray:
    """Probabilities by row."""
    scaled = np.exp(logits / temperature - (logits / temperature).max(axis=1, keepdims=True))
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


TARGET, DRAFT = softmax(TARGET_LOGITS), softmax(DRAFT_LOGITS)
TARGET_BEST, DRAFT_BEST = TARGET.argmax(axis=1), DRAFT.argmax(axis=1)


class Coin:
    """Uniform numbers drawn in bulk; ``pick`` is inverse-transform sampling, so that one number gives one token."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.stock: Iterator[float] = iter(())

    def __call__(self) -> float:
        """The next number."""
        for value in self.stock:
            return value
        self.stock = iter(self.generator.random(4096).tolist())
        return next(self.stock)

    def pick(self, cumulative: list[float]) -> int:
        """A token by its cumulative probabilities."""
        return find(cumulative, self())


def find(cumulative: list[float], u: float) -> int:
    """The token at which the cumulative probabilities pass ``u``."""
    return min(bisect_right(cumulative, u * cumulative[-1]), VOCABULARY - 1)


@cache
def rows(temperature: float = 1.0) -> list[list[float]]:
    """The target's cumulative probabilities by last token."""
    return [list(map(float, row)) for row in softmax(TARGET_LOGITS, temperature).cumsum(axis=1)]


DRAFT_ROWS = [list(map(float, row)) for row in DRAFT.cumsum(axis=1)]
RESIDUAL_ROWS = [list(map(float, row)) for row in np.maximum(TARGET - DRAFT, 0).cumsum(axis=1)]

Round = Callable[[int, Coin], list[int]]
"""One verify round: the tokens it commits after the given last token."""


def plain(temperature: float = 1.0) -> Round:
    """No speculation."""
    table = rows(temperature)
    return lambda last, coin: [coin.pick(table[last])]


def rejection(last: int, coin: Coin) -> list[int]:
    """Accept with min(1, p/q), else draw from the residual: exact (Leviathan et al. 2023)."""
    out: list[int] = []
    for _ in range(DRAFTED):
        token = coin.pick(DRAFT_ROWS[last])
        if coin() >= TARGET[last, token] / DRAFT[last, token]:
            return [*out, coin.pick(RESIDUAL_ROWS[last])]
        out.append(token)
        last = token
    return [*out, coin.pick(rows()[last])]


def missing_residual(last: int, coin: Coin) -> list[int]:
    """The same, but a refused token is drawn anew from the target instead of the residual."""
    out: list[int] = []
    for _ in range(DRAFTED):
        token = coin.pick(DRAFT_ROWS[last])
        if coin() >= TARGET[last, token] / DRAFT[last, token]:
            return [*out, coin.pick(rows()[last])]
        out.append(token)
        last = token
    return [*out, coin.pick(rows()[last])]


def sample_match(last: int, coin: Coin, temperature: float = 1.0) -> list[int]:
    """Emit the target's own sample and keep the draft while it is equal: exact."""
    out: list[int] = []
    for _ in range(DRAFTED):
        guess, token = int(DRAFT_BEST[last]), coin.pick(rows(temperature)[last])
        out.append(token)
        if token != guess:
            return out
        last = token
    return [*out, coin.pick(rows(temperature)[last])]


def temperature_slip(last: int, coin: Coin) -> list[int]:
    """Verification samples at 0.8 of the temperature that was asked for."""
    return sample_match(last, coin, 0.8)


def greedy_accept(last: int, coin: Coin) -> list[int]:
    """A greedy draft is accepted wherever it is the target's best token, whatever the temperature."""
    out: list[int] = []
    for _ in range(DRAFTED):
        guess = int(DRAFT_BEST[last])
        if guess != TARGET_BEST[last]:
            return [*out, coin.pick(rows()[last])]
        out.append(guess)
        last = guess
    return [*out, coin.pick(rows()[last])]


def typical_acceptance(last: int, coin: Coin) -> list[int]:
    """A draft is accepted when the target finds it likely enough for its entropy."""
    out: list[int] = []
    for _ in range(DRAFTED):
        guess = int(DRAFT_BEST[last])
        entropy = float(-(TARGET[last] * np.log(TARGET[last])).sum())
        if TARGET[last, guess] <= min(0.3, 0.6 * np.exp(-entropy)):
            return [*out, coin.pick(rows()[last])]
        out.append(guess)
        last = guess
    return [*out, coin.pick(rows()[last])]


def shared_coin(last: int, coin: Coin) -> list[int]:
    """One uniform number for the whole round: each token has the right marginal, and the next depends on it."""
    out: list[int] = []
    u = coin()
    for _ in range(DRAFTED):
        guess, token = coin.pick(DRAFT_ROWS[last]), find(rows()[last], u)
        out.append(token)
        if token != guess:
            return out
        last = token
    return [*out, find(rows()[last], u)]


def injected_token(last: int, coin: Coin) -> list[int]:
    """Every twentieth round begins with a token that nobody drew."""
    out = sample_match(last, coin)
    return [0, *out] if coin() < 0.05 else out


@dataclass(frozen=True, slots=True)
class Simulated:
    """A sampler with what is known of it; ``stale``: a refused draft stays in the cache and is read on."""

    title: str
    rule: Round
    exact: bool
    stale: bool = False

    @property
    def verdict(self) -> Verdict:
        """What the check must say of it."""
        return Verdict.PASS if self.exact else Verdict.FAIL


SIMULATED: tuple[Simulated, ...] = (
    Simulated("exact rejection", rejection, exact=True),
    Simulated("sample match", sample_match, exact=True),
    Simulated("missing residual", missing_residual, exact=False),
    Simulated("typical acceptance", typical_acceptance, exact=False),
    Simulated("greedy accept", greedy_accept, exact=False),
    Simulated("shared coin", shared_coin, exact=False),
    Simulated("temperature slip (× 0.8)", temperature_slip, exact=False),
    Simulated("injected token (1 round in 20)", injected_token, exact=False),
    Simulated("cache not rolled back", sample_match, exact=False, stale=True),
)


def generate(
    one_round: Round, prompt: int, count: int, seed: int, *, stale: bool = False
) -> tuple[tuple[int, ...], ...]:
    """``count`` sequences; the first token comes from prefill. ``stale``: a rejected draft stays in the cache."""
    return tuple(sequence for sequence, _ in sequences(one_round, prompt, count, seed, stale=stale))


def sequences(
    one_round: Round, prompt: int, count: int, seed: int, *, stale: bool
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Each sequence with its judged places: those for which a round drafted a token and got as far."""
    coin, table = Coin(seed), rows()
    for _ in range(count):
        out = [coin.pick(table[prompt])]
        last, places = out[0], []
        while len(out) < LENGTH:
            committed = one_round(last, coin)
            places += range(len(out), min(len(out) + min(len(committed), DRAFTED), LENGTH))
            out += committed
            last = committed[-1]
            if stale and len(committed) <= DRAFTED:
                last = int(DRAFT_BEST[out[-2]])
        yield tuple(out[:LENGTH]), places


EXPECTED = (TARGET * DRAFT).sum(axis=1)
VARIANCE = (TARGET * DRAFT**2).sum(axis=1) - EXPECTED**2
FAVOURITE = DRAFT.max(axis=1)


def directed_z(one_round: Round, preset: Preset, seed: int = 1, *, stale: bool = False) -> tuple[float, CheckResult]:
    """The draft-directed z of the same generations as :func:`check` has of arm ``on``, and what is said of it."""
    found = []
    for prompt in range(preset.contexts):
        for tokens, places in sequences(one_round, prompt, preset.per_arm, 100 * seed + prompt, stale=stale):
            for place in places:
                last, own = tokens[place - 1], tokens[place]
                row = (DRAFT[last, own], EXPECTED[last], VARIANCE[last], FAVOURITE[last])
                found.append(Judged(*map(float, row)))
    return draft_directed_z(found) or 0.0, draft_directed(found)


def check(one_round: Round, preset: Preset, seed: int = 1, *, stale: bool = False) -> Outcome:
    """The distribution check of a sampler against the plain target, judged as the records of an engine are.

    No rule is claimed, so that no seed-coupled generations are asked for.
    """
    return judge_check(state_of(one_round, preset, seed, stale=stale), None)


def state_of(one_round: Round, preset: Preset, seed: int = 1, *, stale: bool = False) -> CheckState:
    """The check's records: every arm whole, one batch after each context, the first token from prefill."""
    arms: dict[CheckArm, dict[str, tuple[CheckRecord, ...]]] = {arm: {} for arm in ARMS}
    for prompt in range(preset.contexts):
        on = generate(one_round, prompt, preset.per_arm, 100 * seed + prompt, stale=stale)
        for arm, tokens in zip(ARMS, (on, *off_arms(prompt, preset, seed)), strict=True):
            arms[arm][f"prompt {prompt}"] = (_batch(arm, f"prompt {prompt}", tokens),)
    contexts = {name: name for name in arms[CheckArm.ON]}
    plan = CheckPlanRecord("", "", 1, "screen", contexts, preset.per_arm, TOKENS, {}, "")
    return CheckState("", "", "", "", "screen", "", "", Status.OK, "", "", 1, plan, arms, ())


ARMS = (CheckArm.ON, CheckArm.OFF, CheckArm.OFF_AGAIN, CheckArm.CONTROL)


def _batch(arm: CheckArm, context: str, tokens: tuple[tuple[int, ...], ...]) -> CheckRecord:
    return CheckRecord("", "", "", 1, arm, context, 0, (), tokens, 1.0, 1, 0, DRAFTED, "", "", "")


def true_distances(one: Simulated, preset: Preset, count: int = 100_000) -> tuple[float, float]:
    """How far the sampler is from the target: total variation of the next token, root mean square over tokens.

    First after each prefix that :data:`MIN_PER_ARM` of a check's generations share in the mean, which is what a stated
    power is about; then at all compared places by place and last token. From ``count`` sequences a context, whose
    chance adds about 0.01 where there is no difference.
    """
    shared, every = _Mean(), _Mean()
    for prompt in range(preset.contexts):
        nexts: dict[tuple[int, ...], Counter[int]] = {}
        for tokens in generate(one.rule, prompt, count, 7 + prompt, stale=one.stale):
            for place in range(1, len(tokens)):
                nexts.setdefault(tokens[:place], Counter())[tokens[place]] += 1
        by_last: dict[tuple[int, int], Counter[int]] = {}
        for prefix, found in nexts.items():
            by_last.setdefault((len(prefix), prefix[-1]), Counter()).update(found)
            share = float(np.prod([TARGET[a, b] for a, b in pairwise((prompt, *prefix))]))
            if min(share, found.total() / count) * preset.per_arm >= MIN_PER_ARM:
                shared.add(prefix[-1], found)
        for (_, last), found in by_last.items():
            every.add(last, found)
    return shared.root, every.root


class _Mean:
    """A mean of squared distances, each as often as its place was reached."""

    def __init__(self) -> None:
        self.squares = self.weight = 0.0

    def add(self, last: int, found: Counter[int]) -> None:
        told = np.asarray([found[token] for token in range(VOCABULARY)]) / found.total()
        self.squares += found.total() * float(np.abs(told - TARGET[last]).sum() / 2) ** 2
        self.weight += found.total()

    @property
    def root(self) -> float:
        return float(np.sqrt(self.squares / self.weight))


@cache
def off_arms(prompt: int, preset: Preset, seed: int) -> tuple[tuple[tuple[int, ...], ...], ...]:
    """Off, off again and the negative control of one context."""
    factors = (1.0, 1.0, preset.control_factor)
    return tuple(
        generate(plain(factor), prompt, preset.per_arm, 100 * seed + 10 * (arm + 1) + prompt)
        for arm, factor in enumerate(factors)
    )

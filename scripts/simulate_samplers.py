"""Writes the table of simulated samplers into docs/methodology.md, between its two markers.

    python -m scripts.simulate_samplers            every column, a few minutes on one core
    python -m scripts.simulate_samplers --check    the columns of seeds 1 and 2 alone, against the page

Seeds are fixed, so that every figure is one number.
"""

from __future__ import annotations

import sys
from collections import Counter
from functools import cache
from pathlib import Path

from orchestrator.exactness.checking import Outcome
from orchestrator.exactness.distribution import CERTIFY, SCREEN
from orchestrator.schema.result import Verdict
from scripts.samplers import SIMULATED, Simulated, check, directed_z, plain, true_distances

PAGE = Path(__file__).resolve().parent.parent / "docs" / "methodology.md"
BEGIN, END = (
    "<!-- simulated samplers: begin, written by scripts/simulate_samplers.py -->",
    "<!-- simulated samplers: end -->",
)
SCREEN_SEEDS, CERTIFY_SEEDS, CHECKED_SEEDS = range(1, 21), range(1, 4), (1, 2)
HEAD = ("sampler", "exact", "true TV, shared / all", "p, seed 1", "p, seed 2", "would see", "z, seed 1", "z, seed 2",
        f"`screen`, {len(SCREEN_SEEDS)} seeds", f"`certify`, {len(CERTIFY_SEEDS)} seeds")  # fmt: skip


def checked_cells(one: Simulated) -> tuple[str, ...]:
    """The cells of a row that a test makes anew: p and z at ``screen`` size by checked seed, and the distance seen."""
    found = [check(one.rule, SCREEN, seed, stale=one.stale) for seed in CHECKED_SEEDS]
    seen = would_see()
    directed = (directed_z(one.rule, SCREEN, seed, stale=one.stale) for seed in CHECKED_SEEDS)
    return (
        *(_p(result) for result in found),
        f"{seen:.2f}" if seen is not None else "-",
        *(f"{z:.1f} {result.verdict.value}" for z, result in directed),
    )


@cache
def would_see() -> float | None:
    """The distance that a check of ``screen`` size sees with 90 % power: of one that no look ended early."""
    detail = check(plain(), SCREEN).detail
    return detail.detectable if detail is not None else None


def _p(outcome: Outcome) -> str:
    """The p of the look that decided."""
    p = outcome.looks[-1][1] if outcome.looks else None
    shown = "< 1e-9" if p is not None and p < 1e-9 else f"{p:.2g}" if p is not None else "-"
    return f"{shown} {_verdict(outcome).value}"


def _verdict(outcome: Outcome) -> Verdict:
    return outcome.results[0].verdict


def _tally(one: Simulated, verdicts: list[Verdict]) -> str:
    counts = Counter(verdicts)
    words = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    return ", ".join(words) + ("" if set(counts) == {one.verdict} else " *")


def row(one: Simulated) -> str:
    """One line of the table; a star marks a sampler that was not judged rightly with every seed."""
    screen = [_verdict(check(one.rule, SCREEN, seed, stale=one.stale)) for seed in SCREEN_SEEDS]
    certify = [_verdict(check(one.rule, CERTIFY, seed, stale=one.stale)) for seed in CERTIFY_SEEDS]
    return _line(
        (
            one.title,
            "yes" if one.exact else "no",
            distances(one),
            *checked_cells(one),
            _tally(one, screen),
            _tally(one, certify),
        )
    )


def distances(one: Simulated) -> str:
    """The sampler's true distance after shared prefixes, and at all compared places."""
    return "0" if one.exact else " / ".join(f"{found:.2f}" for found in true_distances(one, SCREEN))


def _line(cells: tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def table() -> str:
    """The whole table."""
    lines = [_line(HEAD), _line(tuple("---" for _ in HEAD)), *(row(one) for one in SIMULATED)]
    return "\n".join(lines)


def shown_cells(text: str) -> dict[str, tuple[str, ...]]:
    """The checked cells of each sampler as the page has them."""
    inside = text.split(BEGIN)[1].split(END, maxsplit=1)[0]
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in inside.strip().splitlines()[2:]]
    return {cells[0]: tuple(cells[3 : 3 + 2 * len(CHECKED_SEEDS) + 1]) for cells in rows}


def main() -> int:
    """Writes the table, or says which rows differ."""
    text = PAGE.read_text(encoding="utf-8")
    if "--check" in sys.argv[1:]:
        page = shown_cells(text)
        stale = [one.title for one in SIMULATED if page.get(one.title) != checked_cells(one)]
        print("the table of simulated samplers is fresh" if not stale else f"differs: {', '.join(stale)}")
        return 1 if stale else 0
    made = table()
    before, rest = PAGE.read_text(encoding="utf-8").split(BEGIN)  # anew: the page may have changed meanwhile
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

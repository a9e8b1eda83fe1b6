"""Writes the table of simulated samplers into docs/methodology.md, between its two markers.

    python -m scripts.simulate_samplers            every column, a few minutes on one core
    python -m scripts.simulate_samplers --check    the columns of seeds 1 and 2 alone, against the page

Seeds are fixed, so that every figure is one number.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from orchestrator.exactness.distribution import CERTIFY, SCREEN, DistributionResult, smallest_holm_p
from orchestrator.schema.result import Verdict
from scripts.samplers import SIMULATED, Simulated, check, directed_z

PAGE = Path(__file__).resolve().parent.parent / "docs" / "methodology.md"
BEGIN, END = (
    "<!-- simulated samplers: begin, written by scripts/simulate_samplers.py -->",
    "<!-- simulated samplers: end -->",
)
SCREEN_SEEDS, CERTIFY_SEEDS, CHECKED_SEEDS = range(1, 21), range(1, 4), (1, 2)
HEAD = ("sampler", "exact", "p, seed 1", "p, seed 2", "would see", "z, seed 1", "z, seed 2",
        f"`screen`, {len(SCREEN_SEEDS)} seeds", f"`certify`, {len(CERTIFY_SEEDS)} seeds")  # fmt: skip


def checked_cells(one: Simulated) -> tuple[str, ...]:
    """The cells of a row that a test makes anew: p and z at ``screen`` size by checked seed, and the distance seen."""
    found = [check(one.rule, SCREEN, seed, stale=one.stale) for seed in CHECKED_SEEDS]
    seen = found[0].detectable
    directed = (directed_z(one.rule, SCREEN, seed, stale=one.stale) for seed in CHECKED_SEEDS)
    return (
        *(_p(result) for result in found),
        f"{seen:.2f}" if seen is not None else "-",
        *(f"{z:.1f} {result.verdict.value}" for z, result in directed),
    )


def _p(result: DistributionResult) -> str:
    p = smallest_holm_p(result.on)
    shown = "< 1e-9" if p is not None and p < 1e-9 else f"{p:.2g}" if p is not None else "-"
    return f"{shown} {result.check.verdict.value}"


def _tally(one: Simulated, verdicts: list[Verdict]) -> str:
    counts = Counter(verdicts)
    words = [f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict]]
    return ", ".join(words) + ("" if set(counts) == {one.verdict} else " *")


def row(one: Simulated) -> str:
    """One line of the table; a star marks a sampler that was not judged rightly with every seed."""
    screen = [check(one.rule, SCREEN, seed, stale=one.stale).check.verdict for seed in SCREEN_SEEDS]
    certify = [check(one.rule, CERTIFY, seed, stale=one.stale).check.verdict for seed in CERTIFY_SEEDS]
    exact = "yes" if one.exact else "no"
    return _line((one.title, exact, *checked_cells(one), _tally(one, screen), _tally(one, certify)))


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
    return {cells[0]: tuple(cells[2 : 2 + 2 * len(CHECKED_SEEDS) + 1]) for cells in rows}


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

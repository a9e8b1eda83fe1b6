"""The tables of the simulated designs in docs/methodology.md are what the code says, and say what the method claims."""

from __future__ import annotations

from scripts.simulate_designs import BEGIN, END, PAGE, tables

SHOWN = PAGE.read_text(encoding="utf-8").split(BEGIN)[1].split(END, maxsplit=1)[0].strip("\n")
ROWS = {
    cells[0]: [float(cell.removesuffix("%")) for cell in cells[1:]]
    for line in SHOWN.splitlines()
    if "%" in line and line.startswith("| ")
    for cells in [[cell.strip() for cell in line.strip("| ").split("|")]]
}


def test_the_page_is_what_the_code_says() -> None:
    assert tables() == SHOWN


def test_the_orders_of_the_program_keep_the_level_under_drift_and_the_others_do_not() -> None:
    # 2 000 runs: three standard deviations around 5 % are 1.5 points.
    assert all(rate <= 6.5 for rate in (*ROWS["`abba`, the default"], *ROWS["`random`"]))
    assert min(ROWS["blocked: all sessions of one arm, then the other"]) > 70
    assert min(ROWS["ABAB: the baseline always first"]) > 6.5


def test_the_interval_that_decides_covers_as_often_as_it_says_and_the_bootstrap_does_not() -> None:
    # 1 000 runs: three standard deviations around 95 % are 2.1 points.
    assert all(92.9 <= rate <= 97.1 for rate in ROWS["Student's t over sessions, which decides"])
    assert all(rate < 92.9 for rate in ROWS["hierarchical bootstrap, shown beside it"])

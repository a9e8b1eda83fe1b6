"""The table of simulated samplers in docs/methodology.md is what the code says, to the last digit shown."""

from __future__ import annotations

import pytest

from scripts.samplers import SIMULATED, Simulated
from scripts.simulate_samplers import PAGE, checked_cells, shown_cells

SHOWN = shown_cells(PAGE.read_text(encoding="utf-8"))


def test_the_page_lists_every_simulated_sampler_and_no_other():
    assert list(SHOWN) == [one.title for one in SIMULATED]


@pytest.mark.parametrize("one", SIMULATED, ids=lambda one: one.title)
def test_the_columns_of_seeds_1_and_2_are_made_anew_and_equal(one: Simulated):
    assert checked_cells(one) == SHOWN[one.title]

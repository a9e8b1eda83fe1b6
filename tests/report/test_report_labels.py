"""Names beside the points of a scatter: they cross nothing, or they are left out and counted."""

from __future__ import annotations

import itertools
import random
import re

from orchestrator.report.figures import scatter_plot
from orchestrator.report.figures.labels import MARK, Box, Spot, arrange, width

FRAME = Box(0, 0, 320, 230)


def crowd(number: int, seed: int = 5) -> list[Spot]:
    dice = random.Random(seed)
    spots = []
    for index in range(number):
        x, y = dice.uniform(5, 315), dice.uniform(5, 225)
        spots.append(Spot(f"engine · draft-k{index} · greedy", x, y, y - 12, y + 9))
    return spots


def test_no_name_crosses_a_name_a_mark_a_stroke_or_the_frame() -> None:
    for number in (2, 9, 30, 80):
        spots = crowd(number)
        places = arrange(spots, FRAME)
        placed = [place for place in places if place is not None]
        assert len(placed) >= 1
        assert not any(one.meets(other) for one, other in itertools.combinations(placed, 2))
        for place in placed:
            assert place.within(FRAME)
            for spot in spots:
                assert not place.meets(Box(spot.x - MARK, spot.y - MARK, spot.x + MARK, spot.y + MARK))
                assert not place.meets(Box(spot.x - 1, spot.low or 0, spot.x + 1, spot.high or 0))
        assert arrange(spots, FRAME) == places


def test_a_name_without_room_is_left_out_and_not_squeezed_in() -> None:
    wide = Spot("x" * 80, 160, 100)
    assert width(wide.name) > FRAME.right
    assert arrange([wide, Spot("short", 20, 20)], FRAME)[0] is None
    assert arrange([wide, Spot("short", 20, 20)], FRAME)[1] is not None
    same = [Spot("a name of its own", 160, 100)] * 40
    assert 0 < sum(place is not None for place in arrange(same, FRAME)) < 20


def test_wide_letters_are_counted_wide() -> None:
    assert width("가나다") > width("abc") * 1.5


def test_the_figure_tells_how_many_points_have_no_name() -> None:
    few = [
        scatter_plot.ScatterPoint("one", 0.6, 0.8, 0.7, 0.9, 0),
        scatter_plot.ScatterPoint("two", 0.2, 1.1, None, None, 1),
    ]
    drawn, bare = scatter_plot.scatter(few)
    assert bare == 0
    assert {"one", "two"} <= set(re.findall(r">([a-z]+)</text>", drawn))
    many = [scatter_plot.ScatterPoint(f"method-{n}", 0.5 + n / 1000, 0.8 + n / 1000, None, None, 0) for n in range(40)]
    drawn, bare = scatter_plot.scatter(many)
    assert bare == 40 - len(re.findall(r">method-\d+</text>", drawn))
    assert bare > 20

"""Finds room for names beside points: what crosses nothing is placed, what would cross something is left out."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SIZE = 10.0
"""Height of the type, in points."""
NARROW, WIDE = 0.55, 1.0
"""Width of a character ÷ height of the type, rather too much than too little: the reader's own font draws it."""
MARK = 5.0
"""Half the side of the square that a mark takes."""
GAP = 3.0


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle in points."""

    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: Box) -> bool:
        """Whether the two share any area."""
        return (
            self.left < other.right and other.left < self.right and self.top < other.bottom and other.top < self.bottom
        )

    def within(self, other: Box) -> bool:
        """Whether it lies wholly inside the other."""
        return (
            self.left >= other.left
            and self.right <= other.right
            and self.top >= other.top
            and self.bottom <= other.bottom
        )


@dataclass(frozen=True, slots=True)
class Spot:
    """A point with its name and, where it has one, the vertical stroke of its interval; y in either direction."""

    name: str
    x: float
    y: float
    low: float | None = None
    high: float | None = None


def width(text: str) -> float:
    """How wide a name may become, in points."""
    return SIZE * sum(WIDE if unicodedata.east_asian_width(char) in "WF" else NARROW for char in text)


def arrange(spots: Sequence[Spot], frame: Box) -> tuple[Box | None, ...]:
    """The place of each name, in the order of the spots; ``None`` where none is free. Same spots, same places."""
    taken = [one for spot in spots for one in _obstacles(spot)]
    found: list[Box | None] = []
    for spot in spots:
        place = next(
            (box for box in _candidates(spot, frame) if box.within(frame) and not any(box.meets(one) for one in taken)),
            None,
        )
        if place is not None:
            taken.append(place)
        found.append(place)
    return tuple(found)


def _obstacles(spot: Spot) -> Iterator[Box]:
    yield Box(spot.x - MARK, spot.y - MARK, spot.x + MARK, spot.y + MARK)
    if spot.low is not None and spot.high is not None:
        yield Box(spot.x - 1, min(spot.low, spot.high), spot.x + 1, max(spot.low, spot.high))


def _candidates(spot: Spot, frame: Box) -> Iterator[Box]:
    """Beside the point first, then higher and lower, then above and below it, pushed into the frame."""
    wide, half = width(spot.name), SIZE / 2 + 1
    right, left = spot.x + MARK + GAP, spot.x - MARK - GAP - wide
    for shift in (0.0, -0.7, 0.7, -1.3, 1.3):
        for start in (right, left):
            middle = spot.y + shift * SIZE
            yield Box(start, middle - half, start + wide, middle + half)
    start = max(frame.left, min(spot.x - wide / 2, frame.right - wide))
    for away in (MARK + half + 1, MARK + half + 8):
        for middle in (spot.y - away, spot.y + away):
            yield Box(start, middle - half, start + wide, middle + half)

"""What an engine tells of the places at which drafts were judged, in a request of a distribution check."""

from __future__ import annotations

from dataclasses import astuple, dataclass, fields


@dataclass(frozen=True, slots=True)
class Judged:
    """One emitted token at a place for which the draft proposed a token, every earlier draft of its round kept.

    Args:
        q: the draft's probability of the emitted token, after processors, filters and temperature.
        expected: Σ p·q over all tokens, with p the baseline's distribution there, after the same.
        variance: Σ p·q² − expected².
        favourite: the largest q among the tokens of the place, which tells how far the draft could have pulled.
    """

    q: float
    expected: float
    variance: float
    favourite: float


NUMBERS = len(fields(Judged))


def flattened(places: tuple[Judged, ...]) -> tuple[float, ...]:
    """The numbers of each place, one place after the other: how a journal holds them."""
    return tuple(value for one in places for value in astuple(one))


def unflattened(numbers: tuple[float, ...]) -> tuple[Judged, ...]:
    """The places of :func:`flattened`.

    Raises:
        ValueError: the numbers are not those of whole places.
    """
    if len(numbers) % NUMBERS:
        raise ValueError(f"{len(numbers)} numbers are not {NUMBERS} per judged place")
    return tuple(Judged(*numbers[start : start + NUMBERS]) for start in range(0, len(numbers), NUMBERS))

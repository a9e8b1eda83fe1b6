"""Kind ``numeric``: the answer is a number, within a tolerance, in a unit where the task asks for one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.verdict import Grade, cut, malformed

KEYS = ("value", "take", "absolute", "relative", "units")
TAKES = ("last", "first", "only")
"""Which of the text's numbers is the answer; ``only``: there must be no second one of another value."""
MOST_DIGITS = 60
"""Digits up to which a number is read; a longer run of digits is no number."""
_NUMBER = re.compile(
    # Every repetition is over characters that cannot begin what follows it, so the scan is linear in the text.
    r"(?<![A-Za-z0-9_.])(?P<sign>[-+\u2212])?"
    r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+(?![0-9])|[0-9]+)(?P<part>\.[0-9]+)?(?P<power>[eE][-+]?[0-9]{1,3}(?![0-9]))?"
)


def read(fields: Fields) -> dict[str, Any]:
    """``value``; ``take`` (of :data:`TAKES`); ``absolute`` and ``relative`` tolerance; ``units``, one of which follows.

    A number is an optional sign, digits (commas between groups of three are allowed), an optional decimal part and an
    optional exponent; digits inside a word or behind a point are none. It is right when it lies within ``absolute`` or
    within ``relative`` times the value, both 0 unless given. A unit must follow the number, with at most one space, and
    must not go on within a word.
    """
    tolerances = {key: fields.number(key, 0) for key in ("absolute", "relative")}
    for key, value in tolerances.items():
        if value < 0:
            raise fields.refuse(f"{key!r} must not be negative")
    units = fields.texts("units", ()) if fields.has("units") else []
    return {"value": fields.number("value"), "take": fields.choice("take", TAKES), "units": units, **tolerances}


def build(rules: Mapping[str, Any]) -> Callable[[str, str], Grade]:
    """The grading function of the rules that :func:`read` gave."""
    value, units = Decimal(repr(rules["value"])), tuple(rules["units"])
    within = max(Decimal(repr(rules["absolute"])), Decimal(repr(rules["relative"])) * abs(value))

    def grade(text: str, finish: str) -> Grade:
        found = [match for match in _NUMBER.finditer(text) if match.end() - match.start() <= MOST_DIGITS]
        if not found:
            return malformed("there is no number" + cut(finish))
        if rules["take"] == "only" and len({_value(match) for match in found}) > 1:
            return malformed(f"there are {len(found)} numbers where one is asked for")
        chosen = found[0] if rules["take"] == "first" else found[-1]
        number = _value(chosen)
        if units and not _unit_follows(text, chosen.end(), units):
            return malformed(f"{number} is not followed by {' or '.join(units)}" + cut(finish))
        if abs(number - value) <= within:
            return Grade(valid=True, correct=True, covers=2 * len(chosen[0]) > len(text))
        return Grade(valid=True, correct=False, reason=f"{number} where {value} is right" + cut(finish))

    return grade


def _value(match: re.Match[str]) -> Decimal:
    sign = "-" if match["sign"] in ("-", "\u2212") else ""
    return Decimal(sign + match["whole"].replace(",", "") + (match["part"] or "") + (match["power"] or ""))


def _unit_follows(text: str, end: int, units: tuple[str, ...]) -> bool:
    rest = text[end : end + 80]
    rest = rest.removeprefix(" ").removeprefix("\u00a0")
    for unit in units:
        after = rest[len(unit) : len(unit) + 1]
        if rest.startswith(unit) and not (unit[-1].isalnum() and after.isalpha() and after.isascii()):
            return True
    return False

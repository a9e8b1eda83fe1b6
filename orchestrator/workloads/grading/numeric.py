"""Kind ``numeric``: the answer is a number, within a tolerance, in a unit where the task asks for one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from orchestrator.workloads.grading.fields import Fields
from orchestrator.workloads.grading.verdict import LENGTH, Grade, UnjudgedError, cut, malformed, right_so_far

KEYS = ("value", "take", "absolute", "relative", "units")
TAKES = ("last", "first", "only")
"""Which of the text's numbers is the answer; ``only``: there must be no second one of another value."""
MOST_DIGITS = 60
"""Digits up to which a number is read; a longer run of digits is no number."""
MOST_GROUPS = 5
"""Groups up to which blanks between them part the thousands of one number; a row of more is a list of numbers."""
_MINUS = "-\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d"
"""Hyphens, en dash and minus: a sign where they touch the number and no word. The em dash is none."""
_FIRM = ",'\u2019\u00a0\u2009\u202f"
"""What parts thousands and nothing else: comma, apostrophe, spaces that do not break. A plain blank may be a list's."""
_GROUPS = rf"[0-9]{{1,3}}(?P<joint>[{_FIRM} ])[0-9]{{3}}(?:(?P=joint)[0-9]{{3}})*(?![0-9])"
_BROKEN = rf"[0-9]{{1,3}}(?P<broken>[{_FIRM} ])(?:[0-9]{{3}}(?P=broken))*[0-9]{{1,2}}\Z"
_FORM = (
    # Every repetition is over characters that cannot begin what follows it, so the scan is linear in the text.
    rf"(?<![A-Za-z0-9_.])(?P<sign>[{_MINUS}+])?(?P<whole>%s|[0-9]+)"
    r"(?P<part>\.[0-9]+)?(?P<power>[eE][-+]?[0-9]{1,3}(?![0-9]))?"
)
_NUMBER = re.compile(_FORM.replace("%s", _GROUPS))
_CUT_NUMBER = re.compile(_FORM.replace("%s", f"{_BROKEN}|{_GROUPS}"))
"""In a text that was cut a last group may have fewer digits than three."""
_OPEN = re.compile(rf"(?:\.|[{_FIRM}]|[eE][-+]?)?")
"""Behind a number at the very end of a text: what may still belong to it."""


@dataclass(frozen=True, slots=True)
class _Number:
    """A number of the text from ``start`` to ``end``; ``parts`` are those it is if a blank in it parts two numbers."""

    value: Decimal
    start: int
    end: int
    parts: tuple[Decimal, ...] = ()


def read(fields: Fields) -> dict[str, Any]:
    """``value``; ``take`` (of :data:`TAKES`); ``absolute`` and ``relative`` tolerance; ``units``, one of which follows.

    A number is an optional sign, digits (between groups of three comma, apostrophe or blank are allowed), an optional
    decimal part and an optional exponent; digits inside a word or behind a point are none. It is right when it lies
    within ``absolute`` or within ``relative`` times the value, both 0 unless given. A unit must follow the number, with
    at most one space, and must not go on within a word. A plain blank between groups may be one between two numbers: an
    answer that is right read so and wrong read as one number is not judged. What ends at the output limit within the
    number or its unit, and may still become right, is right so far.
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

    def fits(number: Decimal) -> bool:
        return abs(number - value) <= within

    def grade(text: str, finish: str) -> Grade:
        found = _numbers(text, finish)
        if not found:
            return malformed("there is no number" + cut(finish))
        if rules["take"] == "only" and len({one.value for one in found}) > 1:
            return malformed(f"there are {len(found)} numbers where one is asked for")
        chosen, parts = _chosen(found, rules["take"])
        number, rest = chosen.value, text[chosen.end :]
        right, right_apart = fits(number), bool(parts) and all(fits(one) for one in parts)
        covers = 2 * (chosen.end - chosen.start) > len(text)
        if finish == LENGTH and _undecided(rest, (number, *parts), (value - within, value + within), units):
            return right_so_far(covers=covers)
        if units and not _unit_follows(text, chosen.end, units):
            return malformed(f"{number} is not followed by {' or '.join(units)}" + cut(finish))
        if right:
            return Grade(valid=True, correct=True, covers=covers)
        if right_apart:
            raise UnjudgedError(f"{text[chosen.start : chosen.end]!r} may be one number or several")
        return Grade(valid=True, correct=False, reason=f"{number} where {value} is right" + cut(finish))

    return grade


def _chosen(found: list[_Number], take: str) -> tuple[_Number, tuple[Decimal, ...]]:
    """The number that is the answer, and those that are if its blanks part numbers."""
    if take == "first":
        return found[0], found[0].parts[:1]
    return found[-1], found[-1].parts[-1:] if take == "last" else found[-1].parts


def _numbers(text: str, finish: str) -> list[_Number]:
    """The numbers of the text, in its order; a row of groups that is no number of thousands is one of numbers."""
    found = []
    for match in (_CUT_NUMBER if finish == LENGTH else _NUMBER).finditer(text):
        known = match.groupdict()
        broken = known.get("broken")
        joint = known["joint"] or broken
        groups = known["whole"].split(joint) if joint else [known["whole"]]
        sign = "" if known["sign"] in (None, "+") else "-"
        tail = (known["part"] or "") + (known["power"] or "")
        apart = [sign + groups[0], *groups[1:]]
        apart[-1] += tail
        if joint == " " and (len(groups) > MOST_GROUPS or groups[0].startswith("0")):
            at = match.start("whole")
            for one, digits in zip(apart, groups, strict=True):
                found.append(_Number(Decimal(one), at, at + len(digits)))
                at += len(digits) + 1
            found[-1] = replace(found[-1], end=match.end())
        else:
            parts = tuple(Decimal(one) for one in apart) if joint == " " or broken else ()
            found.append(_Number(Decimal(sign + "".join(groups) + tail), match.start(), match.end(), parts))
    return [one for one in found if one.end - one.start <= MOST_DIGITS]


def _undecided(
    rest: str, readings: tuple[Decimal, ...], limits: tuple[Decimal, Decimal], units: tuple[str, ...]
) -> bool:
    """Whether what may follow ``rest``, at the output limit, makes or unmakes a right number, or ends its unit."""
    low, high = limits
    goes_on = _OPEN.fullmatch(rest) is not None
    if any(low <= one <= high for one in readings):
        return goes_on or _unit_may_follow(rest, units)
    return goes_on and any(_becomes(one, rest, low, high) for one in readings)


def _becomes(number: Decimal, rest: str, low: Decimal, high: Decimal) -> bool:
    """Whether more digits behind the number, or behind its point, can make it one from ``low`` to ``high``."""
    size = abs(number)
    if number.is_signed():
        low, high = -high, -low
    exponent = number.as_tuple().exponent
    if rest == "." or not size or not isinstance(exponent, int) or exponent < 0:
        step = Decimal(1).scaleb(exponent) if isinstance(exponent, int) and exponent < 0 else Decimal(1)
        return size <= high and low < size + step
    powers = (Decimal(1).scaleb(by) for by in range(MOST_DIGITS))
    return any(size * power <= high and low < (size + 1) * power for power in powers)


def _unit_may_follow(rest: str, units: tuple[str, ...]) -> bool:
    """Whether the end of the text may be the beginning of a unit, or of a word that a unit begins."""
    begun = rest.removeprefix(" ").removeprefix("\u00a0")
    return any(unit.startswith(begun) and (unit != begun or unit[-1].isalnum()) for unit in units)


def _unit_follows(text: str, end: int, units: tuple[str, ...]) -> bool:
    rest = text[end : end + 80]
    rest = rest.removeprefix(" ").removeprefix("\u00a0")
    for unit in units:
        after = rest[len(unit) : len(unit) + 1]
        if rest.startswith(unit) and not (unit[-1].isalnum() and after.isalpha() and after.isascii()):
            return True
    return False

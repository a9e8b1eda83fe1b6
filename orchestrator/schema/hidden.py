"""Characters that change what a line looks like and are not seen themselves: wherever foreign text is shown."""

from __future__ import annotations

import re

DIRECTION = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Marks and overrides of the direction of writing."""
INVISIBLE = frozenset("\u00ad\u180e\u200b\u2028\u2029\u2060\u2061\u2062\u2063\u2064\ufeff")
"""What takes no place, or breaks a line that has no line feed. The joiners of scripts and emoji are not among them."""
_HIDDEN = re.compile(f"[{''.join(sorted(DIRECTION | INVISIBLE))}]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_FORMULA = tuple("=+-@\t\n\uff1d\uff0b\uff0d\uff20")


def without_hidden(text: str) -> str:
    """The text for a terminal: a replacement character for each control and hidden one but tab and line feed."""
    return _HIDDEN.sub("\ufffd", _CONTROL.sub("\ufffd", text))


def shown(char: str) -> str:
    """``⟨U+202E⟩``."""
    return f"⟨U+{ord(char):04X}⟩"


def inert(text: str) -> str:
    """The text for a field of CSV: hidden and control characters as ``⟨U+202E⟩``, and nothing that computes.

    A spreadsheet takes a field that begins with ``=`` and its like for a formula; an apostrophe before it makes it
    text. A mark alone, such as the dash for nothing, is none. Line feeds and tabs within the text stay.
    """
    for pattern in (_HIDDEN, _CONTROL):
        text = pattern.sub(lambda match: shown(match[0]), text)
    return f"'{text}" if len(text) > 1 and text.startswith(_FORMULA) else text


def escaped(json_text: str) -> str:
    """JSON whose strings have hidden characters as escapes: the same values, and a file that looks like what it is."""
    return _HIDDEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)

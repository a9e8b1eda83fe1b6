"""Marks what stays English on a page of another language: names in a row, and what engines and systems said.

Readers that speak a page aloud change their voice by it, and nobody takes a quotation for a gap in the translation.
"""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_HANGUL = re.compile(r"([\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3])")
_WORD = re.compile(r"[A-Za-z]{2,}")
_EDGES = re.compile(r"([^A-Za-z]*)(.*?)([^A-Za-z0-9.)]*)", re.DOTALL)
WORDS = 3
"""So many words in a row are a sentence, or a row of names; fewer are terms that the language has taken over."""


def quoted(text: str, language: str) -> str | Markup:
    """The text, with ``lang="en"`` around runs of English on a page that is not English."""
    if language == "en" or len(text) < 2 * WORDS or len(_WORD.findall(text)) < WORDS:
        return text
    return Markup("").join(_piece(part) for part in _HANGUL.split(text))


def _piece(part: str) -> Markup:
    if len(_WORD.findall(part)) < WORDS:
        return escape(part)
    found = _EDGES.fullmatch(part)
    if found is None:
        return escape(part)
    before, inner, after = found.groups()
    return Markup('{}<span lang="en">{}</span>{}').format(before, inner, after)

"""The one place through which every sentence of the report goes, so that a catalogue can translate it.

A message is a literal with named places: ``words.say("{count} cells failed", count=3)``. Catalogues are looked up
with the message as it stands in the source. ``**`` in a message marks what is set strong.

Sentences that arrive finished (from statistics, checks and records) go through :meth:`Words.said`, which knows the
forms of :mod:`orchestrator.report.language.phrases` and leaves everything else as it was recorded.
"""

from __future__ import annotations

import gettext
import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from orchestrator.report.language.recognise import PHRASES, recognise
from orchestrator.schema import units

LOCALES = Path(__file__).parent.parent / "locales"
"""Where compiled catalogues live, one folder per language; English needs none."""
DOMAIN = "report"
LANGUAGES = ("en", "ko")
"""Languages that the whole page is there in."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a sentence; ``strong`` pieces carry the tone of the sentence."""

    text: str
    strong: bool = False


Rich = tuple[Segment, ...]

_BLANKS = re.compile(" {2,}")
_PERCENT = re.compile(r"(?<=\d)[ \u00a0]%")
_MINUTES = re.compile(r"(\d+) min (\d\d) s\b")
_UNIT = re.compile(r"(?<=\d) (?=%|ms\b|µs\b|s\b|[kMG]?B\b|tok/s\b)")


@lru_cache(maxsize=8)
def _catalogue(language: str) -> gettext.NullTranslations:
    """One object per language, so that what is kept for a catalogue is found again."""
    return gettext.translation(DOMAIN, LOCALES, [language], fallback=True)


def mark(message: str) -> str:
    """The message as it stands: marks for the catalogue one that is looked up later, through a name."""
    return message


class Words:
    """Sentences of one language."""

    def __init__(self, language: str = "en", translations: gettext.NullTranslations | None = None) -> None:
        """Load the catalogue of ``language``; without one the sentences stay English and ``language`` says so.

        Args:
            language: an ISO 639-1 code.
            translations: used instead of a catalogue on disk.
        """
        if translations is None:
            translations = _catalogue(language)
        found = language == "en" or type(translations) is not gettext.NullTranslations
        self.translations = translations
        self.language = language if found else "en"
        self._said: dict[str, str] = {}

    def say(self, message: str, /, **values: object) -> str:
        """The sentence with its places filled; values are never read as messages."""
        return self.set(self.translations.gettext(message).format(**values))

    def count(self, one: str, many: str, number: int, /, **values: object) -> str:
        """The sentence in the grammatical number of ``number``, which fills ``{number}``."""
        return self.set(self.translations.ngettext(one, many, number).format(number=number, **values))

    def rich(self, message: str, /, **values: object) -> Rich:
        """The sentence in segments; ``**`` in the message, not in the values, switches strong on and off."""
        parts = self.translations.gettext(message).split("**")
        made = (Segment(self.set(part.format(**values)), index % 2 == 1) for index, part in enumerate(parts))
        return tuple(segment for segment in made if segment.text)

    def said(self, text: str) -> str:
        """A finished sentence of ours in this language; one of no known form stays as it was recorded."""
        if self.language == "en" or not text:
            return text
        if text not in self._said:
            self._said[text] = self.set(self._told(text))
        return self._said[text]

    def percent(self, share: float, digits: int = 0) -> str:
        """A share of one, spaced as the language has it: ``71 %``, in Korean ``71%``."""
        return self.set(units.percent(share, digits))

    def date(self, stamp: str) -> str:
        """The day of an ISO 8601 stamp as people of the language write it."""
        if self.language != "ko" or not re.match(r"\d{4}-\d{2}-\d{2}", stamp):
            return stamp[:10]
        return f"{stamp[:4]}년 {int(stamp[5:7])}월 {int(stamp[8:10])}일"

    def set(self, text: str) -> str:
        """Typesetting: no double space of an empty place, numbers kept beside their unit, percent as is the custom."""
        if "  " in text:
            text = _BLANKS.sub(" ", text)
        if self.language == "ko":
            text = _MINUTES.sub(r"\1분 \2초", _PERCENT.sub("%", text))
        return _UNIT.sub("\u00a0", text)

    def _told(self, text: str) -> str:
        exact = self.translations.gettext(text)
        if exact != text:
            return exact
        found = recognise(text, PHRASES)
        if found is not None:
            message, values = found
            return self.translations.gettext(message).format(**{name: self.said(one) for name, one in values.items()})
        # Sentences are joined by semicolons; each part may be known although the whole is not.
        for match in re.finditer(r"; |\. | · ", text):
            left, right = text[: match.start()], text[match.end() :]
            if recognise(left, PHRASES) is not None or self.translations.gettext(left) != left:
                return f"{self.said(left)}{match.group()}{self.said(right)}"
        head, joint, rest = text.partition("; ")
        return f"{head}{joint}{self.said(rest)}" if joint else text


def plain(rich: Rich) -> str:
    """The sentence without its marks."""
    return "".join(segment.text for segment in rich)

"""The one place through which every sentence of the report goes, so that a catalogue can translate it.

A message is a literal with named places: ``words.say("{count} cells failed", count=3)``. Catalogues are looked up
with the message as it stands in the source. ``**`` in a message marks what is set strong.
"""

from __future__ import annotations

import gettext
import re
from dataclasses import dataclass
from pathlib import Path

LOCALES = Path(__file__).parent / "locales"
"""Where compiled catalogues live, one folder per language; English needs none."""
DOMAIN = "report"


@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a sentence; ``strong`` pieces carry the tone of the sentence."""

    text: str
    strong: bool = False


Rich = tuple[Segment, ...]


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
            translations = gettext.translation(DOMAIN, LOCALES, [language], fallback=True)
        found = language == "en" or type(translations) is not gettext.NullTranslations
        self.translations = translations
        self.language = language if found else "en"

    def say(self, message: str, /, **values: object) -> str:
        """The sentence with its places filled; values are never read as messages."""
        return _spaced(self.translations.gettext(message).format(**values))

    def count(self, one: str, many: str, number: int, /, **values: object) -> str:
        """The sentence in the grammatical number of ``number``, which fills ``{number}``."""
        return _spaced(self.translations.ngettext(one, many, number).format(number=number, **values))

    def rich(self, message: str, /, **values: object) -> Rich:
        """The sentence in segments; ``**`` in the message, not in the values, switches strong on and off."""
        parts = self.translations.gettext(message).split("**")
        made = (Segment(_spaced(part.format(**values)), index % 2 == 1) for index, part in enumerate(parts))
        return tuple(segment for segment in made if segment.text)


def _spaced(text: str) -> str:
    """Without the double space that an empty place leaves behind, and with numbers kept beside their unit."""
    return re.sub(r"(?<=\d) (?=%|ms\b|µs\b|s\b|[kMG]?B\b|tok/s\b)", "\u00a0", re.sub(" {2,}", " ", text))


def plain(rich: Rich) -> str:
    """The sentence without its marks."""
    return "".join(segment.text for segment in rich)

"""The forms of sentences that reach the page finished, from statistics, checks, the runner and the store.

They are written where they are concluded, in English, and are stored in records. A catalogue cannot look up a filled
sentence, so that its form is recognised here and its values are put into the translated form. A test reads the
sources and fails when one of their sentences has no form here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from orchestrator.report.language.phrases.adapters import ADAPTERS
from orchestrator.report.language.phrases.engines import ENGINES
from orchestrator.report.language.phrases.exactness import EXACTNESS
from orchestrator.report.language.phrases.machine import MACHINE
from orchestrator.report.language.phrases.refusals import REFUSALS
from orchestrator.report.language.phrases.reported import REPORTED
from orchestrator.report.language.phrases.runs import RECORDED
from orchestrator.report.language.phrases.statistics import ANSWERS, STATISTICS, TWO_RUNS
from orchestrator.schema.status import STATUS_RULES

_ALL = (*STATISTICS, *EXACTNESS, *RECORDED, *TWO_RUNS, *MACHINE, *ADAPTERS, *ANSWERS, *ENGINES, *REFUSALS, *REPORTED)
PHRASES: tuple[str, ...] = tuple(dict.fromkeys(_ALL))
"""Every form of :mod:`.phrases`, each once."""

_PLACE = re.compile(r"\{(\w+)\}")


def recognise(text: str, phrases: Sequence[str]) -> tuple[str, Mapping[str, str]] | None:
    """The form that the sentence was made from, with what stands in its places; ``None`` where none fits.

    Of several forms that fit, the one with the most fixed text is taken: it says most about the sentence.
    """
    for phrase, pattern in _patterns(tuple(phrases)):
        found = pattern.fullmatch(text)
        if found is not None:
            return phrase, found.groupdict()
    return None


@cache
def _patterns(phrases: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    def fixed(phrase: str) -> int:
        return len(_PLACE.sub("", phrase))

    return tuple((one, _pattern(one)) for one in sorted(phrases, key=lambda one: (-fixed(one), one)))


_SENTENCES = frozenset({"why", "differs", "checked", "size", "words", "fault", "last", "said", "how", "most", "rate"})
"""Places that may hold a sentence, with semicolons of its own."""

_NUMBERS = frozenset({"n", "all", "index", "rank", "same", "bad", "draws", "seed", "low", "high", "level", "needed"})
"""Places that hold a number and nothing else: the looser a form, the more text of others it would swallow."""


def _place(name: str) -> str:
    if name in _NUMBERS:
        return rf"(?P<{name}>-?\d[\d.,]*)"
    if name == "status":
        return f"(?P<{name}>{'|'.join(re.escape(rule.word) for rule in STATUS_RULES.values())})"
    return f"(?P<{name}>.+?)" if name in _SENTENCES else f"(?P<{name}>(?:(?!; ).)+?)"


def _pattern(phrase: str) -> re.Pattern[str]:
    parts = _PLACE.split(phrase)
    made = [_place(part) if index % 2 else re.escape(part) for index, part in enumerate(parts)]
    return re.compile("".join(made), re.DOTALL)

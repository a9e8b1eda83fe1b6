"""Whether a prompt asks for a piece of text over and over: it shows it so, or says so and shows it once."""

from __future__ import annotations

import re

SHOWN = 3
"""Times in a row that a piece stands in a prompt which shows repetition without a word of it."""
LEAST_LINE = 4
"""Characters of the piece, or of a line of it, that are known again in the prompt: one sign stands in most."""
_EDGES = " \t\n.,;:|-=>\"'`“”"
_WORDS = re.compile(
    r"\b(?:cop(?:y|ies|ied)|repeat(?:s|ed|ing|edly)?|times|over and over|again and again|verbatim)\b"
    r"|베끼|베껴|되풀이|반복|그대로|복사|(?:[0-9]|한|두|세|네|섯|일곱|여덟|아홉|열|무)\s*번",
    re.IGNORECASE,
)


def asked_for(piece: str, prompt: str) -> bool:
    """Whether the piece, from whichever of its characters it is read, is what the prompt wants repeated.

    It stands three times in a row in the prompt; or the prompt has a word for copying or repeating, and in it stands
    the piece, without the marks at its ends, or one of its lines, such as the example that a series goes on from.
    """
    turns = [piece[by:] + piece[:by] for by in range(len(piece))]
    if any(turn * SHOWN in prompt for turn in turns):
        return True
    if _WORDS.search(prompt) is None:
        return False
    lines = (piece + piece).splitlines()[1:-1]
    wanted = [*(turn.strip(_EDGES) for turn in turns), *(line.strip() for line in lines)]
    return any(len(one) >= LEAST_LINE and one in prompt for one in wanted)

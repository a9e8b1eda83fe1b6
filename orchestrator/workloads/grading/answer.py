"""What of a text is the model's answer: neither its thinking nor the prompt said once more."""

from __future__ import annotations

OPEN, CLOSE = "<think>", "</think>"
LEAST_ECHO = 32
"""Characters from which the prompt's own text in an answer is an echo and not a part of the answer."""
LONGEST_CUE = 20
"""Characters of a last line of the prompt, such as ``Answer:``, without which an echo is one too."""


def without_thinking(text: str) -> str | None:
    """The text behind a block of thinking at its beginning; ``None`` where the block does not end."""
    start = text.lstrip()
    if not start.startswith(OPEN):
        return text
    _, close, rest = start.partition(CLOSE)
    return rest if close else None


def without_echo(text: str, prompt: str) -> str:
    """The text without the prompt's own: a rule that looks for something must not find it in the question."""
    whole = prompt.strip()
    head, _, cue = whole.rpartition("\n")
    asked = [whole, head.strip()] if len(cue) <= LONGEST_CUE and cue.endswith((":", "：")) else [whole]
    for part in asked:
        if len(part) >= LEAST_ECHO:
            text = text.replace(part, "\n")
    return text

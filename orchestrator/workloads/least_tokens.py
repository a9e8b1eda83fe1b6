"""The fewest tokens that a text can be, by a model's vocabulary alone: a bound that no tokenizer goes below.

A tokenizer cuts a text into pieces of its vocabulary. How it chooses among the ways to cut takes the tokenizer itself;
the way with the fewest pieces takes only the pieces. For the demo models it is 92 to 100 % of what llama.cpp counts of
the prompts that come with the program.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

_BYTE = re.compile(r"\\x([0-9a-f]{2})")
_KEY = 2
"""Pieces are looked for by their first bytes, so that the one of a hundred spaces costs only texts with spaces."""


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """A vocabulary as bytes, and the lengths that occur after each beginning; equal to itself alone."""

    every: frozenset[bytes]
    lengths: dict[bytes, tuple[int, ...]]


def pieces(texts: Iterable[str]) -> Pieces:
    r"""The pieces of a vocabulary, from the texts of its tokens.

    Bytes that are no whole character are spelled ``\xNN``, as :func:`orchestrator.schema.adapter.token_texts` has them;
    a token that really says so is taken both ways, which can only lower the bound.
    """
    every = {spelled for text in texts for spelled in (text.encode("utf-8", "surrogatepass"), _bytes(text)) if spelled}
    lengths: dict[bytes, set[int]] = defaultdict(set)
    for piece in every:
        lengths[piece[:_KEY]].add(len(piece))
    return Pieces(frozenset(every), {key: tuple(sorted(found)) for key, found in lengths.items()})


def _bytes(text: str) -> bytes:
    parts = _BYTE.split(text)
    # Every second part is what the pattern caught.
    return b"".join(
        bytes([int(part, 16)]) if place % 2 else part.encode("utf-8", "surrogatepass")
        for place, part in enumerate(parts)
    )


def least_tokens(text: str, known: Pieces) -> int:
    """The fewest tokens of the text.

    A byte that is no piece by itself counts nothing: a tokenizer may leave out what it cannot spell. Some bring a text
    into a normal form first (NFC, NFKC); where one takes fewer, that is the bound.
    """
    forms = {text, unicodedata.normalize("NFC", text), unicodedata.normalize("NFKC", text)}
    return min(_fewest(form.encode("utf-8", "surrogatepass"), known) for form in forms)


def _fewest(data: bytes, known: Pieces) -> int:
    size = len(data)
    fewest = [size + 1] * (size + 1)
    fewest[0] = 0
    for start in range(size):
        here, alone = fewest[start], data[start : start + 1]
        price = here + (alone in known.every)
        fewest[start + 1] = min(fewest[start + 1], price)
        for length in known.lengths.get(data[start : start + _KEY], ()):
            end = start + length
            if end <= size and here + 1 < fewest[end] and data[start:end] in known.every:
                fewest[end] = here + 1
    return fewest[size]

"""Whether llama.cpp will let a draft model speculate for a target: its own rule, by the two files' headers."""

from __future__ import annotations

from collections.abc import Mapping

from adapters.shared.gguf import TOKENS, GgufHeader, read_header, read_strings

TYPES: Mapping[str, str] = {
    "llama": "SPM", "gpt2": "BPE", "hybriddna": "BPE", "whitespace": "BPE", "gemma4": "BPE", "bert": "WPM", "t5": "UGM",
    "rwkv": "RWKV", "plamo2": "PLAMO2",
}  # fmt: skip
"""Vocabulary type by ``tokenizer.ggml.model``; of a name that is not here the type is not known, and not judged."""
LARGEST_DIFFERENCE = 128
FIRST_COMPARED = 5
"""Ids below may differ: special tokens."""
_SHOWN = 40


def incompatible(target: str, draft: str) -> str | None:
    """Why llama.cpp refuses the draft's vocabulary, in words; ``None`` where it does not, or the headers do not tell.

    Source: llama.cpp b11434, common/speculative.cpp (``common_speculative_are_compatible``).

    Raises:
        GgufError: a file cannot be read.
    """
    mine, other = read_header(target), read_header(draft)
    return _types(mine, other) or _marks(mine, other) or _sizes(mine, other) or _texts(target, draft)


def _types(mine: GgufHeader, other: GgufHeader) -> str | None:
    one, two = (TYPES.get(header.tokenizer or "") for header in (mine, other))
    if one is None or two is None or one == two:
        return None
    return f"the target's vocabulary is of type {one} ({mine.tokenizer}), the draft's of type {two} ({other.tokenizer})"


def _marks(mine: GgufHeader, other: GgufHeader) -> str | None:
    """Begin and end of text; judged only where both headers state them, since defaults hang on the tokenizer."""
    for mark in ("bos", "eos"):
        added = [header.scalars.get(f"tokenizer.ggml.add_{mark}_token") for header in (mine, other)]
        if None in added:
            continue
        if added[0] != added[1]:
            return f"the target adds a {mark} token: {_yes(added[0])}, the draft: {_yes(added[1])}"
        ids = [header.scalars.get(f"tokenizer.ggml.{mark}_token_id") for header in (mine, other)]
        if added[0] and None not in ids and ids[0] != ids[1]:
            return f"the target's {mark} token is {ids[0]}, the draft's {ids[1]}"
    return None


def _sizes(mine: GgufHeader, other: GgufHeader) -> str | None:
    one, two = mine.vocabulary_size, other.vocabulary_size
    if one is None or two is None or abs(one - two) <= LARGEST_DIFFERENCE:
        return None
    return f"the target's vocabulary has {one} tokens, the draft's {two}: more than {LARGEST_DIFFERENCE} apart"


def _texts(target: str, draft: str) -> str | None:
    mine, other = read_strings(target, TOKENS), read_strings(draft, TOKENS)
    if mine is None or other is None:
        return None
    pairs = list(zip(mine, other, strict=False))
    for token in range(FIRST_COMPARED, len(pairs)):
        one, two = (text.split(b"\0", 1)[0] for text in pairs[token])
        if one != two:
            return f"token {token} is {_words(one)} for the target and {_words(two)} for the draft"
    return None


def _words(text: bytes) -> str:
    return repr(text.decode("utf-8", "replace")[:_SHOWN])


def _yes(value: object) -> str:
    return "yes" if value else "no"

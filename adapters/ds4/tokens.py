"""The tokens of a printed answer: what ``--dump-tokens`` makes of its text, and when each was printed.

ds4 prints text and no ids. Its tokenizer is asked for them afterwards, so ids and counts are inferred: of an answer
that was sampled token by token another split of the same text can come back.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from adapters.ds4.run import Piece, Run
from orchestrator.schema.adapter import Arrival
from orchestrator.schema.errors import CaptureError

TOGETHER_S = 0.002
"""Pieces that arrive closer than this belong to one pass: a pass of the models that ds4 runs takes 5 ms and more."""

_LINE = re.compile(r"^ *(\d+)  (.*)$", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A token id and the bytes that it prints."""

    id: int
    data: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """A printed answer taken apart.

    Args:
        tokens: without the newline that ds4 ends its output with.
        own_newline: whether a newline at the end was taken for ds4's own.
    """

    tokens: tuple[Token, ...]
    own_newline: bool

    @property
    def text(self) -> str:
        """What was generated."""
        return b"".join(token.data for token in self.tokens).decode("utf-8", "replace")


def read_answer(run: Run, dump: Run, limit: int) -> Answer:
    """The answer's tokens.

    ds4 ends its output with a newline of its own unless the model did. The two look alike; it counts as the model's
    only where the answer would otherwise be one token short of the limit.

    Args:
        run: the generation.
        dump: ``--dump-tokens`` of what it printed.
        limit: the most tokens that were asked for.

    Raises:
        CaptureError: the dump cannot be read, or is not of this answer.
    """
    tokens = read_dump(dump.output)
    if b"".join(token.data for token in tokens) != run.output:
        raise CaptureError("the tokens that --dump-tokens tells do not make up the answer")
    if not tokens:
        return Answer((), own_newline=False)
    last = tokens[-1]
    if last.data == b"\n" and len(tokens) != limit:
        return Answer(tokens[:-1], own_newline=True)
    return Answer(tokens, own_newline=False)


def read_dump(data: bytes) -> tuple[Token, ...]:
    """The tokens of ``--dump-tokens``: a list of ids, then a line each with its text in the vocabulary's spelling.

    Raises:
        CaptureError: the output is not as expected.
    """
    head, _, rest = data.decode("utf-8", "replace").partition("\n")
    try:
        ids = json.loads(head)
    except ValueError as err:
        raise CaptureError("--dump-tokens did not print a list of ids") from err
    if not isinstance(ids, list) or not all(isinstance(token, int) for token in ids):
        raise CaptureError("--dump-tokens did not print a list of ids")
    lines = rest.split("\n")[:-1]
    if len(lines) != len(ids):
        raise CaptureError(f"--dump-tokens lists {len(ids)} ids and {len(lines)} texts")
    tokens = []
    for token, line in zip(ids, lines, strict=True):
        found = _LINE.match(line)
        if found is None or int(found[1]) != token:
            raise CaptureError(f"--dump-tokens prints {line!r} for token {token}")
        tokens.append(Token(token, spelled_out(found[2])))
    return tuple(tokens)


def spelled_out(text: str) -> bytes:
    """Bytes of a token in the byte-level spelling of GPT-2's vocabulary, in which a space is ``Ġ``.

    A special token, which is spelled as it is, holds characters outside of that alphabet.
    """
    alphabet = _alphabet()
    if all(char in alphabet for char in text):
        return bytes(alphabet[char] for char in text)
    return text.encode()


def arrivals(pieces: tuple[Piece, ...], tokens: tuple[Token, ...]) -> tuple[Arrival, ...]:
    """When each token's last byte arrived; tokens whose pieces came together share a burst."""
    found: list[Arrival] = []
    place, seen, end, burst = 0, 0, 0, 0
    last_s: float | None = None
    for token in tokens:
        end += len(token.data)
        while place < len(pieces) and seen + len(pieces[place].data) < end:
            seen += len(pieces[place].data)
            place += 1
        t_s = pieces[min(place, len(pieces) - 1)].t_s
        if last_s is not None and t_s - last_s >= TOGETHER_S:
            burst += 1
        last_s = t_s
        found.append(Arrival(t_s, (token.id,), f"b{burst}"))
    return tuple(found)


@cache
def _alphabet() -> Mapping[str, int]:
    """Character to byte. Source: the published GPT-2 byte-level encoding: printable bytes stand for themselves."""
    plain = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    found = {chr(byte): byte for byte in plain}
    others = [byte for byte in range(0x100) if byte not in set(plain)]
    return found | {chr(0x100 + number): byte for number, byte in enumerate(others)}

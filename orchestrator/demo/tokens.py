"""The demo's vocabulary, as the committed tokenizer.json holds it."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

from orchestrator.demo.gguf_format import Value

#: Ids of the end-of-text and the padding token: the same in every demo vocabulary.
END_OF_TEXT_ID = 0
PADDING_ID = 1
_NORMAL, _CONTROL = 1, 3


@dataclasses.dataclass(frozen=True, slots=True)
class Vocabulary:
    """Token texts by id, and the merges that build them.

    Attributes:
        tokens: Text of every token, in byte-level spelling; the position is the id.
        merges: Pairs of token texts, earliest first.
        special: Ids that no text encodes to.
        source: The whole tokenizer.json this was read from.
    """

    tokens: tuple[str, ...]
    merges: tuple[str, ...]
    special: frozenset[int]
    source: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> Vocabulary:
        """The vocabulary in the text of a tokenizer.json.

        Raises:
            ValueError: The ids are not 0, 1, 2, … without a gap.
        """
        source = json.loads(text)
        by_id = sorted(source["model"]["vocab"].items(), key=lambda item: item[1])
        if [number for _, number in by_id] != list(range(len(by_id))):
            message = "the vocabulary of tokenizer.json has gaps or repeats in its ids"
            raise ValueError(message)
        merges = source["model"]["merges"]
        return cls(
            tokens=tuple(token for token, _ in by_id),
            merges=tuple(pair if isinstance(pair, str) else " ".join(pair) for pair in merges),
            special=frozenset(token["id"] for token in source["added_tokens"]),
            source=source,
        )

    def backwards_order(self) -> tuple[int, ...]:
        """Old ids in the order of `backwards`: special tokens stay, all others are numbered from the end."""
        size = len(self.tokens)
        first = len(self.special)
        return (*range(first), *range(size - 1, first - 1, -1))

    def backwards(self) -> Vocabulary:
        """The same tokens numbered the other way round.

        It has the same size, the same special tokens and encodes text into the same pieces, so a comparison of sizes
        cannot tell it from the original; only the ids mean something else.
        """
        order = self.backwards_order()
        tokens = tuple(self.tokens[old] for old in order)
        ids = {token: number for number, token in enumerate(tokens)}
        source = {**self.source, "model": {**self.source["model"], "vocab": ids}}
        return dataclasses.replace(self, tokens=tokens, source=source)

    def to_json(self) -> str:
        """The text of a tokenizer.json with this vocabulary."""
        return json.dumps(self.source, ensure_ascii=False, indent=1) + "\n"

    def gguf_metadata(self) -> dict[str, Value]:
        """The tokenizer keys of a GGUF file.

        Source: llama.cpp, gguf-py/gguf/constants.py (`Keys.Tokenizer`) and src/llama-vocab.cpp (`gpt-2`).
        """
        types = [_CONTROL if number in self.special else _NORMAL for number in range(len(self.tokens))]
        return {
            "tokenizer.ggml.model": "gpt2",
            "tokenizer.ggml.pre": "gpt-2",
            "tokenizer.ggml.tokens": list(self.tokens),
            "tokenizer.ggml.token_type": types,
            "tokenizer.ggml.merges": list(self.merges),
            "tokenizer.ggml.bos_token_id": END_OF_TEXT_ID,
            "tokenizer.ggml.eos_token_id": END_OF_TEXT_ID,
            "tokenizer.ggml.padding_token_id": PADDING_ID,
            "tokenizer.ggml.add_bos_token": False,
        }

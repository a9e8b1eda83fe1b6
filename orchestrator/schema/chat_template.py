"""The chat template of a model, as its files carry it."""

from __future__ import annotations

import dataclasses
import hashlib


@dataclasses.dataclass(frozen=True, slots=True)
class ChatTemplate:
    """A model's chat template.

    Attributes:
        source: The template, in Jinja.
        origin: Which file it was read from, and under which name.
        bos: Text of the token that begins a text; empty where there is none or the template is not told.
        eos: Text of the token that ends one.
        engine_adds_bos: Whether the engine puts that first token before a text by itself; the rendered text then goes
            without it, since twice is another prompt.
    """

    source: str
    origin: str
    bos: str = ""
    eos: str = ""
    engine_adds_bos: bool = False

    @property
    def sha256(self) -> str:
        """Of the template's text; the first 12 digits."""
        return hashlib.sha256(self.source.encode()).hexdigest()[:12]

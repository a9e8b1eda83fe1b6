"""A prompt, and what is known of it before any model sees it."""

from __future__ import annotations

import dataclasses
from typing import Literal, get_args

from orchestrator.workloads.grading import Grader

LengthClass = Literal["short", "long"]
"""Expected length of an answer: short is at most 64 tokens, long at least 512; in between there is no class."""
LENGTHS: tuple[LengthClass, ...] = get_args(LengthClass)

MessageRole = Literal["system", "user", "assistant"]
ROLES: tuple[MessageRole, ...] = get_args(MessageRole)


@dataclasses.dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: MessageRole
    content: str


@dataclasses.dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt.

    Attributes:
        id: Unique within its set.
        category: What kind of text it asks for, such as `count` or `prose-ko`.
        language: BCP 47 tag: `en`, `ko`, `zxx` for no natural language, `und` for unknown.
        text: What the model is given, byte for byte. Of a conversation: the contents of its messages, a blank line
            between them, for a model that is given raw text.
        answer: The one right continuation, where there is one; a right output starts with it.
        task: How an answer is judged, where that can be done without a model.
        messages: The conversation, where the prompt is one; the last message is the user's.
        length: How long an answer is expected to be.
        context_tokens: The class of a generated context, 1024 for instance; how many tokens it really has depends on
            the tokenizer and is recorded with each trial.
    """

    id: str
    category: str
    language: str
    text: str
    answer: str | None = None
    task: Grader | None = None
    messages: tuple[Message, ...] | None = None
    length: LengthClass | None = None
    context_tokens: int | None = None

    @property
    def conversation(self) -> tuple[Message, ...]:
        """The messages; of a plain text, the one message of the user that holds it."""
        return self.messages or (Message("user", self.text),)


def joined(messages: tuple[Message, ...]) -> str:
    """The `text` of a prompt that is a conversation."""
    return "\n\n".join(message.content for message in messages)

"""Renders a conversation by a model's own chat template, so that every engine is given the same text.

Templates come with model files and are not trusted: they run in Jinja's sandbox, and what they write is bounded.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from collections.abc import Iterator, Sequence
from typing import NoReturn

from orchestrator.schema.chat_template import ChatTemplate
from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.prompt import Message, Prompt

MOST_TEMPLATE_CHARS = 1_000_000
MOST_RENDERED_CHARS = 4_000_000
MOST_TURNS = 100_000
TODAY = dt.date(2026, 1, 1)
"""The date that a template is told: one that wrote the real one would ask another question every day."""


@dataclasses.dataclass(frozen=True, slots=True)
class Framing:
    """What a workload says of the conversation: a system prompt of its own, and whether the model shall think.

    ``thinking`` is ``None`` where the template's default holds; else it is told ``enable_thinking``, which is how
    templates of Qwen3 and its like are asked. A template that does not know the word gives the same text either way.
    """

    system: str | None = None
    thinking: bool | None = None


def conversation(prompt: Prompt, framing: Framing) -> tuple[Message, ...]:
    """The prompt's messages under the workload's system prompt, which replaces one that the prompt brings."""
    messages = prompt.conversation
    if framing.system is None:
        return messages
    return (Message("system", framing.system), *(one for one in messages if one.role != "system"))


def render(template: ChatTemplate, messages: Sequence[Message], thinking: bool | None = None) -> str:
    """The text that the model is given, with the opening of its answer.

    Raises:
        WorkloadError: the template is damaged, refuses these messages, or writes without end.
    """
    from orchestrator.runner.chat_sandbox import Generation, Sandbox  # noqa: PLC0415  (start-up stays light)

    if len(template.source) > MOST_TEMPLATE_CHARS:
        raise WorkloadError(f"{template.origin}: a chat template of {len(template.source)} characters is not read")
    # What is rendered is a prompt for a model and never HTML: escaping would change it.
    environment = Sandbox(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation], autoescape=False
    )
    environment.filters["tojson"] = _json
    environment.globals |= {"raise_exception": _raise, "strftime_now": TODAY.strftime, "range": _Turns()}
    told = {} if thinking is None else {"enable_thinking": thinking}
    try:
        pieces = environment.from_string(template.source).generate(
            messages=[{"role": one.role, "content": one.content} for one in messages],
            add_generation_prompt=True,
            bos_token=template.bos,
            eos_token=template.eos,
            tools=None,
            **told,
        )
        text = _bounded(pieces, template.origin)
        text.encode()  # half of a surrogate pair cannot be sent
    except WorkloadError:
        raise
    except Exception as err:  # a template is code of whoever made the model: it may fail in any way
        raise WorkloadError(f"{template.origin}: the chat template refused: {err or type(err).__name__}") from err
    if template.engine_adds_bos and template.bos:
        text = text.removeprefix(template.bos)
    return text


def rendered(prompt: Prompt, template: ChatTemplate, framing: Framing) -> Prompt:
    """The prompt with the text that the template makes of it; raises as :func:`render` does."""
    return dataclasses.replace(prompt, text=render(template, conversation(prompt, framing), framing.thinking))


def knows_thinking(template: ChatTemplate) -> bool:
    """Whether the template reads the word at all: else to ask for thinking, or for none, changes nothing."""
    return "enable_thinking" in template.source


def _bounded(pieces: Iterator[str], origin: str) -> str:
    found, size = [], 0
    for piece in pieces:
        found.append(piece)
        size += len(piece)
        if size > MOST_RENDERED_CHARS:
            raise WorkloadError(f"{origin}: the chat template wrote more than {MOST_RENDERED_CHARS} characters")
    return "".join(found)


def _json(
    value: object,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Plain JSON as templates expect it; Jinja's own filter would write it for HTML."""
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


class _Turns:
    """``range`` for templates: all loops of one rendering together turn at most ``MOST_TURNS`` times."""

    def __init__(self) -> None:
        self._left = MOST_TURNS

    def __call__(self, *arguments: int) -> range:
        found = range(*arguments)
        self._left -= len(found)
        if self._left < 0:
            raise ValueError(f"it loops more than {MOST_TURNS} times")
        return found


def _raise(message: object) -> NoReturn:
    raise ValueError(str(message))

"""Prompt files of our own shape: JSON lines, plain text, a folder of texts."""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any, cast

from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.grading import Grader, answer_grader, parse_grader
from orchestrator.workloads.prompt import LENGTHS, ROLES, LengthClass, Message, MessageRole, Prompt, joined
from orchestrator.workloads.reading import (
    MAX_LINE_CHARACTERS,
    MAX_PROMPTS,
    content,
    label,
    lines_of,
    object_of,
    refuse,
    sendable,
    text_of,
)

_TEXTS = ("text", "prompt", "messages")
_KEYS = (
    "id", "category", "language", *_TEXTS, "answer", "task", "schema", "length", "context_tokens",
)  # fmt: skip
_EXPECTED = "id, text (or prompt, or messages), category, language, answer, task (or schema), length, context_tokens"
_SUFFIXES = (".txt", ".md")
MAX_MESSAGES = 1000
MAX_CONTEXT_TOKENS = 10_000_000


def from_jsonl(path: pathlib.Path) -> list[tuple[int, Prompt]]:
    """The prompts of a file with one JSON object a line, with their line numbers.

    Raises:
        WorkloadError: The file or one of its lines cannot be read.
    """
    return [(number, prompt_of(line, f"{path}:{number}")) for number, line in lines_of(path)]


def from_text(path: pathlib.Path) -> list[tuple[int, Prompt]]:
    """The prompts of a text file, one a line, with their line numbers.

    Raises:
        WorkloadError: The file cannot be read.
    """
    stem = label(path.stem, "name", str(path))
    return [(number, Prompt(f"{stem}-{number}", "user", "und", line)) for number, line in lines_of(path)]


def from_folder(path: pathlib.Path) -> list[tuple[pathlib.Path, Prompt]]:
    """The texts in a folder with their files, by name; each file is one prompt, less the line feed at its end.

    Hidden files do not count, and folders in it are refused rather than overlooked.

    Raises:
        WorkloadError: The folder cannot be read, or holds something else.
    """
    try:
        files = sorted(one for one in path.iterdir() if not one.name.startswith("."))
    except OSError as err:
        message = f"{path}: cannot read the folder: {err.strerror}"
        raise WorkloadError(message) from err
    if len(files) > MAX_PROMPTS:
        refuse(str(path), f"more than {MAX_PROMPTS} files; take out the prompts you want to measure with")
    found = []
    for file in files:
        if file.suffix not in _SUFFIXES:
            refuse(str(file), f"in a folder of prompts every file ends in {' or '.join(_SUFFIXES)}, one prompt each")
        text = text_of(file)
        text = text.removesuffix("\n").removesuffix("\r")
        if not text.strip():
            refuse(str(file), "is empty; take it out of the folder, or write a prompt")
        if len(text) > MAX_LINE_CHARACTERS:
            refuse(str(file), f"more than {MAX_LINE_CHARACTERS >> 20} Mi characters; shorten it")
        found.append((file, Prompt(label(file.stem, "name", str(file)), "user", "und", text)))
    return found


def prompt_of(line: str, where: str) -> Prompt:
    """The prompt in one line of JSON.

    Args:
        line: An object with `id`, one of `text`, `prompt` and `messages`, and optionally `category`, `language`,
            `answer`, `task` or `schema`, `length`, `context_tokens`.
        where: Its file and line number.

    Raises:
        WorkloadError: It is no such object.
    """
    fields = object_of(line, where, _EXPECTED)
    unknown = sorted(set(fields) - set(_KEYS))
    if unknown:
        names = ", ".join(name[:40] for name in unknown[:5])
        refuse(where, f"unknown field {names}; expected {_EXPECTED}")
    name = label(fields.get("id"), "id", where)
    text, messages = _asked(fields, where)
    answer = fields.get("answer")
    return Prompt(
        name,
        label(fields.get("category", "user"), "category", where),
        label(fields.get("language", "und"), "language", where),
        text,
        _answer(answer, where),
        _task(fields, where),
        messages,
        _length(fields.get("length"), where),
        _context(fields.get("context_tokens"), where),
    )


def _asked(fields: Mapping[str, Any], where: str) -> tuple[str, tuple[Message, ...] | None]:
    """The text of the prompt, and the conversation that it comes from, if any."""
    given = [key for key in _TEXTS if key in fields]
    if len(given) != 1:
        found = " and ".join(given) or "none of them"
        refuse(where, f"a prompt has one of 'text', 'prompt' and 'messages'; found {found}")
    key = given[0]
    if key != "messages":
        return content(fields[key], key, where), None
    listed = fields[key]
    if not isinstance(listed, list) or not 1 <= len(listed) <= MAX_MESSAGES:
        refuse(where, f"'messages' must be a list of 1 to {MAX_MESSAGES} messages")
    messages = tuple(_message(one, f"{where}: messages[{number}]") for number, one in enumerate(listed))
    if messages[-1].role != "user":
        refuse(where, "the last of 'messages' must be the user's, for the model to answer")
    if any(message.role == "system" for message in messages[1:]):
        refuse(where, "only the first of 'messages' may be the system's")
    return joined(messages), messages


def _message(given: object, where: str) -> Message:
    if not isinstance(given, dict) or set(given) != {"role", "content"}:
        refuse(where, "must be an object with role and content, and nothing else")
    if given["role"] not in ROLES:
        refuse(where, f"'role' must be one of {', '.join(ROLES)}")
    return Message(cast("MessageRole", given["role"]), content(given["content"], "content", where))


def _answer(given: object, where: str) -> str | None:
    """The one right continuation; that a grader can be made of it is seen here and not during the run."""
    if given is None:
        return None
    if not isinstance(given, str):
        refuse(where, "'answer' must be a text or null")
    if given:
        answer_grader(given, where)
    return sendable(given, "answer", where)


def _task(fields: Mapping[str, Any], where: str) -> Grader | None:
    task, schema = fields.get("task"), fields.get("schema")
    if task is not None and schema is not None:
        refuse(where, "has both 'task' and 'schema'; 'schema' is short for a task of kind json, write one of them")
    if schema is not None:
        if not isinstance(schema, dict):
            refuse(where, "'schema' must be an object, the JSON Schema of the answer")
        task = {"kind": "json", "schema": schema}
    if task is None:
        return None
    if not isinstance(task, dict):
        refuse(where, "'task' must be an object with a kind")
    return parse_grader(task, where)


def _length(given: object, where: str) -> LengthClass | None:
    if given is not None and given not in LENGTHS:
        refuse(where, f"'length' must be one of {', '.join(LENGTHS)}, or null")
    return given


def _context(given: object, where: str) -> int | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int) or not 1 <= given <= MAX_CONTEXT_TOKENS:
        refuse(where, f"'context_tokens' must be a whole number from 1 to {MAX_CONTEXT_TOKENS}, or null")
    return given

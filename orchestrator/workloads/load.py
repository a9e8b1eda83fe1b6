"""Reads a prompt set, by the name of one that comes with the program or from a file of the user's."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Iterable

#: Where the sets that come with the program lie, one `.jsonl` file each.
DATA = pathlib.Path(__file__).parent / "data"
_REQUIRED = ("id", "category", "language", "text")
_KEYS = (*_REQUIRED, "answer")


class WorkloadError(ValueError):
    """A prompt set cannot be found or read; the message says where and what is expected."""


@dataclasses.dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt.

    Attributes:
        id: Unique within its set.
        category: What kind of text it asks for, such as `count` or `prose-ko`.
        language: BCP 47 tag: `en`, `ko`, `zxx` for no natural language, `und` for unknown.
        text: What the model is given, byte for byte.
        answer: The one right continuation, where there is one; a right output starts with it.
    """

    id: str
    category: str
    language: str
    text: str
    answer: str | None = None


def known_names() -> tuple[str, ...]:
    """Names of the prompt sets that come with the program, sorted."""
    return tuple(sorted(path.stem for path in DATA.glob("*.jsonl")))


def load_prompts(name_or_path: str | pathlib.Path) -> tuple[Prompt, ...]:
    """The prompts of a set, in its order; never none.

    Args:
        name_or_path: One of `known_names`, or the path of a `.jsonl` file (one object per line with the fields of
            `Prompt`) or a `.txt` file (one prompt per line, empty lines skipped).

    Raises:
        WorkloadError: No such set or file, an unreadable line, a repeated id, or no prompt at all.
    """
    given = pathlib.Path(name_or_path)
    if given.suffix == "":
        if str(name_or_path) not in known_names():
            message = (
                f"no prompt set {str(name_or_path)!r}; known: {', '.join(known_names())}, or a .jsonl or .txt file"
            )
            raise WorkloadError(message)
        given = DATA / f"{name_or_path}.jsonl"
    if given.suffix not in {".jsonl", ".txt"}:
        message = f"{given}: a prompt file ends in .jsonl or .txt"
        raise WorkloadError(message)
    lines = _lines(given)
    if given.suffix == ".jsonl":
        prompts = tuple(_prompt(line, f"{given}:{number}") for number, line in lines)
    else:
        prompts = tuple(Prompt(f"{given.stem}-{number}", "user", "und", line) for number, line in lines)
    if not prompts:
        message = f"{given}: no prompt in it"
        raise WorkloadError(message)
    _refuse_repeats(given, (number for number, _ in lines), prompts)
    return prompts


def _lines(path: pathlib.Path) -> list[tuple[int, str]]:
    """The lines of `path` that are not blank, with their numbers from 1."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as err:
        message = f"{path}: cannot read the prompts: {err.strerror}"
        raise WorkloadError(message) from err
    except UnicodeDecodeError as err:
        message = f"{path}: not UTF-8 at byte {err.start}; save it as UTF-8"
        raise WorkloadError(message) from err
    # Split at line feeds only: a prompt may hold the other separators `str.splitlines` knows.
    numbered = enumerate((line.removesuffix("\r") for line in text.split("\n")), start=1)
    return [(number, line) for number, line in numbered if line.strip()]


def _prompt(line: str, where: str) -> Prompt:
    """The prompt in one line of JSON; `where` is its file and line number."""
    try:
        fields = json.loads(line)
    except ValueError as err:
        message = f"{where}: not JSON: {err}"
        raise WorkloadError(message) from err
    if not isinstance(fields, dict):
        message = f"{where}: expected an object with {', '.join(_KEYS)}"
        raise WorkloadError(message)
    unknown = sorted(set(fields) - set(_KEYS))
    if unknown:
        message = f"{where}: unknown field {', '.join(unknown)}; expected {', '.join(_KEYS)}"
        raise WorkloadError(message)
    for key in _REQUIRED:
        if not isinstance(fields.get(key), str) or not fields[key]:
            message = f"{where}: {key!r} must be a text that is not empty"
            raise WorkloadError(message)
    answer = fields.get("answer")
    if answer is not None and not isinstance(answer, str):
        message = f"{where}: 'answer' must be a text or null"
        raise WorkloadError(message)
    return Prompt(fields["id"], fields["category"], fields["language"], fields["text"], answer)


def _refuse_repeats(path: pathlib.Path, numbers: Iterable[int], prompts: Iterable[Prompt]) -> None:
    """Refuse two prompts with the same id."""
    seen: dict[str, int] = {}
    for number, prompt in zip(numbers, prompts, strict=True):
        if prompt.id in seen:
            message = f"{path}:{number}: id {prompt.id!r} is already used in line {seen[prompt.id]}"
            raise WorkloadError(message)
        seen[prompt.id] = number

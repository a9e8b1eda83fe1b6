"""Reads a prompt set: one that comes with the program, by its name, or files of the user's, by their path."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from orchestrator.workloads import foreign, own
from orchestrator.workloads.built_in import DATA, SETS, built_in
from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.prompt import Message, Prompt
from orchestrator.workloads.reading import lines_of, refuse

__all__ = [
    "DATA", "FORMATS", "Format", "Message", "Prompt", "WorkloadError", "is_path", "known_names", "load_prompts",
]  # fmt: skip

Format = Literal["jsonl", "text", "folder", "spec-bench", "humaneval"]
"""The shape of a user's files, where they do not tell it themselves."""
FORMATS: tuple[Format, ...] = get_args(Format)

_Placed = Sequence[tuple[int | pathlib.Path, Prompt]]
"""Prompts with the line, or in a folder the file, that each stands in."""
_Reader = Callable[[pathlib.Path], _Placed]
_READERS: Mapping[str, _Reader] = {
    "jsonl": own.from_jsonl,
    "text": own.from_text,
    "folder": own.from_folder,
    "spec-bench": foreign.from_spec_bench,
    "humaneval": foreign.from_humaneval,
}


def known_names() -> tuple[str, ...]:
    """Names of the prompt sets that come with the program, sorted."""
    return tuple(sorted(SETS))


def is_path(name_or_path: str) -> bool:
    """Whether a file or folder is meant rather than a set that comes with the program.

    A path has a suffix or a slash, or begins with `~`: `mine.jsonl`, `./mine`, `~/prompts`.
    """
    return pathlib.PurePath(name_or_path).suffix != "" or "/" in name_or_path or name_or_path.startswith("~")


def load_prompts(name_or_path: str | pathlib.Path, form: str | None = None) -> tuple[Prompt, ...]:
    """The prompts of a set, in its order; never none.

    Args:
        name_or_path: One of `known_names`; or the path of a `.jsonl` file (one JSON object a line), of a `.txt` file
            (one prompt a line, empty lines skipped), or of a folder of `.txt` and `.md` files (one prompt each).
        form: One of `FORMATS`, where the path's end and its first line do not tell it.

    Raises:
        WorkloadError: No such set or file, an unreadable line, a repeated id, or no prompt at all.
    """
    if form is not None and form not in FORMATS:
        message = f"no format {form!r}; there are: {', '.join(FORMATS)}"
        raise WorkloadError(message)
    if isinstance(name_or_path, str) and not is_path(name_or_path):
        if name_or_path not in SETS:
            message = (
                f"no prompt set {name_or_path!r}; known: {', '.join(known_names())}, or a .jsonl or .txt file, "
                "or a folder, written with a slash"
            )
            raise WorkloadError(message)
        if form is not None:
            message = f"the prompt set {name_or_path!r} comes with the program: a format is said of files only"
            raise WorkloadError(message)
        return built_in(name_or_path)
    path = pathlib.Path(name_or_path)
    placed = _READERS[form or _form_of(path)](path)
    if not placed:
        refuse(str(path), "no prompt in it")
    _refuse_repeats(path, placed)
    return tuple(prompt for _, prompt in placed)


def _form_of(path: pathlib.Path) -> Format:
    """The format of what is at `path`, by its kind, its end and, of JSON lines, the keys of the first."""
    if _is_folder(path):
        return "folder"
    if path.suffix == ".txt":
        return "text"
    if path.suffix != ".jsonl":
        refuse(str(path), "a prompt file ends in .jsonl or .txt; of another one say its format")
    first = next((line for _, line in lines_of(path)), "")
    try:
        keys = set(json.loads(first))
    except (ValueError, TypeError, RecursionError):
        return "jsonl"  # its reader says what is wrong, and in which line
    if "id" not in keys:
        if {"question_id", "turns"} <= keys:
            return "spec-bench"
        if {"task_id", "prompt", "entry_point"} <= keys:
            return "humaneval"
    return "jsonl"


def _is_folder(path: pathlib.Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):  # a NUL in the name, for instance: its reader says what is wrong
        return False


def _refuse_repeats(path: pathlib.Path, placed: _Placed) -> None:
    """Refuse two prompts with the same id."""
    seen: dict[str, int | pathlib.Path] = {}
    for place, prompt in placed:
        other = seen.setdefault(prompt.id, place)
        if other is place:
            continue
        if isinstance(place, pathlib.Path) and isinstance(other, pathlib.Path):
            refuse(str(place), f"a file's name without its end is its id, and {other.name} has {prompt.id!r} already")
        refuse(f"{path}:{place}", f"id {prompt.id!r} is already used in line {other}")

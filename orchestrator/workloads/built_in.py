"""The prompt sets that come with the program: which there are, what each is, and where its prompts come from."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import pathlib
from collections.abc import Callable, Iterable, Sequence

from orchestrator.workloads import contexts, own
from orchestrator.workloads.prompt import Prompt

DATA = pathlib.Path(__file__).parent / "data"
"""Where the written sets lie, one `.jsonl` file each."""

CATEGORIES = {
    "code": "write, complete or repair short programs",
    "prose": "stories, descriptions and letters",
    "json": "an answer that must be JSON of a given shape",
    "arithmetic": "sums and word problems with one number as the answer",
    "extraction": "find facts in a text that is given",
    "editing": "copy a text, or copy it with a change that is asked for",
    "translation": "English to Korean and back",
    "summary": "say in a few words what a text says",
    "reasoning": "puzzles to solve step by step, the answer in the last line",
    "chat": "everyday questions and conversations",
}
"""What each category of the full set asks for."""

_LANGUAGES = {"en": "English", "ko": "Korean"}


@dataclasses.dataclass(frozen=True, slots=True)
class PromptSet:
    """A set that comes with the program.

    Attributes:
        name: What a matrix calls it.
        about: What it is, in one line.
        make: Its prompts, in order.
    """

    name: str
    about: str
    make: Callable[[], tuple[Prompt, ...]]


@functools.cache
def built_in(name: str) -> tuple[Prompt, ...]:
    """The prompts of the set `name`; read or made once.

    Raises:
        KeyError: There is no such set.
    """
    return SETS[name].make()


def _written(name: str) -> tuple[Prompt, ...]:
    return tuple(prompt for _, prompt in own.from_jsonl(DATA / f"{name}.jsonl"))


def _full(wanted: Callable[[Prompt], bool]) -> tuple[Prompt, ...]:
    """What is wanted of all categories, dealt out in turns, so that any first few of it are a mixture."""
    groups = []
    for category in CATEGORIES:
        prompts = [prompt for prompt in built_in(category) if wanted(prompt)]
        groups.append(_in_turns([prompt for prompt in prompts if prompt.language == one] for one in ("en", "ko")))
    return tuple(_in_turns(groups))


def _in_turns(groups: Iterable[Sequence[Prompt]]) -> list[Prompt]:
    """The first of each group, then the second of each, and so on."""
    return [prompt for row in itertools.zip_longest(*groups) for prompt in row if prompt is not None]


def _every(_: Prompt) -> bool:
    return True


def _file(name: str, about: str) -> PromptSet:
    return PromptSet(name, about, functools.partial(_written, name))


def _part(name: str, about: str, wanted: Callable[[Prompt], bool]) -> PromptSet:
    return PromptSet(name, about, functools.partial(_full, wanted))


def _half(name: str, language: str) -> PromptSet:
    """The prompts of the set `name` in one language, in its order."""

    def make() -> tuple[Prompt, ...]:
        return tuple(prompt for prompt in built_in(name) if prompt.language == language)

    return PromptSet(f"{name}-{language}", f"the {_LANGUAGES[language]} half of {name}", make)


def _contexts(tokens: int) -> tuple[PromptSet, ...]:
    """The set of a class and its two halves."""
    name = f"context-{tokens // 1024}k"
    about = f"generated reports of about {tokens} tokens with a question at the end whose answer is known"
    return (
        PromptSet(name, about, functools.partial(contexts.prompts, tokens)),
        _half(name, "en"),
        _half(name, "ko"),
    )


_ALL = (
    _file("demo-short", "the corpus of the built-in tiny models: short answers"),
    _file("demo-long", "the corpus of the built-in tiny models: answers of 128 tokens and more"),
    _file("tasks-small", "questions with known answers that a model of 135 million parameters can get right"),
    _file("entropy-ladder", "six kinds of text, from copying to open prose, in as many rungs"),
    _half("entropy-ladder", "en"),
    _half("entropy-ladder", "ko"),
    _part("full", "every category in English and Korean, dealt out in turns", _every),
    _part("full-en", "the English half of full", lambda prompt: prompt.language == "en"),
    _part("full-ko", "the Korean half of full", lambda prompt: prompt.language == "ko"),
    _part("full-short", "the prompts of full whose answers take at most 64 tokens", lambda p: p.length == "short"),
    _part("full-long", "the prompts of full whose answers take 512 tokens and more", lambda p: p.length == "long"),
    *(_file(name, about) for name, about in CATEGORIES.items()),
    *(one for tokens in contexts.CLASSES for one in _contexts(tokens)),
)
SETS = {one.name: one for one in _ALL}
"""Every set by its name, in the order in which they are shown."""

"""The command `workloads`: which prompt sets there are, what is in one, and one prompt whole."""

# ruff: noqa: PLC0415  (start-up stays light)

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cli.tables import plain, table
from orchestrator.schema.errors import SpecmatrixError

if TYPE_CHECKING:
    from orchestrator.workloads.prompt import Prompt

_OPENING_CHARACTERS = 50


def show_workloads(name: str | None, prompt: str | None, form: str | None) -> None:
    """Prints the sets; with a name or a path the prompts of one; with a prompt's id also that prompt, whole.

    Raises:
        SpecmatrixError: there is no such set, file or prompt.
    """
    if name is None:
        _print_sets(Console())
        return
    prompts = _loaded(name, form)
    if prompt is None:
        _print_prompts(Console(), name, prompts)
        return
    found = next((one for one in prompts if one.id == prompt), None)
    if found is None:
        raise SpecmatrixError(f"{name} has no prompt {prompt!r}; `specmatrix workloads {name}` lists them")
    _print_prompt(Console(), found)


def _loaded(name: str, form: str | None) -> tuple[Prompt, ...]:
    from orchestrator.workloads.load import WorkloadError, load_prompts

    try:
        return load_prompts(name, form)
    except WorkloadError as err:
        raise SpecmatrixError(str(err)) from err


def _print_sets(console: Console) -> None:
    from orchestrator.workloads.built_in import CATEGORIES, SETS, built_in
    from orchestrator.workloads.counts import token_counts

    counts = token_counts()
    rows = []
    for one in SETS.values():
        prompts = built_in(one.name)
        tokens = [counts.get(prompt.id, {}).get("smollm2") for prompt in prompts]
        rows.append(
            (
                one.name,
                len(prompts),
                sum(prompt.task is not None or prompt.answer is not None for prompt in prompts),
                _tally(prompt.language for prompt in prompts),
                _tally(prompt.length or "-" for prompt in prompts),
                _range([count for count in tokens if count is not None]),
                one.about,
            )
        )
    columns = ("set", "prompts", "with a task", "languages", "answers", "tokens", "what it is")
    console.print(table("Prompt sets", columns, rows))
    console.print(plain(f"categories of full: {', '.join(CATEGORIES)}"))
    console.print(
        plain("answers: short at most 64 tokens, long 512 and more, - neither; tokens by SmolLM2's tokenizer")
    )
    console.print(plain("a set by its name, or a file of yours by its path: specmatrix workloads NAME"))


def _print_prompts(console: Console, name: str, prompts: Sequence[Prompt]) -> None:
    from orchestrator.workloads.counts import token_counts
    from orchestrator.workloads.load import is_path

    counts = {} if is_path(name) else token_counts()
    rows = [
        (
            prompt.id,
            prompt.category,
            prompt.language,
            prompt.length or "-",
            _task(prompt),
            len(prompt.text),
            *(counts.get(prompt.id, {}).get(tokenizer, "-") for tokenizer in ("tiny", "smollm2")),
            _opening(prompt.text),
        )
        for prompt in prompts
    ]
    columns = ("prompt", "category", "language", "answer", "task", "characters", "tiny", "SmolLM2", "begins")
    console.print(table(f"{name}: {len(prompts)} prompts", columns, rows))
    console.print(plain(f"categories: {_tally(prompt.category for prompt in prompts)}"))
    console.print(plain("tiny, SmolLM2: tokens by the tokenizers of the demo models; - not counted"))
    console.print(plain(f"one of them whole: specmatrix workloads {name} {prompts[0].id}"))


def _print_prompt(console: Console, prompt: Prompt) -> None:
    facts = [
        ("category", prompt.category),
        ("language", prompt.language),
        ("expected answer", prompt.length or "neither short nor long"),
        ("task", json.dumps(json.loads(prompt.task.canonical), ensure_ascii=False) if prompt.task else _task(prompt)),
        *([("context", f"about {prompt.context_tokens} tokens")] if prompt.context_tokens else []),
        *([("right answer begins", prompt.answer)] if prompt.answer is not None else []),
    ]
    console.print(table(prompt.id, ("what", "value"), facts))
    for message in prompt.messages or ():
        console.print(plain(f"\n{message.role}:"), style="bold")
        console.print(plain(message.content), soft_wrap=True)
    if prompt.messages is None:
        console.print(plain(prompt.text), soft_wrap=True)


def _task(prompt: Prompt) -> str:
    if prompt.task is not None:
        return prompt.task.kind
    return "-" if prompt.answer is None else "answer"


def _tally(words: Iterable[str]) -> str:
    """``en 8, ko 8``."""
    return ", ".join(f"{word} {count}" for word, count in Counter(words).items())


def _range(counts: Sequence[int]) -> str:
    return f"{min(counts)}–{max(counts)}" if counts else "-"


def _opening(text: str) -> str:
    line = " ".join(text[: 4 * _OPENING_CHARACTERS].split())
    return line if len(line) <= _OPENING_CHARACTERS else line[: _OPENING_CHARACTERS - 1] + "…"

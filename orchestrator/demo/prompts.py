"""The prompt sets `demo-short` and `demo-long`, drawn from the demo corpus with seeds no training used.

Usage: python -m orchestrator.demo.prompts
which rewrites the two files in orchestrator/workloads/data.
"""

from __future__ import annotations

import json
import random
import sys

from orchestrator.demo import corpus
from orchestrator.workloads.load import DATA, Prompt

#: Far from the seeds in training/: those are small numbers.
HELD_OUT_SEED = 20_001


def _random(name: str) -> random.Random:
    """The source of chance of one prompt, independent of the others' order."""
    return random.Random(f"{HELD_OUT_SEED}/{name}")  # noqa: S311 - reproducible, not a secret


def _opening(text: str, words: int) -> str:
    """The first `words` words of `text`."""
    return " ".join(text.split(" ")[:words])


def short_prompts() -> tuple[Prompt, ...]:
    """One or two prompts of every category; the first three are easy, middling and hard to draft for."""
    count, count_answer = corpus.count_task(_random("count"), shortest=20, longest=24)
    copy, copy_answer = corpus.copy_task(_random("copy"))
    copies, _ = corpus.copy_task(_random("copies"), times=16)
    total, total_answer = corpus.sum_task(_random("sum"))
    record, record_answer = corpus.record_task(_random("record"))
    data = corpus.random_records(_random("data"), 1)
    code = corpus.code(_random("code"), 1)
    story = corpus.prose_en(_random("story"), 3)
    tale = corpus.prose_ko(_random("tale"), 3)
    return (
        Prompt("count-1", "count", "zxx", count, count_answer),
        Prompt("json-data-1", "json", "zxx", data),
        # Six words are copied at once; where an answer may not end, random new words follow, which no draft guesses.
        Prompt("copy-1", "copy", "en", copy, copy_answer),
        Prompt("prose-en-1", "prose-en", "en", _opening(story, 7)),
        Prompt("sum-1", "sum", "zxx", total, total_answer),
        # The tiny target copies faithfully but cannot tell how often: no answer is asked of it.
        Prompt("copy-many-1", "copy", "en", copies),
        # Beyond the tiny target: it keeps the number and invents the words.
        Prompt("json-record-1", "json", "zxx", record, record_answer),
        Prompt("code-1", "code", "zxx", code.split("(", 1)[0]),
        Prompt("prose-ko-1", "prose-ko", "ko", _opening(tale, 4)),
    )


def long_prompts() -> tuple[Prompt, ...]:
    """Prompts whose natural answer has at least 128 tokens."""
    low, low_answer = corpus.count_task(_random("long-count"), shortest=80, longest=90)
    high, high_answer = corpus.count_task(_random("long-count-2"), shortest=70, longest=75)
    copy, _ = corpus.copy_task(_random("long-copy"), times=20)
    story = corpus.prose_en(_random("long-story"), 3)
    return (
        Prompt("long-count-1", "count", "zxx", low, low_answer),
        Prompt("long-prose-en-1", "prose-en", "en", _opening(story, 7)),
        Prompt("long-copy-1", "copy", "en", copy),
        Prompt("long-count-2", "count", "zxx", high, high_answer),
    )


#: What each file in orchestrator/workloads/data is made by.
SETS = {"demo-short": short_prompts, "demo-long": long_prompts}


def as_jsonl(prompts: tuple[Prompt, ...]) -> str:
    """`prompts` as the text of a `.jsonl` file; what these sets never have is left out."""
    keys = ("id", "category", "language", "text", "answer")
    return "".join(
        json.dumps({key: getattr(prompt, key) for key in keys}, ensure_ascii=False) + "\n" for prompt in prompts
    )


def main() -> int:
    """Write every set; the exit code."""
    DATA.mkdir(exist_ok=True)
    for name, make in SETS.items():
        (DATA / f"{name}.jsonl").write_text(as_jsonl(make()), encoding="utf-8")
        sys.stdout.write(f"{DATA / name}.jsonl: {len(make())} prompts\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""The demo corpus: text made by this file alone, so no licence but the project's own attaches to it.

Every document belongs to one category and opens with a cue (`Count`, `Copy`, `Sum`, `Record`, `Data`, `Code`,
`Story`, `이야기`), so a prompt can ask for one. Counting, copying, sums and records have exactly one right answer; code
and prose do not. The same seed gives the same text on every machine: the only source of chance is `random.Random`.
"""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Iterator

from orchestrator.demo import vocabulary as words

#: Words in every copy task. One number, so that a one-layer draft can learn to copy by distance.
COPY_WORDS = 6
#: Largest operand of a sum.
LARGEST_OPERAND = 30
#: Largest number a counting task reaches.
LARGEST_COUNT = 99

#: Share of each category in the corpus. They add up to 1.
MIX: tuple[tuple[str, float], ...] = (
    ("count", 0.17),
    ("copy", 0.12),
    ("sum", 0.08),
    ("json", 0.18),
    ("code", 0.11),
    ("prose-en", 0.18),
    ("prose-ko", 0.16),
)
CATEGORIES: tuple[str, ...] = tuple(name for name, _ in MIX)
#: Categories whose tasks have exactly one right answer.
FIXED_CATEGORIES: tuple[str, ...] = ("count", "copy", "sum", "json")


@dataclasses.dataclass(frozen=True, slots=True)
class Task:
    """A prompt and, where there is one, its right answer.

    Attributes:
        id: Unique within one call of `tasks`.
        category: One of `CATEGORIES`.
        language: BCP 47 tag: `en`, `ko`, or `zxx` for text without a natural language.
        prompt: What the model is given; it ends where the answer begins.
        answer: What a perfect model adds, up to but without the end-of-text token.
    """

    id: str
    category: str
    language: str
    prompt: str
    answer: str


def count_task(rng: random.Random, *, shortest: int = 6, longest: int = 24) -> tuple[str, str]:
    """A counting prompt and its answer, of `shortest` to `longest` numbers."""
    length = rng.randint(shortest, longest)
    first = rng.randint(1, LARGEST_COUNT - length + 1)
    last = first + length - 1
    return f"Count from {first} to {last}:", "".join(f" {n}," for n in range(first, last)) + f" {last}.\n"


def copy_task(rng: random.Random, *, times: int = 1) -> tuple[str, str]:
    """A copying prompt and its answer: the same six words, `times` times."""
    items = " ".join(rng.choice(words.NOUNS_EN + words.ADJECTIVES_EN) for _ in range(COPY_WORDS))
    cue = "Copy" if times == 1 else f"Copy {times} times"
    return f"{cue}: {items} =>", " =>".join([f" {items}"] * times) + "\n"


def sum_task(rng: random.Random) -> tuple[str, str]:
    """A sum of two numbers from 1 to `LARGEST_OPERAND` and its answer."""
    left, right = rng.randint(1, LARGEST_OPERAND), rng.randint(1, LARGEST_OPERAND)
    return f"Sum: {left} + {right} =", f" {left + right}\n"


def record_task(rng: random.Random) -> tuple[str, str]:
    """A prompt that lists the fields of a record and, as its answer, the record as one line of JSON."""
    kind, colour = rng.choice(words.NOUNS_EN), rng.choice(words.ADJECTIVES_EN)
    count, ready = rng.randint(1, 99), rng.choice((True, False))
    record = json.dumps({"kind": kind, "colour": colour, "count": count, "ready": ready})
    return f"Record: {record[1:-1]} =>", f" {record}\n"


def random_records(rng: random.Random, rows: int) -> str:
    """`rows` lines of JSON whose values nothing predicts: the text a draft model cannot help with."""
    lines = ["Data:\n"]
    for _ in range(rows):
        record = {
            "id": rng.randint(1, 99),
            "kind": rng.choice(words.NOUNS_EN),
            "tags": [rng.choice(words.ADJECTIVES_EN), rng.choice(words.ADJECTIVES_EN)],
            "size": [rng.randint(1, 99), rng.randint(1, 99)],
        }
        lines.append(json.dumps(record) + "\n")
    return "".join(lines)


def code(rng: random.Random, functions: int) -> str:
    """`functions` small Python functions; each parses and returns a number for numbers."""
    parts = ["Code:\n"]
    for _ in range(functions):
        name = rng.choice(words.FUNCTION_NAMES)
        first, second = rng.sample(words.ARGUMENT_NAMES, 2)
        operator = rng.choice(("+", "-", "*"))
        bound = rng.randint(1, 99)
        parts.append(f"def {name}({first}, {second}):\n    result = {first} {operator} {second}\n")
        if rng.random() < 0.5:
            parts.append(f"    if result > {bound}:\n        return {bound}\n")
        parts.append("    return result\n\n")
    return "".join(parts)


def prose_en(rng: random.Random, sentences: int) -> str:
    """An English paragraph of `sentences` sentences about one thing."""
    hero, adjective = rng.choice(words.NOUNS_EN), rng.choice(words.ADJECTIVES_EN)
    parts = [f"Story: {rng.choice(words.TIMES_EN)} the {adjective} {hero} stands {rng.choice(words.PLACES_EN)}."]
    for _ in range(sentences - 1):
        other, place = rng.choice(words.NOUNS_EN), rng.choice(words.PLACES_EN)
        tint, verb = rng.choice(words.ADJECTIVES_EN), rng.choice(words.VERBS_EN)
        parts.append(
            rng.choice(
                (
                    f" The {hero} {verb} the {tint} {other} {place}.",
                    f" {rng.choice(words.TIMES_EN)} a {tint} {other} waits {place}, and the {hero} {verb} it.",
                    f" Nobody moves the {hero}, because the {other} is {tint}.",
                    f" The {other} is {tint}, but the {adjective} {hero} is still {place}.",
                    f" When the {other} falls {place}, the {hero} stays where it is.",
                )
            )
        )
    return "".join(parts) + "\n"


def prose_ko(rng: random.Random, sentences: int) -> str:
    """A Korean paragraph of `sentences` sentences about one thing, with particles that fit."""
    hero, adjective = rng.choice(words.NOUNS_KO), rng.choice(words.ADJECTIVES_KO)
    time, place = rng.choice(words.TIMES_KO), rng.choice(words.PLACES_KO)
    parts = [f"이야기: {time} {adjective} {words.subject(hero)} {place} 있다."]
    for _ in range(sentences - 1):
        other, place = rng.choice(words.NOUNS_KO), rng.choice(words.PLACES_KO)
        tint, time = rng.choice(words.ADJECTIVES_KO), rng.choice(words.TIMES_KO)
        parts.append(
            rng.choice(
                (
                    f" {words.topic(hero)} {place} {tint} {words.object_(other)} 본다.",
                    f" {time} {tint} {words.subject(other)} {place} 놓인다.",
                    f" {words.subject(other)} {place} 있으면 {words.topic(hero)} 움직이지 않는다.",
                    f" {words.topic(other)} {tint} 것이지만 {adjective} {words.topic(hero)} 아직 {place} 있다.",
                )
            )
        )
    return "".join(parts) + "\n"


def _fixed(rng: random.Random, category: str) -> tuple[str, str]:
    """A short task of one of `FIXED_CATEGORIES`."""
    if category == "count":
        return count_task(rng)
    if category == "copy":
        return copy_task(rng)
    if category == "sum":
        return sum_task(rng)
    if category == "json":
        return record_task(rng)
    message = f"category {category!r} has no fixed answers; expected one of {', '.join(FIXED_CATEGORIES)}"
    raise ValueError(message)


def document(rng: random.Random, category: str) -> str:
    """One document of `category`, without its end-of-text token.

    Raises:
        ValueError: `category` is none of `CATEGORIES`.
    """
    if category == "prose-en":
        return prose_en(rng, rng.randint(3, 14))
    if category == "prose-ko":
        return prose_ko(rng, rng.randint(3, 10))
    if category == "code":
        return code(rng, rng.randint(1, 6))
    if category == "json" and rng.random() < 0.5:
        return random_records(rng, rng.randint(1, 6))
    if category == "count" and rng.random() < 0.2:
        return "".join(count_task(rng, shortest=40, longest=95))
    if category == "copy" and rng.random() < 0.5:
        return "".join(copy_task(rng, times=rng.randint(2, 24)))
    repeats = rng.randint(2, 8) if category == "sum" else rng.randint(1, 4)
    return "".join(text for _ in range(repeats) for text in _fixed(rng, category))


def documents(seed: int, characters: int) -> Iterator[str]:
    """Documents in the proportions of `MIX`, until they hold `characters` characters.

    Args:
        seed: Seed of the only random source.
        characters: Least number of characters in all documents together.
    """
    rng = random.Random(seed)  # noqa: S311 - a reproducible corpus, not a secret
    names, shares = zip(*MIX, strict=True)
    written = 0
    # Drawn by characters, not by documents: a story is as long as twenty sums.
    sizes = dict.fromkeys(names, 0)
    wanted = dict(zip(names, shares, strict=True))
    while written < characters:
        behind = [wanted[name] * (written + 1000) - sizes[name] for name in names]
        category = rng.choices(names, [max(gap, 1.0) for gap in behind])[0]
        text = document(rng, category)
        sizes[category] += len(text)
        written += len(text)
        yield text


def tasks(seed: int, each: int) -> Iterator[Task]:
    """Tasks with right answers, `each` of every category in `FIXED_CATEGORIES`.

    Args:
        seed: Seed of the only random source; use one the training never used.
        each: Number of tasks of each category.
    """
    for category in FIXED_CATEGORIES:
        rng = random.Random(f"{seed}/{category}")  # noqa: S311 - reproducible, not a secret
        for number in range(each):
            prompt, answer = _fixed(rng, category)
            language = "en" if category == "copy" else "zxx"
            yield Task(f"{category}-{number:03d}", category, language, prompt, answer)

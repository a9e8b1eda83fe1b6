"""Long contexts made of sentences: reports whose entries are facts, with a question at the end whose answer is known.

The same class gives the same texts on every machine. Every report has entries of its own from its first words on, so
that no two share a beginning that a prompt cache could keep.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
import random
import re
from collections.abc import Callable, Mapping
from typing import Any

from orchestrator.workloads.context_words import LANGUAGES, MONTHS_EN, Words
from orchestrator.workloads.grading import parse_grader
from orchestrator.workloads.prompt import LengthClass, Prompt

CLASSES = (1024, 4096, 16384, 32768)
"""Classes of context, in tokens."""

ASCII_PER_TOKEN = 4.05
"""Characters of English words, spaces and marks per token."""
HANGUL_PER_TOKEN = 0.97
"""Syllables of Korean per token, in vocabularies made for Korean among others."""

_SEED = 6_011
_DIGIT = re.compile(r"[0-9]")
_PARTICLE = re.compile(r"\{(\w+):([가-힣]+)/([가-힣]+)\}")
_LETTERS = "BCDFGHJKLMNPRSTVWZ"


def estimated_tokens(text: str) -> float:
    """About how many tokens a text has, by its characters: digits one each, the others by their script's rate.

    Vocabularies differ. On these texts the estimate is within a tenth for vocabularies of 100 000 tokens and more that
    were made for both languages; docs/workloads.md has the counts.
    """
    digits = len(_DIGIT.findall(text))
    ascii_ = len(text.encode("ascii", "ignore")) - digits
    return digits + ascii_ / ASCII_PER_TOKEN + (len(text) - digits - ascii_) / HANGUL_PER_TOKEN


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a report: its text, and the facts that questions ask for."""

    number: int
    goods: str
    store: str
    crates: int
    seal: str
    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class Question:
    """What is asked of a report: the words, and how the answer is judged."""

    words: str
    answer: str | None
    task: Mapping[str, Any] | None
    length: LengthClass | None


def prompts(tokens: int, measure: Callable[[str], float] = estimated_tokens) -> tuple[Prompt, ...]:
    """Ten prompts of about `tokens` tokens, five kinds of question in each language, in turns.

    Args:
        tokens: The class; no prompt is larger by `measure`, and none smaller by more than one entry.
        measure: The length of a text in tokens: the estimate, or a tokenizer's own count.

    Raises:
        ValueError: The class is too small for a report.
    """
    return tuple(_prompt(tokens, kind, language, measure) for kind in _KINDS for language in LANGUAGES)


def report(seed: str, language: str, room: float, measure: Callable[[str], float]) -> tuple[str, list[Entry]]:
    """A report that fills `room` tokens by `measure`, and its entries.

    Raises:
        ValueError: There is not room for six entries.
    """
    rng = random.Random(f"{_SEED}/{seed}/{language}")  # noqa: S311 - reproducible, not a secret
    words = LANGUAGES[language]
    title = rng.choice(words.titles).format(number=rng.randint(2, 99))
    day = dt.date(2019, 1, 1) + dt.timedelta(days=rng.randint(0, 1500))
    entries: list[Entry] = []
    seals: set[str] = set()
    used = measure(title + "\n\n")
    while True:
        day += dt.timedelta(days=rng.choice((0, 1, 1, 2)))
        entry = _entry(rng, words, language, len(entries) + 1, day, seals)
        used += measure(entry.text + "\n\n")
        if used > room:
            break
        entries.append(entry)
        seals.add(entry.seal)
    if len(entries) < 6:
        message = f"no room for a report in {room:.0f} tokens"
        raise ValueError(message)
    return title + "\n\n" + "\n\n".join(entry.text for entry in entries), entries


def _prompt(tokens: int, kind: str, language: str, measure: Callable[[str], float]) -> Prompt:
    seed = f"{tokens}/{kind}"
    rng = random.Random(f"{_SEED}/question/{seed}/{language}")  # noqa: S311 - as above
    longest = _KINDS[kind](_PROBE, language).words
    text, entries = report(seed, language, tokens - measure("\n\n" + longest), measure)
    # Neither the first nor the last entries: those are found without reading.
    question = _KINDS[kind](entries[rng.randint(2, len(entries) - 3)], language)
    return Prompt(
        id=f"context-{tokens // 1024}k-{kind}-{language}",
        category=f"context-{kind}",
        language=language,
        text=f"{text}\n\n{question.words}",
        answer=question.answer,
        task=None if question.task is None else parse_grader(question.task, f"context-{kind}"),
        length=question.length,
        context_tokens=tokens,
    )


def _entry(rng: random.Random, words: Words, language: str, number: int, day: dt.date, seals: set[str]) -> Entry:
    goods, store, crates = rng.choice(words.goods), rng.choice(words.stores), rng.randint(3, 98)
    seal = _seal(rng)
    while seal in seals:
        seal = _seal(rng)
    slots = {"goods": goods, "store": store, "count": str(crates), "seal": seal, "carrier": rng.choice(words.carriers)}
    date = f"{day.day} {MONTHS_EN[day.month - 1]}" if language == "en" else f"{day.month}월 {day.day}일"
    slots["when"] = rng.choice(words.times).format(date=date)
    weather = rng.choice(words.weather)  # one for the whole entry, so that no two remarks of it disagree
    slots |= {"weather": weather, "weather_start": _capital(weather)}
    if language == "en":
        slots["when"] += ","
    head = f"Entry {number}." if language == "en" else f"{number}번 기록."
    sentences = [rng.choice(words.arrivals), rng.choice(words.seals), *rng.sample(words.remarks, rng.randint(1, 3))]
    told = [_filled(sentence, _varied(rng, words, slots)) for sentence in sentences[2:]]
    text = " ".join([head, _filled(sentences[0], slots), _filled(sentences[1], slots), *told])
    return Entry(number, goods, store, crates, seal, text)


def _varied(rng: random.Random, words: Words, slots: Mapping[str, str]) -> dict[str, str]:
    """The slots of a remark: the entry's own goods, carrier and weather, another store, and a number by chance."""
    store = rng.choice([one for one in words.stores if one != slots["store"]])
    more = {"carrier_start": _capital(slots["carrier"])}
    return {**slots, **more, "store": store, "number": str(rng.randint(2, min(9, int(slots["count"]))))}


def _filled(sentence: str, slots: Mapping[str, str]) -> str:
    """The sentence with its slots filled, Korean particles by the word before them."""

    def with_particle(match: re.Match[str]) -> str:
        word = slots[match[1]]
        return word + particle(word, match[2], match[3])

    return _PARTICLE.sub(with_particle, sentence).format_map(slots)


def particle(word: str, after_consonant: str, after_vowel: str) -> str:
    """The form of a Korean particle behind `word`, which ends in a syllable; `으로` becomes `로` after ㄹ too."""
    final = (ord(word[-1]) - 0xAC00) % 28
    if after_consonant == "으로" and final == 8:
        return after_vowel
    return after_consonant if final else after_vowel


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _seal(rng: random.Random) -> str:
    return "".join(rng.choice(_LETTERS) for _ in range(2)) + f"-{rng.randint(1000, 9999)}"


def _crates(entry: Entry, language: str) -> Question:
    words = {
        "en": f"How many crates did entry {entry.number} of the report count? Answer with the number alone.",
        "ko": f"이 보고서의 {entry.number}번 기록에서 센 상자는 모두 몇 개인가? 숫자만 답하라.",
    }
    return Question(words[language], None, _told_first(str(entry.crates), entry, language), "short")


def _seal_of(entry: Entry, language: str) -> Question:
    words = {
        "en": f"Which seal did entry {entry.number} of the report have? Answer with the seal alone.",
        "ko": f"이 보고서의 {entry.number}번 기록에 적힌 봉인은 무엇인가? 봉인만 답하라.",
    }
    return Question(words[language], None, _told_first(entry.seal, entry, language), "short")


def _told_first(fact: str, entry: Entry, language: str) -> dict[str, Any]:
    """The task whose right answer names the fact and no other figure, up to the end of that line.

    The entry's own number may stand before it or behind it ("Entry 7 counted 74 crates"). What follows in later lines
    does not count: a model that is given raw text often goes on.
    """
    named = rf"entry (?:number |no\. ?)?{entry.number}\b" if language == "en" else rf"{entry.number}번"
    before = rf"(?:[^0-9]*{named})?(?:[^0-9]*[^0-9A-Za-z.,\-−])?"
    after = rf"(?:[^0-9\n]*{named})?[^0-9\n]*(?:\n(?s:.*))?"
    return {"kind": "regex", "pattern": before + re.escape(fact) + after, "match": "full", "ignore_case": True}


def _json(entry: Entry, language: str) -> Question:
    shape = '{"entry": number, "goods": text, "crates": number, "seal": text}'
    words = {
        "en": f"Write entry {entry.number} of the report as one JSON object of the shape {shape}, and nothing else.",
        "ko": f"이 보고서의 {entry.number}번 기록을 {shape} 모양의 JSON 객체 하나로 쓰고 다른 말은 하지 마라.",
    }
    facts = {"entry": entry.number, "goods": entry.goods, "crates": entry.crates, "seal": entry.seal}
    schema = {
        "type": "object",
        "properties": {
            "entry": {"type": "integer"},
            "goods": {"type": "string"},
            "crates": {"type": "integer"},
            "seal": {"type": "string"},
        },
        "required": list(facts),
        "additionalProperties": False,
    }
    return Question(words[language], None, {"kind": "json", "schema": schema, "equals": facts}, "short")


def _quote(entry: Entry, language: str) -> Question:
    words = {
        "en": f"Copy entry {entry.number} of the report word for word, from its number to its last sentence.",
        "ko": f"이 보고서의 {entry.number}번 기록을 번호부터 마지막 문장까지 그대로 옮겨 적어라.",
    }
    task = {"kind": "exact", "answer": entry.text, "take": "whole"}
    return Question(words[language], None, task, None)


def _retell(_: Entry, language: str) -> Question:
    words = {
        "en": "Retell the whole report for somebody who has not read it, in at least six hundred words.",
        "ko": "이 보고서를 읽지 않은 사람에게 전체 내용을 육백 단어 이상으로 자세히 풀어서 이야기하라.",
    }
    return Question(words[language], None, None, "long")


_KINDS: Mapping[str, Callable[[Entry, str], Question]] = {
    "number": _crates,
    "seal": _seal_of,
    "json": _json,
    "copy": _quote,
    "retell": _retell,
}
_PROBE = Entry(9999, "", "", 99, "XX-9999", "")
"""An entry whose number is as long as any, to leave room for the question."""

from __future__ import annotations

import pathlib

import pytest

from orchestrator.demo import corpus, prompts
from orchestrator.workloads.load import DATA, Prompt, WorkloadError, known_names, load_prompts


@pytest.mark.parametrize("name", sorted(prompts.SETS))
def test_the_committed_sets_are_the_generated_ones(name: str) -> None:
    assert (DATA / f"{name}.jsonl").read_text(encoding="utf-8") == prompts.as_jsonl(prompts.SETS[name]())
    assert load_prompts(name) == prompts.SETS[name]()


def test_the_short_set_covers_every_category_and_opens_with_three() -> None:
    chosen = load_prompts("demo-short")
    assert len(chosen) >= 8
    assert {prompt.category for prompt in chosen} == set(corpus.CATEGORIES)
    assert len({prompt.category for prompt in chosen[:3]}) == 3


def test_the_known_sets_are_listed() -> None:
    assert {"demo-long", "demo-short"} <= set(known_names())
    with pytest.raises(WorkloadError, match=r"no prompt set 'demo-huge'; known: .*demo-long, demo-short"):
        load_prompts("demo-huge")


def test_a_text_file_gives_one_prompt_per_line(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.txt"
    path.write_text("\ufeffHello  \r\n\n등불\u2028x\n", encoding="utf-8", newline="")
    assert load_prompts(path) == (
        Prompt("mine-1", "user", "und", "Hello  "),
        Prompt("mine-3", "user", "und", "등불\u2028x"),
    )


GOOD = '{"id": "a", "category": "c", "language": "en", "text": "t"}\n'


def test_a_jsonl_file_of_the_users_is_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(GOOD + GOOD.replace('"a"', '"b"').replace("}", ', "answer": "x"}'), encoding="utf-8")
    assert load_prompts(str(path)) == (Prompt("a", "c", "en", "t"), Prompt("b", "c", "en", "t", "x"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (GOOD + "{", r"mine\.jsonl:2: not JSON"),
        ("[]", r"mine\.jsonl:1: expected an object with id, text \(or prompt, or messages\), category"),
        (GOOD.replace("}", ', "extra": 1}'), r":1: unknown field extra; expected id"),
        (GOOD.replace('"t"', '""'), r":1: 'text' must be a text that is not empty"),
        (GOOD.replace('"id": "a", ', ""), r":1: 'id' must be a text"),
        (GOOD.replace("}", ', "answer": 3}'), r":1: 'answer' must be a text or null"),
        ("\n" + GOOD + "\n" + GOOD, r":4: id 'a' is already used in line 2"),
        ("\n\n", r"mine\.jsonl: no prompt in it"),
    ],
)
def test_a_bad_line_is_named(tmp_path: pathlib.Path, content: str, message: str) -> None:
    path = tmp_path / "mine.jsonl"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(WorkloadError, match=message):
        load_prompts(path)


def test_an_unreadable_file_is_named(tmp_path: pathlib.Path) -> None:
    with pytest.raises(WorkloadError, match=r"gone\.jsonl: cannot read the prompts: No such file"):
        load_prompts(tmp_path / "gone.jsonl")
    path = tmp_path / "latin.txt"
    path.write_bytes(b"caf\xe9\n")
    with pytest.raises(WorkloadError, match=r"latin\.txt:1: not UTF-8 at byte 4 of the line"):
        load_prompts(path)
    with pytest.raises(WorkloadError, match=r"a prompt file ends in \.jsonl or \.txt"):
        load_prompts(tmp_path / "prompts.csv")

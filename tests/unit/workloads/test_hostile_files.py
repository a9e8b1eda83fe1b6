"""Whatever is in a file, it gives prompts or a WorkloadError: never another exception."""

from __future__ import annotations

import json
import string

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.load import FORMATS, Prompt, load_prompts

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
)
KEYS = st.sampled_from(
    ["id", "text", "prompt", "messages", "category", "language", "answer", "task", "schema", "length", "context_tokens",
     "question_id", "turns", "task_id", "entry_point", "kind", "role", "content"]
)  # fmt: skip
TASK = st.dictionaries(
    st.sampled_from(["kind", "answer", "value", "pattern", "schema", "tools"]),
    JSON | st.sampled_from(["exact", "json", "regex"]),
    max_size=4,
)
MESSAGES = st.lists(
    st.dictionaries(st.sampled_from(["role", "content"]), JSON | st.sampled_from(["user", "system"]), max_size=2),
    max_size=3,
)
ROWS = st.dictionaries(KEYS, JSON | TASK | MESSAGES | st.lists(st.text(max_size=4), max_size=2), max_size=8)
QUICK = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


def read(path, form):
    try:
        prompts = load_prompts(path, form)
    except WorkloadError:
        return
    assert prompts
    assert len({prompt.id for prompt in prompts}) == len(prompts)
    for prompt in prompts:
        assert isinstance(prompt, Prompt)
        assert prompt.text
        prompt.text.encode()
        assert "\x00" not in prompt.text


@QUICK
@given(rows=st.lists(ROWS | JSON, max_size=3), form=st.sampled_from([None, *FORMATS]))
def test_any_json(tmp_path, rows, form):
    path = tmp_path / "any.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    read(path, form)


@QUICK
@given(raw=st.binary(max_size=200), form=st.sampled_from([None, *FORMATS]))
def test_any_bytes(tmp_path, raw, form):
    path = tmp_path / "any.jsonl"
    path.write_bytes(raw)
    read(path, form)


@QUICK
@given(text=st.text(string.printable + "가\u2028\ud7ff", max_size=200), end=st.sampled_from(["any.txt", "any.jsonl"]))
def test_any_text(tmp_path, text, end):
    path = tmp_path / end
    path.write_text(text, encoding="utf-8", newline="")
    read(path, None)


@QUICK
@given(
    texts=st.lists(
        st.text(min_size=1, max_size=30).filter(
            lambda t: "\x00" not in t and not any("\ud800" <= c <= "\udfff" for c in t)
        ),
        min_size=1,
        max_size=4,
    )
)
def test_what_is_right_comes_back_as_it_was(tmp_path, texts):
    path = tmp_path / "right.jsonl"
    path.write_text(
        "".join(json.dumps({"id": str(n), "text": text}) + "\n" for n, text in enumerate(texts)), encoding="utf-8"
    )
    assert [prompt.text for prompt in load_prompts(path)] == texts


@pytest.mark.parametrize("depth", [10, 65, 1000, 200_000])
def test_a_deep_schema(tmp_path, depth):
    path = tmp_path / "deep.jsonl"
    path.write_text(
        '{"id": "a", "text": "t", "schema": ' + '{"not": ' * depth + "{}" + "}" * depth + "}", encoding="utf-8"
    )
    read(path, None)


def test_a_huge_line(tmp_path):
    path = tmp_path / "huge.txt"
    path.write_text("a" * ((4 << 20) + 1), encoding="utf-8")
    with pytest.raises(WorkloadError, match=r"huge\.txt:1: a line of more than 4 Mi characters; shorten it"):
        load_prompts(path)


def test_many_keys_of_one_name_are_told_at_once(tmp_path):
    path = tmp_path / "keys.jsonl"
    body = ", ".join(f'"k{number}": 0' for number in range(100_000))
    path.write_text("{" + body + ', "k99999": 1}', encoding="utf-8")
    with pytest.raises(WorkloadError, match="key 'k99999' is there twice"):
        load_prompts(path)

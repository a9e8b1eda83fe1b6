"""Prompt files of the user's own: JSON lines, text, a folder; strict, with the line that is wrong."""

from __future__ import annotations

import json
import os
import sys

import pytest

from orchestrator.workloads import reading
from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.grading import parse_grader
from orchestrator.workloads.load import Message, Prompt, is_path, load_prompts


def written(tmp_path, *rows, name="mine.jsonl"):
    path = tmp_path / name
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def fault(path, **more):
    with pytest.raises(WorkloadError) as caught:
        load_prompts(path, **more)
    return str(caught.value).replace(f"{path.parent}/", "")


def test_only_id_and_what_is_asked_are_needed(tmp_path):
    path = written(tmp_path, {"id": "a", "prompt": "one"}, {"id": "b", "text": "둘"})
    assert load_prompts(path) == (Prompt("a", "user", "und", "one"), Prompt("b", "user", "und", "둘"))


def test_every_field_is_read(tmp_path):
    task = {"kind": "numeric", "value": 4}
    row = {
        "id": "a", "category": "sum", "language": "en", "text": "2 + 2 =", "answer": " 4", "task": task, "length": "short",
        "context_tokens": 1024,
    }  # fmt: skip
    (prompt,) = load_prompts(written(tmp_path, row))
    grader = parse_grader(task, "x")
    assert prompt == Prompt("a", "sum", "en", "2 + 2 =", " 4", grader, None, "short", 1024)


def test_a_schema_is_short_for_a_task_of_kind_json(tmp_path):
    schema = {"type": "object", "required": ["a"]}
    short, long = load_prompts(
        written(
            tmp_path,
            {"id": "a", "prompt": "p", "schema": schema},
            {"id": "b", "prompt": "p", "task": {"kind": "json", "schema": schema}},
        )
    )
    assert short.task == long.task
    assert short.task is not None


def test_a_conversation_keeps_its_messages_and_has_a_text(tmp_path):
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello."},
        {"role": "user", "content": "안녕?"},
    ]
    (prompt,) = load_prompts(written(tmp_path, {"id": "a", "messages": messages}))
    assert prompt.messages == tuple(Message(one["role"], one["content"]) for one in messages)
    assert prompt.text == "Be brief.\n\nHi\n\nHello.\n\n안녕?"
    assert prompt.conversation == prompt.messages
    (plain,) = load_prompts(written(tmp_path, {"id": "a", "text": "Hi"}))
    assert plain.messages is None
    assert plain.conversation == (Message("user", "Hi"),)


U = {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "a prompt has one of 'text', 'prompt' and 'messages'; found none of them"),
        ({"text": "a", "messages": [U]}, "found text and messages"),
        ({"prompt": ""}, "'prompt' must be a text that is not empty"),
        ({"prompt": 3}, "'prompt' must be a text that is not empty"),
        ({"prompt": None}, "'prompt' must be a text that is not empty"),
        ({"prompt": "a\x00b"}, "'prompt' holds a NUL character"),
        ({"prompt": "a", "answer": "b\x00"}, "'answer' holds a NUL character"),
        ({"prompt": "a", "answer": 3}, "'answer' must be a text or null"),
        ({"prompt": "a", "answer": " "}, "task: 'answer' ' ' is empty after lead"),
        ({"prompt": "a", "task": {"kind": "numeric", "value": 10**400}}, "'value' is beyond what a number can hold"),
        ({"prompt": "a", "schema": {"type": "object", "$schema": 5}}, "$schema must be"),
        ({"prompt": "a", "id": 3}, "'id' must be a text that is not empty"),
        ({"prompt": "a", "id": "b" * 201}, "'id' must be at most 200 printable characters"),
        ({"prompt": "a", "id": "b\nc"}, "'id' must be at most 200 printable characters"),
        ({"prompt": "a", "category": ""}, "'category' must be a text that is not empty"),
        ({"prompt": "a", "language": ["en"]}, "'language' must be a text that is not empty"),
        ({"prompt": "a", "length": "medium"}, "'length' must be one of short, long, or null"),
        ({"prompt": "a", "length": ["short"]}, "'length' must be one of short, long, or null"),
        ({"prompt": "a", "context_tokens": True}, "'context_tokens' must be a whole number"),
        ({"prompt": "a", "context_tokens": 0}, "'context_tokens' must be a whole number"),
        ({"prompt": "a", "task": "exact"}, "'task' must be an object with a kind"),
        ({"prompt": "a", "task": {"kind": "guess"}}, "task: 'kind' must be one of exact, numeric"),
        ({"prompt": "a", "schema": True}, "'schema' must be an object, the JSON Schema of the answer"),
        ({"prompt": "a", "schema": {}, "task": {"kind": "json"}}, "has both 'task' and 'schema'"),
        ({"messages": []}, "'messages' must be a list of 1 to 1000 messages"),
        ({"messages": {}}, "'messages' must be a list of 1 to 1000 messages"),
        ({"messages": [U] * 1001}, "'messages' must be a list of 1 to 1000 messages"),
        ({"messages": ["hi"]}, "messages[0]: must be an object with role and content, and nothing else"),
        ({"messages": [{**U, "name": "x"}]}, "messages[0]: must be an object with role and content"),
        ({"messages": [{**U, "role": "tool"}]}, "messages[0]: 'role' must be one of system, user, assistant"),
        ({"messages": [{**U, "role": []}]}, "messages[0]: 'role' must be one of system, user, assistant"),
        ({"messages": [U, {**U, "content": ""}]}, "messages[1]: 'content' must be a text that is not empty"),
        ({"messages": [{**U, "role": "assistant"}]}, "the last of 'messages' must be the user's"),
        ({"messages": [U, {**U, "role": "system"}, U]}, "only the first of 'messages' may be the system's"),
    ],
)
def test_a_wrong_field_is_named_with_its_line(tmp_path, more, message):
    path = written(tmp_path, {"id": "first", "prompt": "p"}, {"id": "a", **more})
    said = fault(path)
    assert said.startswith("mine.jsonl:2: ")
    assert message in said


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "not JSON"),
        ('{"id": "a", "id": "b", "text": "t"}', "key 'id' is there twice"),
        ('{"id": "a", "text": "t", "context_tokens": NaN}', "NaN is no JSON value"),
        ('{"id": "a", "text": "t", "context_tokens": 1e999}', "1e999 is too large a number"),
        ('{"id": "a", "text": "t", "context_tokens": ' + "9" * 5000 + "}", "not JSON"),
        ("[" * 100_000, "nested too deeply to be a prompt"),
        ('{"id": "a", "text": "\\ud800"}', "'text' holds half of a surrogate pair"),
        ("7", "expected an object with id, text"),
    ],
)
def test_what_is_no_object_is_named_with_its_line(tmp_path, line, message):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "first", "text": "t"}\n\n' + line + "\n", encoding="utf-8")
    said = fault(path)
    assert said.startswith("mine.jsonl:3: ")
    assert message in said
    assert len(said) < 500


def test_a_file_is_read_within_limits(tmp_path, monkeypatch):
    path = written(tmp_path, *({"id": str(number), "text": "t" * 50} for number in range(20)))
    monkeypatch.setattr(reading, "MAX_PROMPTS", 19)
    assert fault(path) == "mine.jsonl: more than 19 lines; take out the prompts you want to measure with"
    monkeypatch.setattr(reading, "MAX_LINE_CHARACTERS", 60)
    assert fault(path).startswith("mine.jsonl:1: a line of more than 0 Mi characters")
    monkeypatch.setattr(reading, "MAX_FILE_BYTES", 100)
    assert fault(path).startswith("mine.jsonl: larger than 0 MiB")
    nul = tmp_path / "nul.txt"
    nul.write_bytes(b"one\ntwo\n\x00\n")
    monkeypatch.undo()
    assert fault(nul) == "nul.txt:3: holds a NUL character; this is no text file"


def test_a_broken_character_is_told_with_its_line(tmp_path):
    path = tmp_path / "mine.jsonl"
    for start in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(start + '{"id": "가", "text": "t"}\n'.encode() + b'{"id": "\xff"}\n')
        assert fault(path) == "mine.jsonl:2: not UTF-8 at byte 9 of the line; save it as UTF-8"
    path.write_bytes(b"\xff")
    assert fault(path).startswith("mine.jsonl:1: not UTF-8 at byte 1 of the line")


def test_a_fault_in_json_names_one_line(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text('{"id": "first", "text": "t"}\n{"id": "a" "text": "t"}\n', encoding="utf-8")
    assert fault(path) == "mine.jsonl:2: not JSON: Expecting ',' delimiter (column 12)"


@pytest.mark.parametrize("name", ["mine.txt", "mine.jsonl"])
def test_lines_that_end_in_a_carriage_return_alone_are_refused(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(b"one\rtwo\r")
    assert "its lines end in a carriage return alone" in fault(path)
    text = tmp_path / "one.txt"
    text.write_bytes(b"one\r")
    assert [prompt.text for prompt in load_prompts(text)] == ["one"]
    text.write_bytes(b"one\r\ntwo\r\n")
    assert [prompt.text for prompt in load_prompts(text)] == ["one", "two"]


def test_the_limits_are_these():
    assert (reading.MAX_FILE_BYTES, reading.MAX_LINE_CHARACTERS, reading.MAX_PROMPTS) == (64 << 20, 4 << 20, 20_000)


def test_what_is_no_ordinary_file_is_not_opened(tmp_path):
    pipe = tmp_path / "pipe.jsonl"
    os.mkfifo(pipe)
    assert fault(pipe) == "pipe.jsonl: is not an ordinary file; name a file of prompts"
    with pytest.raises(WorkloadError, match="cannot read the prompts: embedded null byte"):
        load_prompts("a\x00b.jsonl")
    with pytest.raises(WorkloadError, match="cannot read the prompts: File name too long"):
        load_prompts("/" + "a" * 300 + ".jsonl")


def test_a_folder_gives_one_prompt_a_file(tmp_path):
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "b.md").write_text("둘째\n", encoding="utf-8")
    (folder / "a.txt").write_text("first\n\nwith two paragraphs\n\n", encoding="utf-8")
    (folder / ".hidden").write_text("x", encoding="utf-8")
    assert load_prompts(str(folder)) == (
        Prompt("a", "user", "und", "first\n\nwith two paragraphs\n"),
        Prompt("b", "user", "und", "둘째"),
    )
    (folder / "empty.txt").write_text(" \n", encoding="utf-8")
    assert "empty.txt: is empty" in fault(folder)
    (folder / "empty.txt").unlink()
    (folder / "a.md").write_text("again", encoding="utf-8")
    assert fault(folder).endswith("a.txt: a file's name without its end is its id, and a.md has 'a' already")
    (folder / "a.md").unlink()
    (folder / "more").mkdir()
    assert "more: in a folder of prompts every file ends in .txt or .md" in fault(folder)


def test_an_empty_folder_has_no_prompt(tmp_path):
    assert fault(tmp_path).endswith("no prompt in it")


@pytest.mark.parametrize(
    ("written_as", "path"),
    [
        ("demo-short", False), ("context-4k", False), ("mine.jsonl", True), ("./mine", True), ("~/mine", True),
        ("/abs/mine", True), ("~", True),
    ],
)  # fmt: skip
def test_a_path_is_told_from_a_name(written_as, path):
    assert is_path(written_as) is path


def test_the_format_is_one_of_those_there_are(tmp_path):
    path = written(tmp_path, {"id": "a", "text": "t"})
    with pytest.raises(WorkloadError, match="no format 'csv'; there are: jsonl, text, folder, spec-bench, humaneval"):
        load_prompts(path, "csv")
    with pytest.raises(WorkloadError, match="a format is said of files only"):
        load_prompts("demo-short", "text")
    other = tmp_path / "mine.list"
    other.write_text("one\n\ntwo\n", encoding="utf-8")
    assert "of another one say its format" in fault(other)
    assert [prompt.text for prompt in load_prompts(other, "text")] == ["one", "two"]


def test_a_schema_may_allow_nothing_instead(tmp_path):
    (prompt,) = load_prompts(written(tmp_path, {"id": "a", "text": "t", "schema": {"type": ["object", "null"]}}))
    assert prompt.task is not None
    assert prompt.task.kind == "json"


@pytest.mark.skipif(os.name != "posix" or sys.platform == "darwin", reason="file names of any bytes")
def test_the_name_of_a_text_file_is_an_id_that_can_be_written_down(tmp_path):
    path = tmp_path / os.fsdecode(b"caf\xe9.txt")
    path.write_text("one\n", encoding="utf-8")
    with pytest.raises(WorkloadError, match="'name' must be at most 200 printable characters"):
        load_prompts(path)

"""``specmatrix workloads``: the sets, the prompts of one, a file of the user's, one prompt whole."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from orchestrator.cli import completion
from orchestrator.cli.app import app
from orchestrator.schema.errors import SpecmatrixError
from orchestrator.workloads.built_in import CATEGORIES, SETS, built_in
from orchestrator.workloads.counts import token_counts


@pytest.fixture
def show(monkeypatch):
    monkeypatch.setenv("COLUMNS", "220")
    monkeypatch.setenv("TERM", "dumb")

    def run(*words):
        done = CliRunner().invoke(app, ["workloads", *map(str, words)])
        if isinstance(done.exception, SpecmatrixError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    return run


def test_every_set_has_a_row_with_what_is_in_it(show):
    lines = show().splitlines()
    for one in SETS.values():
        (row,) = [line for line in lines if line.split() and line.split()[0] == one.name]
        prompts = built_in(one.name)
        assert row.split()[1] == str(len(prompts))
        assert row.split()[2] == str(sum(bool(prompt.task or prompt.answer) for prompt in prompts))
        counts = [token_counts()[prompt.id]["smollm2"] for prompt in prompts]
        assert f"{min(counts)}–{max(counts)}" in row
        assert one.about[:40] in row
    assert f"categories of full: {', '.join(CATEGORIES)}" in lines


def test_a_set_shows_its_prompts_with_category_language_length_task_and_tokens(show):
    said = show("tasks-small")
    for prompt in built_in("tasks-small"):
        (row,) = [line for line in said.splitlines() if line.startswith(prompt.id + " ")]
        counts = token_counts()[prompt.id]
        assert row.split()[1:8] == [
            prompt.category, "en", "short", prompt.task.kind, str(len(prompt.text)), str(counts["tiny"]), str(counts["smollm2"]),
        ]  # fmt: skip
    assert "tasks-small: 12 prompts" in said


def test_a_prompt_is_shown_whole_with_its_task(show):
    said = show("chat", "en-chat-4")
    assert "My favourite colour is green and my cat is called Pepper." in said
    assert "assistant:" in said
    assert '"answer": ["Pepper"]' in said
    context = show("context-1k", "context-1k-seal-ko")
    assert "about 1024 tokens" in context
    assert built_in("context-1k")[3].text.splitlines()[-1] in context
    assert "right answer begins" in show("demo-short", "count-1")


def test_a_file_of_the_users_is_shown_as_it_is_read(show, tmp_path):
    path = tmp_path / "mine.jsonl"
    hostile = "\x1b[31m[red]\u202e\u200f\u061c\u2028\u200bevil"
    path.write_text(json.dumps({"id": "a", "prompt": hostile, "category": "own"}) + "\n", encoding="utf-8")
    said = show(path)
    assert "\x1b" not in said
    assert not set("\u202e\u200f\u061c\u2028\u200b") & set(said)
    assert "[red]" in said
    assert "own 1" in said
    assert "[red]" in show(path, "a")
    questions = tmp_path / "questions"
    questions.write_text('{"question_id": 1, "category": "writing", "turns": ["Hi"]}\n', encoding="utf-8")
    assert "writing" in show(questions, "--format", "spec-bench")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "no prompt set 'nothing'; known: "),
        (
            ["tasks-small", "nothing"],
            "tasks-small has no prompt 'nothing'; `specmatrix workloads tasks-small` lists them",
        ),
        (["./nowhere.jsonl"], "cannot read the prompts: No such file"),
        (["tasks-small", "--format", "csv"], "no format 'csv'"),
    ],
)
def test_a_mistake_is_told_in_words(show, words, message):
    with pytest.raises(SpecmatrixError) as caught:
        show(*words)
    assert message in str(caught.value)


def test_the_names_of_sets_are_completed():
    assert completion.prompt_sets(None, "context-4") == ["context-4k", "context-4k-en", "context-4k-ko"]

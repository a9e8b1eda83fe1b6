"""Where a chat template is read from, and what else its file tells."""

from __future__ import annotations

import json

import pytest

from adapters.shared.chat_template import folder_template, gguf_template
from orchestrator.demo.gguf_format import gguf_bytes
from orchestrator.workloads.errors import WorkloadError

TOKENS = ["<s>", "</s>", "a"]


def gguf(path, **more):
    metadata = {
        "general.architecture": "llama",
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.chat_template": "{{ messages }}",
    } | {key.replace("__", "."): value for key, value in more.items()}
    path.write_bytes(gguf_bytes(metadata, {}))
    return str(path)


@pytest.mark.parametrize(
    ("more", "adds"),
    [
        ({}, False),
        ({"tokenizer__ggml__pre": "llama-bpe"}, True),
        ({"tokenizer__ggml__model": "llama"}, True),
        ({"tokenizer__ggml__add_bos_token": True}, True),
        ({"tokenizer__ggml__pre": "llama-bpe", "tokenizer__ggml__add_bos_token": False}, False),
    ],
)
def test_a_gguf_tells_the_template_its_marks_and_whether_the_first_is_added(tmp_path, more, adds):
    found = gguf_template(gguf(tmp_path / "m.gguf", **more))
    assert (found.source, found.bos, found.eos, found.engine_adds_bos) == ("{{ messages }}", "<s>", "</s>", adds)
    assert found.origin.endswith("m.gguf (tokenizer.chat_template)")


def test_a_token_that_is_not_there_is_no_text(tmp_path):
    assert gguf_template(gguf(tmp_path / "m.gguf", tokenizer__ggml__bos_token_id=9)).bos == ""


def test_no_template_is_none_and_no_file_is_an_error(tmp_path):
    assert gguf_template(gguf(tmp_path / "m.gguf", tokenizer__chat_template=3)) is None
    with pytest.raises(WorkloadError, match="cannot be read"):
        gguf_template(str(tmp_path / "none.gguf"))
    assert folder_template(str(tmp_path / "none")) is None


@pytest.mark.parametrize(
    "config",
    [
        {"chat_template": "T"},
        {"chat_template": [{"name": "tool_use", "template": "X"}, {"name": "default", "template": "T"}]},
    ],
)
def test_a_folders_settings_hold_one_template_or_several(tmp_path, config):
    marks = {"bos_token": {"content": "<s>"}, "eos_token": "</s>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config | marks), encoding="utf-8")
    found = folder_template(str(tmp_path))
    assert (found.source, found.bos, found.eos, found.engine_adds_bos) == ("T", "<s>", "</s>", False)
    (tmp_path / "chat_template.jinja").write_text("own", encoding="utf-8")
    assert folder_template(str(tmp_path)).source == "own"


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\xff"])
def test_damaged_settings_are_refused_in_words(tmp_path, text):
    (tmp_path / "tokenizer_config.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(WorkloadError, match=r"tokenizer_config\.json: "):
        folder_template(str(tmp_path))


def test_settings_of_another_kind_hold_no_template(tmp_path):
    for config in ([], {"chat_template": 3}, {"chat_template": [{"name": "tool_use", "template": "X"}]}):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
        assert folder_template(str(tmp_path)) is None

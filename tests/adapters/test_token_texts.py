"""Texts of tokens out of the model's own files: the same from both formats, and nothing where there is none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adapters.shared.token_texts import folder_texts, gguf_texts
from orchestrator.demo.export import resolve
from orchestrator.registry import adapters
from orchestrator.schema.adapter import token_texts

IDS = (0, 5, 60, 500, 99_999, -3)


def test_both_formats_of_the_demo_model_tell_the_same_texts() -> None:
    gguf, folder = resolve("tiny-target-f16.gguf"), resolve("tiny-target-f16")
    told = gguf_texts(str(gguf), IDS)
    assert set(told) == {0, 5, 60, 500}
    assert told == folder_texts(str(folder), IDS)
    assert told[0] == "<|endoftext|>"
    assert told[60] == "U"
    assert told[500].startswith(" ")


def test_bytes_that_are_no_character_are_spelled_out() -> None:
    folder = resolve("tiny-target-f16")
    every = folder_texts(str(folder), range(2000))
    cut = [text for text in every.values() if "\\x" in text]
    assert cut
    assert len(every) > 900
    assert not any("\ufffd" in text for text in every.values())


@pytest.mark.parametrize(
    ("vocabulary", "expected"),
    [
        ({"▁the": 7, "<0xE2>": 8, "plain": 9}, {7: " the", 8: "\\xe2", 9: "plain"}),
        ([["<unk>", 0.0], ["▁a", -1.0]], {0: "<unk>", 1: " a"}),
    ],
)
def test_other_spellings_of_vocabularies(tmp_path: Path, vocabulary: object, expected: dict[int, str]) -> None:
    data = {"model": {"vocab": vocabulary}, "decoder": {"type": "Sequence"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(data), encoding="utf-8")
    assert folder_texts(str(tmp_path), range(20)) == expected


@pytest.mark.parametrize("text", [None, "", "[]", "{}", '{"model": {"vocab": 3}}', '{"model": {"vocab": [1]}}'])
def test_what_is_no_vocabulary_tells_nothing(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "tokenizer.json").write_text(text, encoding="utf-8")
    assert folder_texts(str(tmp_path), IDS) == {}
    assert gguf_texts(str(tmp_path / "tokenizer.json"), IDS) == {}


def test_adapters_that_know_no_vocabulary_are_not_asked() -> None:
    assert token_texts(object(), None, (1, 2)) == {}  # type: ignore[arg-type]
    able = {name for name, one in adapters().items() if hasattr(one, "token_texts")}
    assert {"llama_cpp", "llama_cpp_embedded", "mlx_lm"} <= able

from __future__ import annotations

import json

import pytest

from orchestrator.schema.hidden import DIRECTION, INVISIBLE, escaped, inert, without_hidden


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("+1", "'+1"),
        ("-1", "'-1"),
        ("@sum", "'@sum"),
        ("\t=1", "'\t=1"),
        ("\n=1", "'\n=1"),
        ("\r=1", "⟨U+000D⟩=1"),
        ("\uff1d1", "'\uff1d1"),
        ("\u202e=1", "⟨U+202E⟩=1"),
        ("a\u200bb\x1b[31m", "a⟨U+200B⟩b⟨U+001B⟩[31m"),
        ("a = 1\n\t- 2", "a = 1\n\t- 2"),
        ("한국어 · 👩‍🔬", "한국어 · 👩‍🔬"),
        ("-", "-"),
        ("", ""),
    ],
)
def test_a_field_of_csv_computes_nothing_and_hides_nothing(text: str, told: str) -> None:
    assert inert(text) == told


def test_a_terminal_is_given_nothing_hidden() -> None:
    for char in (*DIRECTION, *INVISIBLE, "\x00", "\x1b", "\r", "\x7f", "\x9b"):
        assert without_hidden(f"a{char}b") == "a\ufffdb", ascii(char)
    assert without_hidden("a\tb\nc 안녕") == "a\tb\nc 안녕"


def test_escaped_json_has_the_same_values() -> None:
    told = {"a\u202eb": ["\u2028", "안녕", "\\u202e"]}
    text = escaped(json.dumps(told, ensure_ascii=False))
    assert json.loads(text) == told
    assert not set(text) & (DIRECTION | INVISIBLE)
    assert "안녕" in text

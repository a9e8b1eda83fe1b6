"""What the reader makes of YAML itself: places, duplicates, aliases, booleans of YAML 1.1, and files that are none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from matrix_samples import DOCUMENT, SCHEMAS, changed, load, load_text, problems, text_of

from orchestrator.matrix.load import load_matrix
from orchestrator.matrix.yaml_tree import MAX_DEPTH, MAX_NODES, Mapping, Mark, Scalar, Sequence, Unreadable, compose
from orchestrator.schema.errors import MatrixError

VALID = text_of(DOCUMENT)


def scalar(text: str) -> tuple[Any, list[str]]:
    node, faults = compose(f"k: {text}\n")
    assert isinstance(node, Mapping)
    value = node.entries["k"][1]
    assert isinstance(value, Scalar)
    return value.value, [fault.what for fault in faults]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("0", 0),
        ("0.8", 0.8),
        ("1e-3", 0.001),
        (".5", 0.5),
        ("true", True),
        ("False", False),
        ("on", True),
        ("No", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("abc", "abc"),
        ("'7'", "7"),
        ('"off"', "off"),
        ("2026-10-11", "2026-10-11"),
        ("12:30", "12:30"),
        ("010", "010"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("y", "y"),
        ("oN", "oN"),
        ("32.4.1", "32.4.1"),
    ],
)
def test_a_plain_scalar_means_what_both_yaml_versions_agree_on(text: str, value: Any) -> None:
    found, faults = scalar(text)
    assert found == value
    assert type(found) is type(value)
    assert faults == []


@pytest.mark.parametrize("text", [".inf", "-.Inf", "+.INF", ".nan", ".NaN", "1e999", "-1e999"])
def test_numbers_that_are_not_finite_are_refused(text: str) -> None:
    _, faults = scalar(text)
    assert faults == [f"{text} is not a finite number"]


def test_a_number_of_too_many_digits_is_refused() -> None:
    _, faults = scalar("9" * 5000)
    assert faults == ["a whole number of more than 18 digits"]


@pytest.mark.parametrize("text", [r'"a\0b"', r'"\ud800"', r'"\x1b[2J"'])
def test_escaped_control_characters_are_refused(text: str) -> None:
    _, faults = scalar(text)
    assert faults == ["holds a control character, written as an escape; take it out"]


def test_places_count_lines_and_characters_from_one() -> None:
    node, faults = compose("é: 1\n한글: [2, {b: 3}]\n")
    assert faults == []
    assert isinstance(node, Mapping)
    assert node.entries["é"][0] == Mark(1, 1)
    key, value = node.entries["한글"]
    assert key == Mark(2, 1)
    assert isinstance(value, Sequence)
    assert value.items[0].at == Mark(2, 6)
    inner = value.items[1]
    assert isinstance(inner, Mapping)
    assert inner.entries["b"][0] == Mark(2, 10)


def test_a_duplicate_key_names_both_places(tmp_path: Path) -> None:
    text = VALID.replace("name: sample\n", "name: sample\nname: other\n")
    assert problems(tmp_path, text) == [
        'matrix.yaml:3:1: name: key "name" stands here a second time; the first is at 2:1: keep one'
    ]


def test_a_duplicate_deep_inside_is_found(tmp_path: Path) -> None:
    text = VALID.replace("temperature: 0\n", "temperature: 0\n    temperature: 1\n", 1)
    line = text.split("\n").index("    temperature: 1") + 1
    assert problems(tmp_path, text) == [
        f'matrix.yaml:{line}:5: sampling.greedy.temperature: key "temperature" stands here a second time; '
        f"the first is at {line - 1}:5: keep one"
    ]


def test_aliases_stand_for_their_values(tmp_path: Path) -> None:
    text = VALID.replace("  greedy:\n    temperature: 0\n", "  greedy: &g\n    temperature: 0\n  again: *g\n")
    matrix = load_text(tmp_path, text)
    assert matrix.sampling["again"].temperature == 0
    assert matrix.sampling["again"].name == "again"


def test_a_fault_behind_an_alias_is_at_its_anchor(tmp_path: Path) -> None:
    text = VALID.replace("  greedy:\n    temperature: 0\n", "  greedy: &g {temperature: -1}\n  again: *g\n")
    line = next(i for i, row in enumerate(text.split("\n"), 1) if "&g" in row)
    assert problems(tmp_path, text) == [
        f"matrix.yaml:{line}:28: sampling.{name}.temperature: must be greater than or equal to 0; found the number -1"
        for name in ("greedy", "again")
    ]


def test_an_alias_bomb_is_refused_by_the_number_of_values() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 20)]
    with pytest.raises(Unreadable, match=f"more than {MAX_NODES} values once aliases are followed"):
        compose("\n".join(lines))


def test_as_many_values_as_allowed_are_read_and_one_more_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.matrix.yaml_tree.MAX_NODES", 100)
    items = 98  # the mapping and the list count too
    node, _ = compose("k: [" + ",".join(["1"] * items) + "]")
    assert node.size == 100
    with pytest.raises(Unreadable, match="values once aliases"):
        compose("k: [" + ",".join(["1"] * (items + 1)) + "]")


@pytest.mark.parametrize("text", ["a: &a [*a]", "a: &a {b: *a}", "a: *b", "a: *a"])
def test_an_alias_to_itself_or_to_nothing_is_refused(text: str) -> None:
    with pytest.raises(Unreadable, match="has no complete anchor"):
        compose(text)


def test_depth_is_bounded_also_through_aliases() -> None:
    compose("[" * MAX_DEPTH + "]" * MAX_DEPTH)
    with pytest.raises(Unreadable, match="nested deeper"):
        compose("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1))
    with pytest.raises(Unreadable, match="nests deeper"):
        compose("\n".join(["a0: &a0 [x]", *(f"a{i}: &a{i} [*a{i - 1}]" for i in range(1, MAX_DEPTH + 1))]))


def test_merge_keys_are_refused_and_the_quoted_text_is_only_a_key() -> None:
    _, faults = compose("a: &a {b: 1}\nc: {<<: *a, d: 2}\n")
    assert [(fault.at, fault.what.split(";")[0]) for fault in faults] == [
        (Mark(2, 5), "merge keys (<<) are not read here")
    ]
    node, faults = compose("'<<': 1\n")
    assert faults == []
    assert isinstance(node, Mapping)
    assert list(node.entries) == ["<<"]


@pytest.mark.parametrize("tag", ["!!python/object/apply:os.system", "!mine", "!!str", "!!float", "!!binary", "!"])
def test_tags_are_refused_and_nothing_is_built_from_them(tmp_path: Path, tag: Any) -> None:
    found = problems(tmp_path, VALID.replace("name: sample", f"name: {tag} sample"))
    assert len(found) == 1
    assert found[0].startswith("matrix.yaml:2:7: name: tags such as ")


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "On", "OFF"])
def test_a_boolean_word_as_a_key_asks_for_quotes(tmp_path: Path, word: Any) -> None:
    text = (
        VALID.replace("  greedy:\n", f"  {word}:\n")
        .replace("- greedy\n", f"- '{word}'\n")
        .replace("sampling: greedy", f"sampling: '{word}'")
    )
    found = problems(tmp_path, text)
    line = text.split("\n").index(f"  {word}:") + 1
    assert found == [
        f'matrix.yaml:{line}:3: sampling.{word}: as a key, {word} is read as a boolean; write "{word}" in quotes'
    ]
    assert problems(tmp_path, text.replace(f"  {word}:\n", f"  '{word}':\n")) == []


@pytest.mark.parametrize("key", ["0.8", "7", "~"])
def test_a_number_or_null_as_a_key_asks_for_quotes(tmp_path: Path, key: Any) -> None:
    text = VALID.replace("sampling:\n", f"sampling:\n  {key}: {{temperature: 1}}\n", 1)
    assert f'write "{key}" in quotes' in problems(tmp_path, text)[0]


@pytest.mark.parametrize("key", ["[a, b]", "{a: 1}"])
def test_a_key_that_is_no_word_is_refused(key: Any) -> None:
    _, faults = compose(f"? {key}\n: 1\n")
    assert [fault.what for fault in faults] == ["a key must be a single word, not a list or a mapping"]


def test_a_boolean_word_where_a_choice_is_expected_suggests_quotes(tmp_path: Path) -> None:
    text = VALID.replace("max_tokens: 64\n", "max_tokens: 64\n    eos: off\n")
    line = text.split("\n").index("    eos: off") + 1
    assert problems(tmp_path, text) == [
        f'matrix.yaml:{line}:10: workloads.short.eos: found off, which YAML reads as false (for the word, write "off" '
        "in quotes); allowed: stop, continue, mask"
    ]


def test_a_boolean_word_is_a_boolean_where_one_is_expected(tmp_path: Path) -> None:
    assert load_text(tmp_path, VALID + "run: {twin: on}\n").run.twin is True
    assert load_text(tmp_path, VALID + "run: {twin: no}\n").run.twin is False


def test_an_adapters_on_and_off_ask_for_quotes(tmp_path: Path) -> None:
    text = VALID.replace("threads: 2", "flash: on")
    assert problems(tmp_path, text)[0].endswith(
        'engines.srv.options.flash: found on, which YAML reads as true (for the word, write "on" in quotes); '
        "allowed: on, off"
    )
    assert load_text(tmp_path, VALID.replace("threads: 2", 'flash: "on"')).engines["srv"].options["flash"] == "on"


@pytest.mark.parametrize("text", ["a:\n\tb: 1\n", "a:\n  b: 1\n\tc: 2\n", "\ta: 1\n"])
def test_a_tab_as_indentation_is_named(tmp_path: Path, text: str) -> None:
    found = problems(tmp_path, text)
    assert len(found) == 1
    assert "a tab is used as indentation; YAML allows only spaces there" in found[0]


@pytest.mark.parametrize("text", ["", "\n\n", "# only\n# comments\n", "---\n...\n", "   \n"])
def test_an_empty_file_says_how_to_start(tmp_path: Path, text: str) -> None:
    found = problems(tmp_path, text)
    assert len(found) == 1
    assert "specmatrix init" in found[0] or "this is nothing" in found[0]


@pytest.mark.parametrize(
    ("text", "what"), [("[1, 2]", "a list"), ("just words", '"just words"'), ("7", "the number 7")]
)
def test_a_file_that_is_no_mapping_says_what_it_is(tmp_path: Path, text: str, what: Any) -> None:
    assert problems(tmp_path, text) == [
        f"matrix.yaml:1:1: a matrix is a mapping of keys such as engines, models, matrix; this is {what}"
    ]


def test_a_second_document_is_refused_at_its_place(tmp_path: Path) -> None:
    lines = VALID.count("\n")
    assert problems(tmp_path, VALID + "---\na: 1\n") == [
        f"matrix.yaml:{lines + 1}:1: a second document begins here; a matrix file holds one: remove the ---"
    ]


def test_broken_syntax_has_one_fault_at_its_place(tmp_path: Path) -> None:
    found = problems(tmp_path, "version: 1\nengines: {a: [1, 2}\n")
    assert len(found) == 1
    assert found[0].startswith("matrix.yaml:2:19: not YAML: ")


def test_bytes_that_are_not_utf_8_are_named_with_their_place(tmp_path: Path) -> None:
    assert problems(tmp_path, "version: 1\nname: caf\u00e9\n".encode("latin-1")) == [
        "matrix.yaml:2:10: byte 0xE9 is not UTF-8; save the file as UTF-8"
    ]
    assert problems(tmp_path, VALID.encode("utf-16")) == [
        "matrix.yaml:1:1: byte 0xFF is not UTF-8; save the file as UTF-8"
    ]


def test_a_character_that_yaml_forbids_is_named_with_its_place(tmp_path: Path) -> None:
    assert problems(tmp_path, b"version: 1\nname: a\x07b\n") == [
        "matrix.yaml:2:8: character U+0007 may not stand in a YAML file"
    ]


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    plain = load_text(tmp_path, VALID)
    marked = load_text(tmp_path, b"\xef\xbb\xbf" + VALID.encode())
    windows = load_text(tmp_path, VALID.replace("\n", "\r\n"))
    assert marked == plain
    assert (windows.sampling, windows.engines) == (plain.sampling, plain.engines)


def test_a_missing_file_a_folder_and_a_huge_file_are_told_apart(tmp_path: Path) -> None:
    for path, what in ((tmp_path / "none.yaml", "there is no such file"), (tmp_path, "this is a folder")):
        with pytest.raises(MatrixError) as caught:
            load_matrix(path, SCHEMAS)
        assert str(caught.value).startswith(f"{path}: {what}")
    assert "bytes; this is no matrix file" in problems(tmp_path, b"#" * (1 << 20) + b"#")[0]


def test_the_version_is_asked_for_and_a_newer_one_stops_the_reading(tmp_path: Path) -> None:
    assert problems(tmp_path, text_of(changed("version"))) == [
        'matrix.yaml:1:1: missing key "version"; write `version: 1` as the first line'
    ]
    newer = text_of(changed("version", 2)) + "whatever: 1\n"
    assert problems(tmp_path, newer) == [
        "matrix.yaml:1:10: version: written for version 2 of this format, newer than version 1, which this specmatrix "
        "reads; use a newer specmatrix"
    ]


@pytest.mark.parametrize("value", [0, "1", True, 1.0, None, [1]])
def test_a_version_that_is_no_version_is_refused(tmp_path: Path, value: Any) -> None:
    found = problems(tmp_path, text_of(changed("version", value)))
    assert any(": version: must be 1; found " in problem for problem in found)


def test_pins_stay_as_they_are_spelled(tmp_path: Path) -> None:
    text = VALID.replace(
        "binary: srv-bin\n",
        "binary: srv-bin\n    pin: {a: 2026.10, b: 0.32, c: 2026-10-11, d: 11434, e: 1e5, f: on, g: '1.0'}\n",
    )
    assert load_text(tmp_path, text).engines["srv"].pin == {
        "a": "2026.10",
        "b": "0.32",
        "c": "2026-10-11",
        "d": "11434",
        "e": "1e5",
        "f": "on",
        "g": "1.0",
    }


@pytest.mark.parametrize("pin", ["{a: }", "{a: [1]}", "{a: {b: 1}}", "[a]", "7"])
def test_a_pin_that_is_no_version_is_refused(tmp_path: Path, pin: Any) -> None:
    found = problems(tmp_path, VALID.replace("binary: srv-bin\n", f"binary: srv-bin\n    pin: {pin}\n"))
    assert len(found) == 1
    assert "engines.srv.pin" in found[0]


def test_loading_does_not_depend_on_flow_or_block_style(tmp_path: Path) -> None:
    block = load(tmp_path, DOCUMENT)
    flow = load_text(tmp_path, json.dumps(DOCUMENT))
    assert (block.engines, block.models, block.methods, block.axes) == (
        flow.engines,
        flow.models,
        flow.methods,
        flow.axes,
    )

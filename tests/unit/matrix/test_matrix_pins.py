"""Pins are written by span: what is not a pin keeps its bytes, whatever the style of the file."""

from __future__ import annotations

import pytest

from orchestrator.matrix.pins import PinError, with_pins
from orchestrator.matrix.template import template_text
from orchestrator.matrix.yaml_tree import compose

BLOCK = """\
# head
version: 1
engines:                # the engines
  a:                    # first
    adapter: llama_cpp  # the adapter
    binary: /x/llama-server   # a path
  b: {adapter: mlx_lm, options: {kv_bits: 8}}   # flow

# tail
models: {}
"""


def test_a_block_engine_and_a_flow_engine_get_a_pin_and_nothing_else_moves():
    changed = with_pins(BLOCK, {"a": {"version": "1.2", "build": "11434"}, "b": {"mlx-lm": "0.32.2"}})
    assert changed == BLOCK.replace("    binary: /x", "    pin: {version: 1.2, build: 11434}\n    binary: /x").replace(
        "{kv_bits: 8}}", "{kv_bits: 8}, pin: {mlx-lm: 0.32.2}}"
    )


def test_an_existing_block_pin_keeps_its_comments_and_gets_the_missing_keys():
    text = (
        "engines:\n  a:\n    pin:\n      # why this one\n      build: 1   # old\n      commit: 'abc'  # quoted\n"
        "    adapter: x\n"
    )
    changed = with_pins(text, {"a": {"build": "2", "commit": "abc", "sha256": "00ff"}})
    assert changed == text.replace("build: 1 ", "build: 2 ").replace("# quoted\n", "# quoted\n      sha256: 00ff\n")


def test_an_existing_flow_pin_keeps_what_stands_around_it():
    text = "engines:\n  a: { adapter: x, pin: { build: 1 , }, python: p }  # c\n"
    assert with_pins(text, {"a": {"build": "1", "commit": "ab"}}) == text.replace(
        "build: 1 ,", "build: 1, commit: ab ,"
    )


def test_a_flow_pin_over_several_lines_keeps_its_comment():
    text = "engines:\n  a:\n    adapter: x\n    pin: {build: 1,  # the build\n          commit: ab}\n"
    changed = with_pins(text, {"a": {"build": "2", "commit": "cd"}})
    assert changed == text.replace("build: 1", "build: 2").replace("commit: ab", "commit: cd")


def test_an_empty_pin_is_filled():
    assert with_pins("engines: {a: {adapter: x, pin: {}}}\n", {"a": {"v": "1"}}) == (
        "engines: {a: {adapter: x, pin: {v: 1}}}\n"
    )


def test_a_right_pin_changes_nothing():
    text = 'engines:\n  a: {adapter: x, pin: {v: "2026.10"}}\n'
    assert with_pins(text, {"a": {"v": "2026.10"}}) == text


def test_an_aliased_pin_becomes_the_engines_own_and_the_anchor_stays():
    text = "engines:\n  a: {adapter: x, pin: &p {v: 1}}\n  b: {adapter: x, pin: *p}\n"
    assert with_pins(text, {"b": {"v": "2"}}) == text.replace("*p", "{v: 2}")


def test_an_aliased_value_is_replaced_by_the_value_itself():
    text = "engines:\n  a: {adapter: x, python: &v p, pin: {v: *v}}\n"
    assert with_pins(text, {"a": {"v": "2"}}) == text.replace("{v: *v}", "{v: 2}")


@pytest.mark.parametrize(
    "text",
    [
        "engines:\n  a: {adapter: x, pin: &p {v: 1}}\n  b: {adapter: x, pin: *p}\n",
        "engines:\n  a: &e {adapter: x, pin: {v: 1}}\n  b: *e\n",
        "engines:\n  a: {adapter: x, pin: {v: &v 1}}\n  b: {adapter: x, pin: {v: *v}}\n",
    ],
)
def test_a_shared_text_is_refused(text):
    with pytest.raises(PinError, match="shared with another place"):
        with_pins(text, {"a": {"v": "2"}})


def test_an_engine_that_is_an_alias_is_refused():
    with pytest.raises(PinError, match="shared with another place"):
        with_pins("engines:\n  a: &e {adapter: x}\n  b: *e\n", {"b": {"v": "2"}})


def test_a_key_that_the_engine_does_not_tell_is_refused():
    with pytest.raises(PinError, match=r"engines\.a\.pin\.commit"):
        with_pins("engines: {a: {adapter: x, pin: {v: 1, commit: z}}}\n", {"a": {"v": "2"}})


def test_an_engine_that_is_not_in_the_file_is_refused():
    with pytest.raises(PinError, match=r"engines\.b: not in the file"):
        with_pins("engines: {a: {adapter: x}}\n", {"b": {"v": "2"}})


def test_line_ends_byte_order_mark_and_a_missing_last_newline_stay():
    text = "\ufeffengines:\r\n  a:\r\n    adapter: x"
    assert with_pins(text, {"a": {"v": "1"}}) == text + "\r\n    pin: {v: 1}"
    text += "\r\n    python: p\r\n"
    assert with_pins(text, {"a": {"v": "1"}}) == text.replace("adapter: x\r\n", "adapter: x\r\n    pin: {v: 1}\r\n")


@pytest.mark.parametrize("value", ["1", "2026.10", "true", "a b", "#x", "{", "é", "null", "1:2", '"', "on"])
def test_every_value_is_read_back_as_it_was_found(value):
    changed = with_pins(BLOCK, {"a": {"v": value}, "b": {"v": value}})
    root = compose(changed)[0]
    for name in ("a", "b"):
        assert root.entries["engines"][1].entries[name][1].entries["pin"][1].entries["v"][1].text == value


def test_the_template_is_pinned_without_touching_its_comments():
    text = template_text("x")
    changed = with_pins(text, {"llama.cpp": {"xllamacpp": "9"}, "mlx-lm": {"mlx-lm": "8", "mlx": "7"}})
    before, after = text.split("\n"), changed.split("\n")
    differing = [number for number, (old, new) in enumerate(zip(before, after, strict=True)) if old != new]
    assert len(differing) == 2
    assert "# another version is another measurement, and is not run" in after[differing[0]]

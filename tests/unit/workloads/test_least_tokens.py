"""The fewest tokens of a text: never above what a tokenizer makes of it, and near it for the models at hand."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.demo.export import resolve
from orchestrator.registry import adapter
from orchestrator.schema.adapter import token_texts
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.workloads.built_in import built_in
from orchestrator.workloads.counts import token_counts
from orchestrator.workloads.least_tokens import least_tokens, pieces

BYTES = [chr(byte) for byte in range(0x80)] + [rf"\x{byte:02x}" for byte in range(0x80, 0x100)]
"""What a vocabulary has that can spell every text."""
ENGINE = EngineConfig("llama", "llama_cpp_embedded", options={})


def cell_of(target: str) -> Cell:
    sampling = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
    workload = Workload("w", "demo-short", 12, EosPolicy.STOP)
    return Cell(ENGINE, ModelConfig("m", target), Method("none", MethodKind.NONE), sampling, workload)


def test_the_way_with_the_fewest_pieces_is_found_where_the_longest_first_misses_it():
    known = pieces(["a", "b", "c", "ab", "abc", "cab", "bcab"])
    assert least_tokens("", known) == 0
    assert least_tokens("abc", known) == 1
    assert least_tokens("abcab", known) == 2
    assert least_tokens("abcabb", known) == 3


def test_a_byte_that_is_no_piece_counts_nothing():
    assert least_tokens("a?a", pieces(["a"])) == 2
    assert least_tokens("aaa", pieces([])) == 0


def test_bytes_of_half_a_character_are_pieces_too():
    assert "한".encode() == b"\xed\x95\x9c"
    assert least_tokens("한", pieces(BYTES)) == 3
    assert least_tokens("한", pieces([*BYTES, r"\x95\x9c"])) == 2
    assert least_tokens("a한", pieces([*BYTES, r"a\xed", r"\x95\x9c"])) == 2
    assert least_tokens("한", pieces([*BYTES, "한"])) == 1


def test_a_token_that_spells_such_bytes_itself_is_taken_both_ways():
    known = pieces([r"\xed", "x", "e", "d", "\\"])
    assert least_tokens(r"\xed", known) == 1
    assert least_tokens(r"x\xed", known) == 2


def test_a_normal_form_that_takes_fewer_is_the_bound():
    known = pieces([*BYTES, "\u00e9", "\u0301"])
    assert least_tokens("e\u0301", known) == least_tokens("\u00e9", known) == 1
    assert least_tokens("\uff21", known) == least_tokens("A", known) == 1


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text("abé", min_size=1, max_size=3), max_size=5), st.text("abé", max_size=5))
def test_it_is_the_fewest_of_all_ways(vocabulary, text):
    known = pieces(vocabulary)
    data = text.encode()
    ways = []
    for cuts in product([False, True], repeat=max(0, len(data) - 1)):
        ends = [at + 1 for at, cut in enumerate(cuts) if cut]
        parts = [data[a:b] for a, b in zip([0, *ends], [*ends, len(data)], strict=True) if a < b]
        if all(part in known.every or len(part) == 1 for part in parts):
            ways.append(sum(part in known.every for part in parts))
    assert least_tokens(text, known) == min(ways)


@pytest.mark.parametrize("name", ["full-en", "full-ko", "entropy-ladder", "context-1k"])
def test_it_bounds_what_the_engine_counts_closely(name):
    target = str(resolve("tiny-target-f16.gguf"))
    known = pieces(token_texts(adapter("llama_cpp_embedded"), cell_of(target), tuple(range(100_000))).values())
    counts = token_counts()
    for prompt in built_in(name)[:24]:
        counted = counts[prompt.id]["tiny"]
        assert 0.9 * counted <= least_tokens(prompt.text, known) <= counted, prompt.id

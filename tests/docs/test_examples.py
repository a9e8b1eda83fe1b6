"""Every example is a valid matrix and gives the cells it promises; only `entropy-ladder` needs what comes with it."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest
import yaml

from orchestrator import registry
from orchestrator.matrix.expand import default_resolver, expand
from orchestrator.matrix.json_schema import build_schema
from orchestrator.matrix.load import load_matrix
from orchestrator.schema.adapter import EngineIdentity
from orchestrator.schema.status import Status
from orchestrator.workloads.load import known_names

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CELLS = {"qwen3-pair": (36, 8), "qwen3.5-mtp": (18, 10), "omlx": (14, 10), "ds4": (5, 4), "entropy-ladder": (4, 2)}
"""Speculative cells and blocks."""
HERE = {"entropy-ladder": {"smollm2-135m-instruct-q4_1.gguf", "smollm2-draft-q8_0.gguf"}}
"""The models of ours that an example asks for; the others are measured on a Mac, with 20 GiB kept free."""


def test_every_example_is_listed_and_expected():
    names = {path.stem for path in EXAMPLES.glob("*.yaml")}
    assert names == set(CELLS)
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert all(f"({name}.yaml)" in readme for name in names)


@pytest.mark.parametrize("name", sorted(CELLS))
def test_an_example_loads_and_expands(name):
    path = EXAMPLES / f"{name}.yaml"
    matrix = load_matrix(path, registry.adapters(), known_names())
    asked: set[str] = set()
    expansion = expand(matrix, default_resolver(EXAMPLES, lambda demo: asked.add(demo) or str(EXAMPLES / demo)))
    assert asked == HERE.get(name, set())
    speculative = sum(len(block.cells) for block in expansion.blocks)
    assert (speculative, len(expansion.blocks)) == CELLS[name]
    assert expansion.not_formed == ()
    assert matrix.name == name
    assert sum(item.bytes for item in matrix.host.reserve) == (0 if name in HERE else 20 * 2**30)
    jsonschema.validate(
        yaml.safe_load(path.read_text(encoding="utf-8")),
        build_schema({key: registry.adapter(key) for key in registry.BUILT_IN}),
    )


def test_every_cell_of_ds4_is_one_that_speculates_on_the_checkpoint_that_its_drafter_was_made_for():
    matrix = load_matrix(EXAMPLES / "ds4.yaml", registry.adapters(), known_names())
    cells = [cell for block in expand(matrix, default_resolver(EXAMPLES, str)).blocks for cell in block.cells]
    adapter, flags = registry.adapter("ds4"), {"--mtp-model", "--mtp-draft", "--dspark", "--mtp-exact-sampling"}
    refusals = [adapter.supports(cell, EngineIdentity(capabilities=frozenset(flags))) for cell in cells]
    assert {refusal.status for refusal in refusals} == {Status.UNSUPPORTED}, "the files are on no machine of ours"
    assert all(cell.model.target in refusal.reason for cell, refusal in zip(cells, refusals, strict=True))
    modules = {cell.model.target: set() for cell in cells}
    for cell in cells:
        modules[cell.model.target].add(cell.model.mtp)
    assert sorted(map(len, modules.values())) == [1, 1]

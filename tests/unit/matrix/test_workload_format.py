"""``workloads.*.format``: said where a file does not tell it, and of files only."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from matrix_samples import SCHEMAS, changed, load, problems, text_of

from orchestrator.matrix.expand import default_resolver, expand
from orchestrator.matrix.json_schema import build_schema
from orchestrator.schema.cell import fingerprint
from orchestrator.schema.errors import MatrixError
from orchestrator.workloads.load import FORMATS


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_can_be_said(tmp_path: Path, form: str) -> None:
    document = changed("workloads/short", {"prompts": "./mine", "max_tokens": 8, "format": form})
    workload = load(tmp_path, document, prompt_sets=("demo-short",)).workloads["short"]
    assert workload.source == ("./mine", form)
    Draft202012Validator(build_schema(SCHEMAS)).validate(document)


def test_without_it_the_file_tells(tmp_path: Path) -> None:
    assert load(tmp_path, changed("workloads/short/prompts", "mine.jsonl")).workloads["short"].format is None


def test_an_unknown_format_is_refused(tmp_path: Path) -> None:
    document = changed("workloads/short", {"prompts": "mine.jsonl", "max_tokens": 8, "format": "specbench"})
    (fault,) = problems(tmp_path, text_of(document))
    assert (
        'workloads.short.format: found "specbench"; did you mean "spec-bench"?; allowed: jsonl, text, folder' in fault
    )
    assert not Draft202012Validator(build_schema(SCHEMAS)).is_valid(document)


def test_a_set_that_comes_with_the_program_has_its_format(tmp_path: Path) -> None:
    document = changed("workloads/short/format", "jsonl")
    with pytest.raises(
        MatrixError, match=r'workloads\.short\.format: "demo-short" is no path, and sets of the program'
    ):
        load(tmp_path, document, prompt_sets=("demo-short",))


def test_a_folder_written_with_a_slash_is_a_path_from_the_files_folder(tmp_path: Path) -> None:
    document = changed("workloads/short/prompts", "./mine")
    matrix = load(tmp_path, document, prompt_sets=("demo-short",))
    found = expand(matrix, default_resolver(tmp_path, lambda name: tmp_path / name))
    assert {cell.workload.prompts for cell in found.cells} == {str(tmp_path / "mine")}


def test_where_and_how_prompts_are_written_moves_no_number(tmp_path: Path) -> None:
    matrix = load(tmp_path, changed("workloads/short/prompts", "mine.jsonl"))
    cell = expand(matrix, str).cells[0]
    other = replace(cell, workload=replace(cell.workload, prompts="other.txt", format="jsonl"))
    assert fingerprint(cell, {"prompts": "x"}) == fingerprint(other, {"prompts": "x"})
    assert fingerprint(cell, {"prompts": "x"}) != fingerprint(other, {"prompts": "y"})

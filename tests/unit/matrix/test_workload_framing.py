"""``workloads.*``: template, system, thinking, cache and prefix, alone and together."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator
from matrix_samples import SCHEMAS, changed, load, problems, text_of

from orchestrator.matrix.expand import expand
from orchestrator.matrix.json_schema import build_schema
from orchestrator.schema.cell import fingerprint

PLAIN = {"prompts": "demo-short", "max_tokens": 8}


def document(**more: object) -> dict[str, object]:
    return changed("workloads/short", {**PLAIN, **more})


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"template": "chat", "system": "Be brief.", "thinking": False},
        {"cache": "warm"},
        {"cache": "shared-prefix", "prefix": "A report.\n"},
        {"cache": "shared-prefix", "template": "chat", "system": "Be brief."},
    ],
)
def test_what_is_written_is_read_and_accepted_by_the_schema(tmp_path: Path, more: dict[str, object]) -> None:
    workload = load(tmp_path, document(**more), prompt_sets=("demo-short",)).workloads["short"]
    expected = {"template": "raw", "system": None, "thinking": None, "cache": "cold", "prefix": None} | more
    assert {name: getattr(workload, name) for name in expected} == expected
    Draft202012Validator(build_schema(SCHEMAS)).validate(document(**more))


@pytest.mark.parametrize(
    ("more", "key", "why"),
    [
        ({"system": "Be brief."}, "system", "write template: chat beside it"),
        ({"thinking": True}, "thinking", "write template: chat beside it"),
        ({"template": "chat", "prefix": "x"}, "prefix", "a prefix stands before raw prompts"),
        ({"cache": "shared-prefix"}, "cache", "no start is shared"),
        ({"cache": "lukewarm"}, "cache", "allowed: cold, warm, shared-prefix"),
    ],
)
def test_what_cannot_be_is_refused_in_words(tmp_path: Path, more: dict[str, object], key: str, why: str) -> None:
    (fault,) = problems(tmp_path, text_of(document(**more)))
    assert f"workloads.short.{key}: " in fault
    assert why in fault


def test_each_setting_is_another_cell_and_the_defaults_leave_old_fingerprints_alone(tmp_path: Path) -> None:
    cell = expand(load(tmp_path, document(), prompt_sets=("demo-short",)), str).cells[0]

    def printed(**more: object) -> str:
        return fingerprint(replace(cell, workload=replace(cell.workload, **more)), {})

    chat = {"template": "chat"}
    others = [
        chat, chat | {"system": "x"}, chat | {"thinking": True}, chat | {"thinking": False}, {"cache": "warm"},
        {"prefix": "x"}, {"prefix": "x", "cache": "shared-prefix"},
    ]  # fmt: skip
    assert len({printed(), *(printed(**one) for one in others)}) == len(others) + 1
    settings = cell.settings()["workload"]
    assert (settings["cache"], settings["trials"]) == ("cold", None)
    assert printed() == fingerprint(cell, {})

"""Sampling policies by name: those that are built in, those of the file, and which of them wins."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from matrix_samples import DOCUMENT, SCHEMAS, changed, load, problems, text_of

from orchestrator.matrix.json_schema import build_schema
from orchestrator.matrix.policies import POLICIES
from orchestrator.matrix.presets import DEFAULT_SEED

OFF = {"top_k": 0, "top_p": 1.0, "min_p": 0.0}
VALIDATOR = Draft202012Validator(build_schema(SCHEMAS))


def named(*names: str, **own: Any) -> dict[str, Any]:
    """The sample document with these policies on its axis, and only ``own`` in its section."""
    document = changed("matrix/axes/sampling", list(names))
    document["matrix"].pop("include")
    document["methods"].pop("mtp2")
    document.pop("sampling")
    return {**document, **({"sampling": own} if own else {})}


@pytest.mark.parametrize("name", POLICIES)
def test_the_name_of_a_policy_says_all_of_it(name: str) -> None:
    said: dict[str, float] = {"temperature": 0.0, **OFF}
    if name != "greedy":
        for letter, number in re.findall(r"(?:^|-)([tpkm])([\d.]+)", name):
            said[{"t": "temperature", "p": "top_p", "k": "top_k", "m": "min_p"}[letter]] = float(number)
    neutral = {"repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
    assert POLICIES[name] == {**said, **neutral}


def test_the_temperatures_wanted_are_there_pure_and_cut() -> None:
    for temperature in ("t0.6", "t0.8", "t1.0"):
        assert {key: POLICIES[temperature][key] for key in OFF} == OFF  # type: ignore[literal-required]
        cut = [one for name, one in POLICIES.items() if name.startswith(f"{temperature}-")]
        assert len(cut) >= 2
    assert any(one["top_k"] for one in POLICIES.values())
    assert any(one["min_p"] for one in POLICIES.values())


def test_a_matrix_refers_to_them_without_spelling(tmp_path: Path) -> None:
    document = named("greedy", "t0.6", "t0.8-p0.95-k40-m0.05")
    matrix = load(tmp_path, document)
    assert list(matrix.sampling) == ["greedy", "t0.6", "t0.8-p0.95-k40-m0.05"]
    cut = asdict(matrix.sampling["t0.8-p0.95-k40-m0.05"])
    assert (cut["temperature"], cut["top_k"], cut["top_p"], cut["min_p"]) == (0.8, 40, 0.95, 0.05)
    assert {one.seed for one in matrix.sampling.values()} == {DEFAULT_SEED}
    assert matrix.sampling["greedy"].greedy
    assert "sampling.t0.6.seed" in matrix.defaults
    assert "sampling.t0.6.temperature" not in matrix.defaults
    VALIDATOR.validate(document)


def test_one_of_the_file_wins_and_both_kinds_mix(tmp_path: Path) -> None:
    document = named("t0.6", "t1.0", "mine", **{"t0.6": {"temperature": 0.6, "top_p": 0.9}, "mine": {"temperature": 2}})
    matrix = load(tmp_path, document)
    assert (matrix.sampling["t0.6"].top_p, matrix.sampling["t1.0"].top_p) == (0.9, 1.0)
    assert set(matrix.sampling) == {"t0.6", "t1.0", "mine"}
    VALIDATOR.validate(document)


def test_a_wrong_policy_of_the_file_is_not_replaced_by_the_built_in_one(tmp_path: Path) -> None:
    document = named("t0.6", **{"t0.6": {"temperature": -1}})
    assert [one.split(": ", 1)[1].split(":")[0] for one in problems(tmp_path, text_of(document))] == [
        "sampling.t0.6.temperature"
    ]


def test_only_what_is_used_comes_along(tmp_path: Path) -> None:
    assert list(load(tmp_path, DOCUMENT).sampling) == ["greedy", "warm"]


def test_an_include_may_name_one_too(tmp_path: Path) -> None:
    document = changed("matrix/include/0/sampling", "t1.0")
    assert list(load(tmp_path, document).sampling) == ["greedy", "warm", "t1.0"]


def test_an_unknown_name_is_told_with_those_that_are_built_in(tmp_path: Path) -> None:
    (fault,) = problems(tmp_path, text_of(named("gredy", own={"temperature": 1})))
    assert (
        'sampling has no "gredy"; did you mean "greedy"?; there are: own; built in: greedy, t0.6, t0.8, t1.0' in fault
    )


def test_an_exclude_can_only_name_what_the_plan_has(tmp_path: Path) -> None:
    document = named("greedy", "t0.6")
    document["matrix"]["exclude"] = [{"sampling": "t1.0"}]
    assert len(problems(tmp_path, text_of(document))) == 1
    document["matrix"]["exclude"] = [{"sampling": "t0.6"}]
    assert list(load(tmp_path, document).sampling) == ["greedy", "t0.6"]


def test_the_page_has_a_row_for_each() -> None:
    page = (Path(__file__).parents[3] / "docs" / "workloads.md").read_text(encoding="utf-8")
    for name, one in POLICIES.items():
        row = f"| `{name}` | {one['temperature']:g} | {one['top_p']:g} | {one['top_k']} | {one['min_p']:g} |"
        assert row in page, row

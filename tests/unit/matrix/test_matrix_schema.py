"""The JSON Schema that editors use: it accepts what the loader accepts, and refuses what it can know to be wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from matrix_samples import DOCUMENT, SCHEMAS, changed, load, text_of

from orchestrator.matrix.json_schema import build_schema
from orchestrator.matrix.template import SCHEMA
from orchestrator.schema.errors import MatrixError

BUILT = build_schema(SCHEMAS)
VALIDATOR = Draft202012Validator(BUILT)

RIGHT = [
    ("name", "sample"),
    ("engines/srv/pin", {"a": "2026.10", "b": 0.32, "c": 11434}),
    ("engines/srv/pin", {}),
    ("engines/srv/allow_unpinned", True),
    ("engines/srv/options", {"flash": "on", "place": "gpu", "limits": "x"}),
    ("engines/srv/options/limits", None),
    ("engines/srv/options", ...),
    ("models/m/weights_equivalent", True),
    ("models/mtp-m/srv/mtp", "head.gguf"),
    ("methods/mtp2/options", {"p_min": 0.1}),
    ("methods", {"d4": {"method": "draft", "draft": "small", "n_max": 4}, "mtp2": {"method": "mtp", "n_max": 2}}),
    ("methods/unused", {"method": "ngram", "n_max": 1024}),
    (
        "sampling/greedy",
        {
            "temperature": 0,
            "top_k": 0,
            "top_p": 1,
            "min_p": 0,
            "repeat_penalty": 1,
            "presence_penalty": 0,
            "frequency_penalty": 0,
            "seed": 7,
        },
    ),
    ("sampling/warm", {"temperature": 0.8, "xtc_probability": 0.5, "xtc_threshold": 0.2}),
    ("sampling/greedy", {"temperature": 0, "xtc_probability": 0, "xtc_threshold": 0.2}),
    ("run", {"phases": True}),
    ("workloads/short/eos", "mask"),
    ("workloads/short/prompts", "own.txt"),
    ("run", {}),
    ("run", {"preset": "demo", "sessions": 6, "trials": 1, "warmup": 0, "order": "abba", "twin": False}),
    ("run", {"sessions": 3, "order": "random", "order_seed": 1, "cache": "cold"}),
    ("run/timeout", {"silence": "1h 30min", "total": 90, "startup": "1.5min"}),
    ("host", {"reserve": [{"name": "x", "bytes": "1.5 GiB"}, {"name": "y", "bytes": 1}], "environment": "clean"}),
    ("matrix/axes/engine", "srv"),
    ("matrix/axes/method", ["none", "d4"]),
    ("matrix/axes", ...),
    ("matrix/include", ...),
    ("matrix/exclude", [{"engine": "lib", "why": "x"}, {"sampling": ["warm"]}]),
    ("checks", {"greedy_identity": False}),
    ("report", {"language": "ko"}),
]

WRONG = [
    ("version", ...),
    ("version", 2),
    ("version", "1"),
    ("name", ...),
    ("name", "a/b"),
    ("name", 7),
    ("nmae", "x"),
    ("engines", {}),
    ("engines", []),
    ("engines/a b", {"adapter": "server"}),
    ("engines/same_target", {"adapter": "server"}),
    ("engines/srv/adapter", ...),
    ("engines/srv/adapter", 1),
    ("engines/srv/optoins", {}),
    ("engines/srv/binary", ""),
    ("engines/srv/binary", None),
    ("engines/srv/pin", {"a": []}),
    ("engines/srv/pin", {"a": None}),
    ("engines/srv/options", {"thread": 1}),
    ("engines/srv/options", {"threads": 0}),
    ("engines/srv/options", {"flash": True}),
    ("engines/srv/options", {"place": "tpu"}),
    ("engines/lib/options", ...),
    ("engines/lib/options", {}),
    ("models", {}),
    ("models/m/srv/target", ...),
    ("models/m/srv/target", ""),
    ("models/m/srv/draft", "x"),
    ("models/m/srv/drafts", {"a b": "x"}),
    ("models/m/srv/mtp", True),
    ("models/m/same_target", "a b"),
    ("models/m/weights_equivalent", "yes"),
    ("methods/none", {"method": "ngram", "n_max": 1}),
    ("methods/d4/draft", ...),
    ("methods/ng/draft", "small"),
    ("methods/d4/n_max", ...),
    ("methods/d4/n_max", 0),
    ("methods/d4/method", "none"),
    ("methods/d4/options", {"x": 1}),
    ("methods/ng/options", {"p_mn": 1}),
    ("sampling", {}),
    ("sampling/greedy/temperature", ...),
    ("sampling/greedy/temperature", -1),
    ("sampling/greedy/top_p", 0),
    ("sampling/greedy/top_p", 1.5),
    ("sampling/greedy/seed", -1),
    ("sampling/greedy/temperature", "0"),
    ("sampling/greedy", {"temperature": 0, "xtc_probability": 0.5}),
    ("sampling/warm", {"temperature": 0.8, "xtc_threshold": 0.6}),
    ("run/phases", "yes"),
    ("workloads/short/eos", "off"),
    ("workloads/short/eos", False),
    ("workloads/short/max_tokens", 0),
    ("workloads/short/limit", 3),
    ("run", None),
    ("run/preset", "fast"),
    ("run/sessions", 3),
    ("run/trials", 0),
    ("run/cache", "warm"),
    ("run/twin", "maybe"),
    ("run/timeout/silence", "2m"),
    ("run/timeout/silence", 0),
    ("run/timeout/totl", 3),
    ("host/reserve", [{"name": "x"}]),
    ("host/reserve", [{"name": "x", "bytes": "8"}]),
    ("host/environment", "quiet"),
    ("matrix", ...),
    ("matrix", {}),
    ("matrix/axes/engine", ...),
    ("matrix/axes/engine", []),
    ("matrix/axes/sampling", [0.8]),
    ("matrix/exclude", [{"why": "x"}]),
    ("matrix/exclude", [{"engin": "x"}]),
    ("matrix/include/0/workload", ...),
    ("checks", {"greedy": True}),
    ("report/language", "kr"),
]


def case_ids(cases: Any) -> list[str]:
    return [f"{path}={value!r}"[:60] for path, value in cases]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(BUILT)
    Draft202012Validator.check_schema(build_schema({}))
    assert BUILT["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize(("path", "value"), RIGHT, ids=case_ids(RIGHT))
def test_what_the_loader_accepts_the_schema_accepts(tmp_path: Path, path: str, value: Any) -> None:
    document = changed(path, value)
    load(tmp_path, document)
    VALIDATOR.validate(document)
    Draft202012Validator(build_schema({})).validate(document)


def test_a_matrix_of_baselines_needs_no_methods_in_the_schema_either(tmp_path: Path) -> None:
    document = changed("methods")
    document["matrix"] = {"axes": {**DOCUMENT["matrix"]["axes"], "method": "none"}}
    load(tmp_path, document)
    VALIDATOR.validate(document)


@pytest.mark.parametrize(("path", "value"), WRONG, ids=case_ids(WRONG))
def test_what_is_wrong_both_refuse(tmp_path: Path, path: str, value: Any) -> None:
    document = changed(path, value)
    with pytest.raises(MatrixError):
        load(tmp_path, document)
    assert not VALIDATOR.is_valid(document)


def test_keys_and_choices_are_there_to_complete_with_descriptions() -> None:
    definitions = BUILT["$defs"]
    assert set(BUILT["properties"]) == {
        "version",
        "name",
        "engines",
        "models",
        "methods",
        "sampling",
        "workloads",
        "run",
        "host",
        "matrix",
        "checks",
        "report",
    }
    for value in BUILT["properties"].values():
        referred = definitions[value["$ref"].rsplit("/", 1)[1]] if "$ref" in value else {}
        assert value.get("description") or referred.get("description")
    assert definitions["EngineShape"]["properties"]["adapter"]["anyOf"][0] == {"enum": ["library", "server"]}
    assert definitions["MethodShape"]["properties"]["method"]["enum"] == ["draft", "mtp", "ngram"]
    assert definitions["EosPolicy"]["enum"] == ["stop", "continue", "mask"]
    for name in (
        "EngineShape",
        "FilesShape",
        "MethodShape",
        "SamplingShape",
        "WorkloadShape",
        "RunShape",
        "TimeoutShape",
    ):
        properties = definitions[name]["properties"]
        assert [key for key, value in properties.items() if not value.get("description")] == []


def test_a_third_partys_adapter_is_not_marked_as_wrong() -> None:
    document = changed("engines/srv", {"adapter": "somebodys", "options": {"anything": 1}})
    VALIDATOR.validate(document)


def test_the_defaults_it_shows_are_the_loaders(tmp_path: Path) -> None:
    sampling = load(tmp_path, DOCUMENT).sampling["greedy"]
    shown = {
        key: value["default"]
        for key, value in BUILT["$defs"]["SamplingShape"]["properties"].items()
        if "default" in value
    }
    assert shown == {key: getattr(sampling, key) for key in shown}
    assert len(shown) == 9


def test_the_shipped_schema_is_what_the_registered_adapters_make() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.matrix.json_schema", "--check"],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_shipped_schema_accepts_the_default_matrix() -> None:
    validator = Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))
    validator.validate(yaml.safe_load(SCHEMA.with_name("template.yaml").read_text(encoding="utf-8")))
    assert not validator.is_valid(yaml.safe_load(text_of(changed("version"))))

"""Which cells a matrix comes to, in which blocks, and where their files are."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from matrix_samples import DOCUMENT, changed, load

from orchestrator.matrix.expand import default_resolver, expand, resolved_engine
from orchestrator.matrix.types import Inclusion
from orchestrator.schema.cell import EngineConfig, Method, MethodKind, Role
from orchestrator.schema.errors import MatrixError


def same(path: str) -> str:
    return f"/r/{path}"


def shape(expansion: Any) -> dict[str, list[str]]:
    return {block.id: [cell.id for cell in block.members] for block in expansion.blocks}


def test_the_sample_makes_these_blocks_in_this_order(tmp_path: Path) -> None:
    expansion = expand(load(tmp_path, DOCUMENT), same)
    assert shape(expansion) == {
        "srv/m/greedy/short": ["srv/m/none/greedy/short", "srv/m/d4/greedy/short", "srv/m/none/greedy/short~twin"],
        "srv/m/warm/short": ["srv/m/none/warm/short", "srv/m/d4/warm/short", "srv/m/none/warm/short~twin"],
        "lib/m/greedy/short": ["lib/m/none/greedy/short", "lib/m/d4/greedy/short", "lib/m/none/greedy/short~twin"],
        "lib/m/warm/short": ["lib/m/none/warm/short", "lib/m/d4/warm/short", "lib/m/none/warm/short~twin"],
        "srv/mtp-m/greedy/short": [
            "srv/mtp-m/none/greedy/short",
            "srv/mtp-m/mtp2/greedy/short",
            "srv/mtp-m/none/greedy/short~twin",
        ],
    }
    assert [cell.id for cell in expansion.cells] == [one for ids in shape(expansion).values() for one in ids]
    assert (expansion.not_formed, expansion.excluded) == ((), ())


def test_roles_and_the_twin_differ_only_where_they_must(tmp_path: Path) -> None:
    block = expand(load(tmp_path, DOCUMENT), same).blocks[0]
    assert block.baseline.role is Role.BASELINE
    assert [cell.role for cell in block.cells] == [Role.SPECULATIVE]
    assert block.twin == dataclasses.replace(block.baseline, twin=True)
    assert block.twin.role is Role.TWIN
    assert block.baseline.method == Method("none", MethodKind.NONE)
    assert block.cells[0].method == Method("d4", MethodKind.DRAFT, 4, "small", {"p_min": 0.25})
    for part in ("engine", "model", "sampling", "workload"):
        assert getattr(block.cells[0], part) == getattr(block.baseline, part)


def test_without_twin_there_is_none(tmp_path: Path) -> None:
    expansion = expand(load(tmp_path, changed("run/twin", False)), same)
    assert [block.twin for block in expansion.blocks] == [None] * 5
    assert len(expansion.cells) == 10


def test_method_options_are_those_of_the_cells_own_adapter(tmp_path: Path) -> None:
    cells = {cell.id: cell for cell in expand(load(tmp_path, DOCUMENT), same).cells}
    assert cells["srv/m/d4/greedy/short"].method.options == {"p_min": 0.25}
    assert cells["lib/m/d4/greedy/short"].method.options == {"eager": False}


def test_an_axis_of_none_makes_baselines_alone(tmp_path: Path) -> None:
    document = changed("matrix", {"axes": {**DOCUMENT["matrix"]["axes"], "method": "none", "sampling": "greedy"}})
    expansion = expand(load(tmp_path, document), same)
    assert [block.cells for block in expansion.blocks] == [(), ()]
    assert [block.baseline.id for block in expansion.blocks] == ["srv/m/none/greedy/short", "lib/m/none/greedy/short"]


def test_exclude_takes_out_and_tells_why(tmp_path: Path) -> None:
    document = changed("matrix/exclude", [{"engine": "lib", "sampling": "warm", "why": "no time"}, {"engine": "lib"}])
    expansion = expand(load(tmp_path, document), same)
    assert list(shape(expansion)) == ["srv/m/greedy/short", "srv/m/warm/short", "srv/mtp-m/greedy/short"]
    assert expansion.excluded == (("lib/m/d4/greedy/short", ""), ("lib/m/d4/warm/short", "no time"))


def test_exclude_of_the_baseline_leaves_those_that_are_needed(tmp_path: Path) -> None:
    document = changed("matrix/exclude", [{"method": "none"}])
    document["matrix"]["axes"]["method"] = ["none", "d4"]
    before = expand(load(tmp_path, changed("matrix/axes/method", ["none", "d4"])), same)
    after = expand(load(tmp_path, document), same)
    assert shape(after) == shape(before)


def test_include_brings_back_what_exclude_took_out(tmp_path: Path) -> None:
    document = changed("matrix/exclude", [{"engine": "lib"}])
    document["matrix"]["include"].append(
        {"engine": "lib", "model": "m", "method": "d4", "sampling": "warm", "workload": "short"}
    )
    expansion = expand(load(tmp_path, document), same)
    assert "lib/m/warm/short" in shape(expansion)
    assert "lib/m/greedy/short" not in shape(expansion)
    assert expansion.excluded == (("lib/m/d4/greedy/short", ""),)


def test_what_the_product_cannot_form_is_listed_with_its_reason(tmp_path: Path) -> None:
    document = changed("matrix/axes/model", ["m", "mtp-m"])
    document["matrix"]["axes"] |= {"method": ["d4", "mtp2"], "sampling": ["greedy"]}
    expansion = expand(load(tmp_path, document), same)
    assert dict(expansion.not_formed) == {
        "srv/m/mtp2/greedy/short": "method mtp2 needs an MTP module: give models.m.srv.mtp a path, or the word inside",
        "srv/mtp-m/d4/greedy/short": "method d4 needs the draft small, which models.mtp-m.srv.drafts lacks (it has: none)",
        "lib/m/mtp2/greedy/short": "method mtp2 needs an MTP module: give models.m.lib.mtp a path, or the word inside",
        "lib/mtp-m/d4/greedy/short": "models.mtp-m names no files for engine lib (it has: srv)",
        "lib/mtp-m/mtp2/greedy/short": "models.mtp-m names no files for engine lib (it has: srv)",
    }
    assert list(shape(expansion)) == ["srv/m/greedy/short", "srv/mtp-m/greedy/short", "lib/m/greedy/short"]


def test_an_include_that_cannot_be_formed_is_an_error_with_its_place(tmp_path: Path) -> None:
    matrix = load(tmp_path, DOCUMENT)
    axes = dataclasses.replace(matrix.include[0].axes, engine=("lib",))
    with pytest.raises(MatrixError) as caught:
        expand(dataclasses.replace(matrix, include=(Inclusion(axes, "matrix.yaml:9:5"),)), same)
    assert caught.value.problems == (
        "matrix.yaml:9:5: matrix.include: lib/mtp-m/mtp2/greedy/short cannot be formed: models.mtp-m names no files for "
        "engine lib (it has: srv)",
    )


def test_paths_are_resolved_once_each_and_commands_stay_commands(tmp_path: Path) -> None:
    asked = []

    def resolve(path: str) -> str:
        asked.append(path)
        return f"/r/{path}"

    document = changed("models/mtp-m/srv/mtp", "files/head.gguf")
    document["workloads"]["short"]["prompts"] = "own.txt"
    cells = {cell.id: cell for cell in expand(load(tmp_path, document), resolve).cells}
    assert sorted(asked) == sorted(
        {
            "files/m.gguf",
            "files/d.gguf",
            "demo:m",
            "/abs/d",
            "files/x.gguf",
            "files/head.gguf",
            "~/venv/bin/python",
            "own.txt",
        }
    )
    server, library = cells["srv/m/d4/greedy/short"], cells["lib/m/d4/greedy/short"]
    assert (server.engine.binary, server.engine.python) == ("srv-bin", None)
    assert (library.engine.binary, library.engine.python) == (None, "/r/~/venv/bin/python")
    assert server.files == ("/r/files/m.gguf", "/r/files/d.gguf")
    assert cells["srv/mtp-m/mtp2/greedy/short"].files == ("/r/files/x.gguf", "/r/files/head.gguf")
    assert server.workload.prompts == "/r/own.txt"


def test_a_module_inside_the_target_has_no_file_of_its_own(tmp_path: Path) -> None:
    cells = {cell.id: cell for cell in expand(load(tmp_path, DOCUMENT), same).cells}
    assert cells["srv/mtp-m/mtp2/greedy/short"].model.mtp is None
    assert cells["srv/mtp-m/mtp2/greedy/short"].files == ("/r/files/x.gguf",)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("./srv", "/r/./srv"),
        ("~/bin/srv", "/r/~/bin/srv"),
        ("/usr/bin/srv", "/r//usr/bin/srv"),
        ("srv", "srv"),
        (None, None),
    ],
)
def test_a_program_is_a_path_only_when_it_looks_like_one(written: Any, expected: Any) -> None:
    assert resolved_engine(EngineConfig("e", "a", written, written), same) == EngineConfig("e", "a", expected, expected)


def test_the_default_resolver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/someone")
    resolve = default_resolver(tmp_path, lambda name: Path("/demo") / name)
    assert resolve("~/m.gguf") == "/home/someone/m.gguf"
    assert resolve("/abs/m.gguf") == "/abs/m.gguf"
    assert resolve("sub/m.gguf") == f"{tmp_path}/sub/m.gguf"
    assert resolve("../m") == f"{tmp_path}/../m"
    assert resolve("demo:tiny.gguf") == "/demo/tiny.gguf"


def test_a_relative_folder_still_gives_absolute_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_resolver(Path(), Path)("m.gguf") == f"{tmp_path}/m.gguf"


def test_paths_that_cannot_be_resolved_are_all_told(tmp_path: Path) -> None:
    def no_demo(name: Any) -> Path:
        raise ValueError(f"no demo model {name}")

    document = changed("models/m/srv/target", "demo:one")
    with pytest.raises(MatrixError) as caught:
        expand(load(tmp_path, document), default_resolver(tmp_path, no_demo))
    file = tmp_path / "matrix.yaml"
    assert caught.value.problems == (
        f"{file}: demo:one: no demo model one",
        f"{file}: demo:m: no demo model m",
    )
    with pytest.raises(MatrixError, match="no home folder"):
        default_resolver(tmp_path, Path)("~no-such-user-here/m")

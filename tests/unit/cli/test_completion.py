"""Completion as a shell asks for it: through the environment variables that Typer's own scripts set."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

HEAVY = ("pandas", "matplotlib", "scipy", "numpy", "httpx", "pyarrow", "jinja2", "xllamacpp", "mlx", "mlx_lm", "gguf")
CODE = (
    "import sys\n"
    "from orchestrator.cli import main\n"
    "try: main()\n"
    "except SystemExit: pass\n"
    f"heavy = [name for name in {HEAVY!r} if name in sys.modules]\n"
    "if heavy: print(heavy, file=sys.stderr)\n"
)
MATRIX = """\
version: 1
name: tab
engines:
  mlx-lm: {adapter: mlx_lm}
models:
  tiny:
    mlx-lm: {target: nowhere/target, drafts: {small: nowhere/draft}}
methods:
  draft-k4: {method: draft, n_max: 4, draft: small}
sampling:
  greedy: {temperature: 0}
workloads:
  short: {prompts: demo-short, max_tokens: 32, eos: stop}
matrix:
  axes:
    engine: [mlx-lm]
    model: [tiny]
    method: [draft-k4]
    sampling: [greedy]
    workload: [short]
"""


def complete(words, cwd, shell="bash"):
    """What the shell would offer after these words; the last one is being typed."""
    line = ["specmatrix", *words]
    variables = {"_SPECMATRIX_COMPLETE": f"complete_{shell}", "COMP_WORDS": " ".join(line)}
    variables |= {"COMP_CWORD": str(len(line) - 1)}
    if shell == "zsh":
        variables |= {"_TYPER_COMPLETE_ARGS": " ".join(line)}
    code = "import sys; sys.argv[0] = 'specmatrix'\n" + CODE
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env={**os.environ, **variables},
    )
    assert done.stderr == ""
    return done.stdout


def make_run(reports, name, created, ids):
    path = reports / name
    path.mkdir(parents=True)
    (path / "run.json").write_text(json.dumps({"created_utc": created}), encoding="utf-8")
    rows = [{"cells": [{"id": "older/cell"}], "kind": "matrix"}, {"text": '"kind":"matrix"' + 300 * "x"}]
    checks = [{"id": one} for one in ids if one.endswith("~check")]
    cells = [{"id": one} for one in ids if not one.endswith("~check")]
    rows.append({"cells": cells, "checks": checks, "kind": "matrix"})
    lines = [json.dumps(row, separators=(",", ":")) + "\n" for row in rows]
    (path / "journal.jsonl").write_text("".join(lines) + '{"torn', encoding="utf-8")
    return path


@pytest.fixture
def place(tmp_path):
    make_run(tmp_path / "reports", "a-older", "2026-01-01T00:00:00Z", ["old/one"])
    make_run(tmp_path / "reports", "b-newer", "2026-02-01T00:00:00Z", ["new/one", "new/two", "other/one"])
    return tmp_path


def test_show_offers_the_cells_of_the_newest_run(place):
    assert complete(["show", ""], place).split() == ["new/one", "new/two", "other/one"]
    assert complete(["show", "new/t"], place).split() == ["new/two"]


def test_show_offers_the_cells_of_the_run_that_was_named(place):
    assert complete(["show", "--run", "reports/a-older", ""], place).split() == ["old/one"]


def test_distribution_checks_are_offered_like_cells(tmp_path):
    make_run(tmp_path / "reports", "d", "2026-02-01T00:00:00Z", ["new/one", "new/one~check"])
    assert complete(["show", "new"], tmp_path).split() == ["new/one", "new/one~check"]
    text = MATRIX.replace("greedy: {temperature: 0}", "greedy: {temperature: 0.8}") + "checks: {distribution: screen}\n"
    (tmp_path / "matrix.yaml").write_text(text, encoding="utf-8")
    offered = complete(["run", "--only", "mlx"], tmp_path).split()
    assert "mlx-lm/tiny/draft-k4/greedy/short~check" in offered


def test_runs_are_offered_newest_first(place):
    assert complete(["status", "--run", ""], place).split() == ["reports/b-newer", "reports/a-older"]
    assert complete(["status", "--run", "reports/a"], place).split() == ["reports/a-older"]


def test_runs_elsewhere_are_offered_beside_the_path_that_was_begun(place):
    make_run(place / "elsewhere", "c", "2026-03-01T00:00:00Z", ["x"])
    assert complete(["report", "--run", "elsewhere/"], place).split() == ["elsewhere/c"]


@pytest.mark.parametrize("words", [["run", "--only", "mlx"], ["plan", "--only", "mlx"], ["rerun", "mlx"]])
def test_run_plan_and_rerun_offer_the_cells_of_the_matrix_without_its_files(place, words):
    (place / "matrix.yaml").write_text(MATRIX, encoding="utf-8")
    offered = complete(words, place).split()
    assert "mlx-lm/tiny/none/greedy/short" in offered
    assert "mlx-lm/tiny/draft-k4/greedy/short" in offered


def test_a_matrix_that_cannot_be_read_leaves_the_newest_run(place):
    (place / "matrix.yaml").write_text("version: [", encoding="utf-8")
    assert complete(["rerun", "new"], place).split() == ["new/one", "new/two"]


def test_zsh_is_answered_too(place):
    assert "new/two" in complete(["show", "new/t"], place, "zsh")


def test_nothing_readable_offers_nothing_and_says_nothing(tmp_path):
    (tmp_path / "reports" / "broken").mkdir(parents=True)
    (tmp_path / "reports" / "broken" / "run.json").write_bytes(b"\xff{")
    for words in (["show", ""], ["rerun", ""], ["run", "--only", ""], ["status", "--run", ""]):
        assert complete(words, tmp_path).split() == []

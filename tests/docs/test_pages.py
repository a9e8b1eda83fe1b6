"""The pages say what the program does: every command, status, metric and adapter appears, and generated pages are fresh."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import registry
from orchestrator.cli.app import app
from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.status import STATUS_RULES

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_generated_pages_are_fresh():
    done = subprocess.run(
        [sys.executable, "scripts/generate_docs.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout


def test_every_metric_and_status_is_in_the_metrics_page():
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    for metric in VOCABULARY.values():
        assert f"`{metric.id}`" in page
    for status in STATUS_RULES:
        assert f"`{status.value}`" in page


def test_the_readme_names_every_command():
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert names == {
        "init",
        "check",
        "plan",
        "run",
        "rerun",
        "status",
        "report",
        "show",
        "engines",
        "pin",
        "convert",
        "selftest",
    } | {
        "compare",
        "serve",
        "workloads",
    }
    for name in names:
        assert f"specmatrix {name}" in README, name


def test_the_readme_lists_every_adapter_as_it_says_of_itself():
    for name, adapter in registry.adapters().items():
        rows = [line for line in README.splitlines() if line.startswith(f"| `{name}` |")]
        methods = [kind for row in rows for kind in row.split(" | ")[2].split(", ")]
        assert sorted(methods) == sorted(kind.value for kind in adapter.method_options), name
        assert any(adapter.verified.value in row for row in rows), name
        assert all(row.split(" | ")[-1] != "none |" for row in rows), f"{name}: no pinned version"


def test_the_commands_of_the_readme_exist_and_ci_runs_both():
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for script in re.findall(r"^bash (scripts/\S+)", README, re.MULTILINE):
        assert (ROOT / script).is_file(), script
        assert script in ci, script


@pytest.mark.parametrize(
    "page", sorted(p.relative_to(ROOT).as_posix() for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
)
def test_links_between_pages_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        if "://" not in target:
            assert ((ROOT / page).parent / target).exists(), f"{page}: {target}"

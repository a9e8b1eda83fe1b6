"""A job from a matrix document, with the adapters that are registered: what `specmatrix run` would do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

from orchestrator import registry
from orchestrator.demo.export import resolve
from orchestrator.matrix.expand import default_resolver, expand
from orchestrator.matrix.load import load_matrix
from orchestrator.runner.execute import Job
from orchestrator.runner.survey import Survey, survey_cells, survey_engines

if TYPE_CHECKING:
    from pathlib import Path


def matrix_job(document: dict[str, Any], folder: Path, prompt_sets: tuple[str, ...] = ("demo-short",)) -> Job:
    """The job of all cells of a matrix, its checks not selected."""
    path = folder / "matrix.yaml"
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    adapters = registry.adapters()
    matrix = load_matrix(path, adapters, prompt_sets)
    expansion = expand(matrix, default_resolver(folder, resolve))
    engines = survey_engines(matrix.engines.values(), adapters, folder)
    fates = survey_cells(expansion.cells, engines, adapters, matrix.run, folder)
    return Job(matrix, expansion, Survey(engines, fates), adapters, frozenset(), again=False)

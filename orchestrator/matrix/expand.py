"""From a matrix to its blocks of cells: product, ``exclude``, ``include``, baselines, twins."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from orchestrator.matrix.paths import default_resolver
from orchestrator.matrix.product import MAX_POINTS, count, exclusion_of, product, refusal
from orchestrator.matrix.references import is_prompt_file
from orchestrator.matrix.types import BASELINE_METHOD, Block, Expansion, Matrix, Point
from orchestrator.schema.cell import Cell, CheckCell, EngineConfig, ModelConfig, Workload
from orchestrator.schema.errors import MatrixError

__all__ = ["Expansion", "default_resolver", "expand", "resolved_engine"]


def expand(matrix: Matrix, resolve: Callable[[str], str]) -> Expansion:
    """Every cell of a matrix, in blocks that share a baseline.

    Args:
        matrix: a valid matrix.
        resolve: turns a path as written into an absolute one, e.g. :func:`default_resolver`.

    Raises:
        MatrixError: an ``include`` asks for a cell that cannot be formed, a product is too large, or a path
            cannot be resolved. A file that does not exist is no error here.
    """
    points, not_formed, excluded = _points(matrix)
    maker = _Maker(matrix, resolve)
    grouped: dict[Point, list[Point]] = {}
    for point in points:
        members = grouped.setdefault(point._replace(method=BASELINE_METHOD), [])
        if point.method != BASELINE_METHOD:
            members.append(point)
    blocks = tuple(maker.block(baseline, members) for baseline, members in grouped.items())
    if maker.problems:
        raise MatrixError(tuple(dict.fromkeys(maker.problems)))
    return Expansion(blocks, not_formed, excluded, _checks(matrix, blocks))


def resolved_engine(engine: EngineConfig, resolve: Callable[[str], str]) -> EngineConfig:
    """The engine with its paths absolute; a bare command name stays one, to be looked up on ``PATH``."""

    def program(written: str | None) -> str | None:
        is_path = written is not None and ("/" in written or written.startswith("~"))
        return resolve(written) if written is not None and is_path else written

    return dataclasses.replace(engine, binary=program(engine.binary), python=program(engine.python))


def _points(matrix: Matrix) -> tuple[list[Point], tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    kept: dict[Point, None] = {}
    not_formed: dict[Point, str] = {}
    excluded: dict[Point, str] = {}
    problems: list[str] = []
    if matrix.axes is not None:
        _check_size(matrix, count(matrix.axes), f"{matrix.path}: matrix.axes")
        for point in product(matrix.axes):
            exclusion = exclusion_of(point, matrix.exclude)
            reason = refusal(point, matrix.models, matrix.methods)
            if exclusion is not None:
                excluded[point] = exclusion.why
            elif reason is not None:
                not_formed[point] = reason
            else:
                kept[point] = None
    for include in matrix.include:
        _check_size(matrix, count(include.axes), f"{include.where or matrix.path}: matrix.include")
        for point in product(include.axes):
            reason = refusal(point, matrix.models, matrix.methods)
            if reason is not None:
                where = include.where or matrix.path
                problems.append(f"{where}: matrix.include: {point.id} cannot be formed: {reason}")
            kept[point] = None
            excluded.pop(point, None)
    if problems:
        raise MatrixError(tuple(dict.fromkeys(problems)))
    return list(kept), _told(not_formed), _told(excluded)


def _checks(matrix: Matrix, blocks: tuple[Block, ...]) -> tuple[CheckCell, ...]:
    preset = matrix.checks.distribution
    if preset is None:
        return ()
    return tuple(
        CheckCell(cell, block.baseline, preset) for block in blocks for cell in block.cells if not cell.sampling.greedy
    )


def _told(points: dict[Point, str]) -> tuple[tuple[str, str], ...]:
    return tuple((point.id, why) for point, why in points.items())


def _check_size(matrix: Matrix, number: int, where: str) -> None:
    if number > MAX_POINTS:
        raise MatrixError((f"{where}: comes to {number} cells, more than {MAX_POINTS}; name fewer ({matrix.name})",))


class _Maker:
    """Makes cells, resolving each written path once."""

    def __init__(self, matrix: Matrix, resolve: Callable[[str], str]) -> None:
        self._matrix = matrix
        self._resolve = resolve
        self._known: dict[str, str] = {}
        self.problems: list[str] = []

    def block(self, baseline: Point, members: list[Point]) -> Block:
        cell = self._cell(baseline)
        twin = dataclasses.replace(cell, twin=True) if self._matrix.run.twin else None
        return Block(cell.block_id, cell, tuple(self._cell(point) for point in members), twin)

    def _cell(self, point: Point) -> Cell:
        matrix = self._matrix
        method = matrix.methods[point.method]
        options = matrix.method_options.get((point.engine, point.method), method.options)
        return Cell(
            engine=resolved_engine(matrix.engines[point.engine], self._path),
            model=self._model(point),
            method=dataclasses.replace(method, options=dict(options)),
            sampling=matrix.sampling[point.sampling],
            workload=self._workload(matrix.workloads[point.workload]),
        )

    def _model(self, point: Point) -> ModelConfig:
        spec = self._matrix.models[point.model]
        files = spec.files[point.engine]
        return ModelConfig(
            name=spec.name,
            target=self._path(files.target),
            same_target=spec.same_target,
            weights_equivalent=spec.weights_equivalent,
            drafts={name: self._path(path) for name, path in files.drafts.items()},
            mtp=self._path(files.mtp) if files.mtp is not None else None,
        )

    def _workload(self, workload: Workload) -> Workload:
        if not is_prompt_file(workload.prompts):
            return workload
        return dataclasses.replace(workload, prompts=self._path(workload.prompts))

    def _path(self, written: str) -> str:
        if written not in self._known:
            try:
                self._known[written] = self._resolve(written)
            except MatrixError as err:
                self.problems += [f"{self._matrix.path}: {problem}" for problem in err.problems]
                self._known[written] = written
        return self._known[written]

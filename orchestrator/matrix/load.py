"""Reads a matrix file: strict, with every fault at its place and all of them at once."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from orchestrator.matrix import build
from orchestrator.matrix.document import Document, listed, read_document, suggestion
from orchestrator.matrix.explain import validated
from orchestrator.matrix.references import check_references
from orchestrator.matrix.sections import Sections, read_sections
from orchestrator.matrix.shape import ChecksShape, HostShape, ReportShape, RunShape
from orchestrator.matrix.types import Inclusion, Matrix, OptionSchemas, Point
from orchestrator.matrix.yaml_tree import Scalar
from orchestrator.schema.cell import Method, MethodKind


def load_matrix(path: Path, schemas: Mapping[str, OptionSchemas], prompt_sets: Collection[str] | None = None) -> Matrix:
    """The matrix of a file.

    Args:
        path: the file.
        schemas: what each adapter lets a user set, by the adapter's name.
        prompt_sets: names of the prompt sets there are; ``None`` leaves them to whoever loads them.

    Raises:
        MatrixError: every fault of the file as ``file:line:column: path: what``.
    """
    document = read_document(path)
    sections = read_sections(document)
    points = check_references(document, sections, prompt_sets)
    engine_options = _engine_options(document, sections, schemas)
    method_options = _method_options(document, sections, schemas, points)
    document.raise_faults()
    return _matrix(path, document, sections, engine_options, method_options)


def _matrix(
    path: Path,
    document: Document,
    sections: Sections,
    engine_options: Mapping[str, BaseModel],
    method_options: Mapping[tuple[str, str], BaseModel],
) -> Matrix:
    run, host = sections.run or RunShape(), sections.host or HostShape()
    checks, report = sections.checks or ChecksShape(), sections.report or ReportShape()
    name = document.node(("name",))
    return Matrix(
        name=name.text if isinstance(name, Scalar) else "",
        path=path,
        text=document.text,
        engines={
            key: build.engine(key, shape, _dumped(engine_options[key])) for key, shape in sections.engines.items()
        },
        models={key: build.model(key, shape) for key, shape in sections.models.items()},
        methods=_methods(sections),
        sampling={key: build.sampling(key, shape) for key, shape in sections.sampling.items()},
        workloads={key: build.workload(key, shape) for key, shape in sections.workloads.items()},
        run=build.run(run),
        host=build.host(host),
        axes=build.axes(sections.axes) if sections.axes is not None else None,
        exclude=tuple(build.exclusion(shape) for shape in sections.exclude.values()),
        include=tuple(
            Inclusion(build.axes(shape), document.where(("matrix", "include", index)))
            for index, shape in sections.include.items()
        ),
        checks=build.checks(checks, run.preset),
        language=report.language,
        method_options={key: _dumped(options) for key, options in method_options.items()},
        defaults=frozenset(_defaults(sections, (run, host, checks, report), engine_options, method_options)),
    )


def _methods(sections: Sections) -> dict[str, Method]:
    written = {name: build.method(name, shape) for name, shape in sections.methods.items()}
    return {build.BASELINE.name: build.BASELINE, **written}


def _dumped(options: BaseModel) -> dict[str, Any]:
    return options.model_dump(mode="python")


def _defaults(
    sections: Sections,
    whole: tuple[RunShape, HostShape, ChecksShape, ReportShape],
    engine_options: Mapping[str, BaseModel],
    method_options: Mapping[tuple[str, str], BaseModel],
) -> Iterable[str]:
    for shape, prefix in zip(whole, ("run", "host", "checks", "report"), strict=True):
        yield from build.default_paths(shape, prefix)
    entries: Mapping[str, Mapping[str, BaseModel]] = {
        "engines": sections.engines,
        "models": sections.models,
        "methods": sections.methods,
        "sampling": sections.sampling,
        "workloads": sections.workloads,
    }
    for section, shapes in entries.items():
        for name, entry in shapes.items():
            yield from build.default_paths(entry, f"{section}.{name}")
    for name, options in engine_options.items():
        yield from build.default_paths(options, f"engines.{name}.options")
    for (_, name), options in method_options.items():
        yield from build.default_paths(options, f"methods.{name}.options")


def _engine_options(
    document: Document, sections: Sections, schemas: Mapping[str, OptionSchemas]
) -> dict[str, BaseModel]:
    found = {}
    for name, shape in sections.engines.items():
        path = ("engines", name)
        if shape.adapter not in schemas:
            what = f'no adapter "{shape.adapter}"{suggestion(shape.adapter, schemas)}; there are: {listed(schemas)}'
            document.fault((*path, "adapter"), what)
            continue
        options = validated(document, (*path, "options"), schemas[shape.adapter].engine_options, shape.options)
        if options is not None:
            found[name] = options
    return found


def _method_options(
    document: Document, sections: Sections, schemas: Mapping[str, OptionSchemas], points: set[Point]
) -> dict[tuple[str, str], BaseModel]:
    """A method's options by every (engine, method) that is measured and whose adapter knows the kind."""
    found: dict[tuple[str, str], BaseModel] = {}
    pairs = {(point.engine, point.method) for point in points}
    for name, shape in sections.methods.items():
        path, kind = ("methods", name, "options"), MethodKind(shape.method)
        judged = False
        for engine, engine_shape in sections.engines.items():
            schema = _schema(schemas, engine_shape.adapter, kind)
            if schema is None or (engine, name) not in pairs:
                continue
            judged = True
            options = validated(document, path, schema, shape.options, f"for engine {engine}: ")
            if options is not None:
                found[engine, name] = options
        if shape.options and not judged:
            _check_unused(document, name, shape.options, kind, schemas)
    return found


def _check_unused(
    document: Document, name: str, options: dict[str, Any], kind: MethodKind, schemas: Mapping[str, OptionSchemas]
) -> None:
    """Options of a method that no engine here can use: some adapter must at least know them."""
    known = {adapter: schema for adapter in schemas if (schema := _schema(schemas, adapter, kind)) is not None}
    if not known or any(_accepts(schema, options) for schema in known.values()):
        return
    for adapter, schema in known.items():
        validated(document, ("methods", name, "options"), schema, options, f"for adapter {adapter}: ")


def _schema(schemas: Mapping[str, OptionSchemas], adapter: str, kind: MethodKind) -> type[BaseModel] | None:
    return schemas[adapter].method_options.get(kind) if adapter in schemas else None


def _accepts(schema: type[BaseModel], options: dict[str, Any]) -> bool:
    try:
        schema.model_validate_json(json.dumps(options))
    except ValidationError:
        return False
    return True

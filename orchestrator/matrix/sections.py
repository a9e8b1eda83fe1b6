"""The sections of the file, each entry validated by itself: a fault in one hides no fault in another."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from orchestrator.matrix.document import Document, TreePath, described, listed, plain, suggestion
from orchestrator.matrix.explain import NO_VALUE, validated
from orchestrator.matrix.policies import POLICIES
from orchestrator.matrix.shape import (
    MATRIX_VERSION,
    MODEL_KEYS,
    NAME_PATTERN,
    AxesShape,
    ChecksShape,
    EngineShape,
    ExcludeShape,
    HostShape,
    IncludeShape,
    MatrixShape,
    MethodShape,
    ModelShape,
    PlanShape,
    ReportShape,
    RunShape,
    SamplingShape,
    WorkloadShape,
)
from orchestrator.matrix.types import BASELINE_METHOD
from orchestrator.matrix.yaml_tree import Mapping, Node, Scalar, Sequence

Shape = TypeVar("Shape", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Sections:
    """What of the file is valid by itself. ``names``: every name that a section defines, valid or not."""

    engines: dict[str, EngineShape]
    models: dict[str, ModelShape]
    methods: dict[str, MethodShape]
    sampling: dict[str, SamplingShape]
    workloads: dict[str, WorkloadShape]
    run: RunShape | None
    host: HostShape | None
    axes: AxesShape | None
    exclude: dict[int, ExcludeShape]
    include: dict[int, IncludeShape]
    checks: ChecksShape | None
    report: ReportShape | None
    names: dict[str, tuple[str, ...]]


def read_sections(document: Document) -> Sections:
    """Every section; the document's faults grow.

    Raises:
        MatrixError: the file is of a newer version, so that nothing else in it can be judged.
    """
    _check_version(document)
    _check_keys(document)
    _check_values(document, document.root, ())
    names = {
        section: _section_names(document, section)
        for section in ("engines", "models", "methods", "sampling", "workloads")
    }
    if document.node(("name",)) is not None:
        _check_name(document)
    _check_reserved(document, names)
    validated(document, ("matrix",), PlanShape)
    axes = validated(document, ("matrix", "axes"), AxesShape) if document.node(("matrix", "axes")) else None
    include = _items(document, "include", IncludeShape)
    policies = _policies(names["sampling"], [*([axes] if axes is not None else []), *include.values()])
    sampling = _entries(document, "sampling", names["sampling"], SamplingShape)
    names["sampling"] += tuple(policies)
    return Sections(
        engines=_engines(document, names["engines"]),
        models=_models(document, names["models"], names["engines"]),
        methods=_entries(document, "methods", names["methods"], MethodShape),
        sampling={**sampling, **policies},
        workloads=_entries(document, "workloads", names["workloads"], WorkloadShape),
        run=validated(document, ("run",), RunShape),
        host=validated(document, ("host",), HostShape),
        axes=axes,
        exclude=_items(document, "exclude", ExcludeShape),
        include=include,
        checks=validated(document, ("checks",), ChecksShape),
        report=validated(document, ("report",), ReportShape),
        names=names,
    )


def _check_version(document: Document) -> None:
    node = document.node(("version",))
    if node is None:
        document.fault((), f'missing key "version"; write `version: {MATRIX_VERSION}` as the first line')
        return
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        document.fault(("version",), f"must be {MATRIX_VERSION}; found {described(node)}")
    elif value > MATRIX_VERSION:
        newer = Document(document.file, document.text, document.root)
        newer.fault(
            ("version",),
            f"written for version {value} of this format, newer than version {MATRIX_VERSION}, which this specmatrix "
            "reads; use a newer specmatrix",
        )
        newer.raise_faults()


def _check_keys(document: Document) -> None:
    fields = MatrixShape.model_fields
    for key in document.root.entries:
        if key not in fields:
            what = f'unknown key "{key}"{suggestion(key, fields)}; allowed: {listed(fields)}'
            document.fault((key,), what, at=document.key_mark((key,)))
    for key, field in fields.items():
        if field.is_required() and key != "version" and key not in document.root.entries:
            document.fault((), f'missing key "{key}"')


def _check_values(document: Document, node: Node, path: TreePath) -> None:
    """A key without a value is a slip, not a wish for the default; options are their adapter's business."""
    if isinstance(node, Mapping):
        for key, (_, value) in node.entries.items():
            if key != "options":
                _check_values(document, value, (*path, key))
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            _check_values(document, item, (*path, index))
    elif node.plain and node.value is None:
        document.fault(path, NO_VALUE)


def _section_names(document: Document, section: str) -> tuple[str, ...]:
    node = document.node((section,))
    if node is None:
        return ()
    if not isinstance(node, Mapping):
        document.fault((section,), f"must be a mapping of names to their settings; found {described(node)}")
        return ()
    if not node.entries and section != "methods":
        document.fault((section,), "is empty; name at least one")
    for key in node.entries:
        if re.fullmatch(NAME_PATTERN, key) is None:
            _bad_name(document, (section, key))
    return tuple(node.entries)


def _check_name(document: Document) -> None:
    node = document.node(("name",))
    if not isinstance(node, Scalar) or not isinstance(node.value, str):
        document.fault(("name",), f"must be a text; found {described(node)}")
    elif re.fullmatch(NAME_PATTERN, node.value) is None:
        _bad_name(document, ("name",))


def _bad_name(document: Document, path: tuple[str, ...]) -> None:
    what = "a name begins with a letter or digit and holds only letters, digits and . _ + -"
    document.fault(path, what, at=document.key_mark(path) if len(path) > 1 else None)


def _check_reserved(document: Document, names: dict[str, tuple[str, ...]]) -> None:
    for name in MODEL_KEYS:
        if name in names["engines"]:
            path = ("engines", name)
            what = f'"{name}" is a key of models; give the engine another name'
            document.fault(path, what, at=document.key_mark(path))
    if BASELINE_METHOD in names["methods"]:
        path = ("methods", BASELINE_METHOD)
        what = f'the baseline "{BASELINE_METHOD}" is built in and added by itself; take this entry out'
        document.fault(path, what, at=document.key_mark(path))


def _entries(document: Document, section: str, names: tuple[str, ...], shape: type[Shape]) -> dict[str, Shape]:
    entries = [name for name in names if (section, name) != ("methods", BASELINE_METHOD)]
    found = {name: validated(document, (section, name), shape) for name in entries}
    return {name: entry for name, entry in found.items() if entry is not None}


def _policies(own: tuple[str, ...], used: list[AxesShape]) -> dict[str, SamplingShape]:
    """The built-in policies that the plan names and the file does not define."""
    named = dict.fromkeys(name for one in used for name in one.sampling)
    return {name: SamplingShape(**POLICIES[name]) for name in named if name not in own and name in POLICIES}


def _engines(document: Document, names: tuple[str, ...]) -> dict[str, EngineShape]:
    found = {}
    for name in names:
        path = ("engines", name)
        node = document.node(path)
        data = plain(node) if node is not None else None
        pin = document.node((*path, "pin"))
        if isinstance(data, dict) and isinstance(pin, Mapping):
            # As spelled: 2026.10 must not become 2026.1, nor a date-like version a date.
            data["pin"] = {key: _spelled(value) for key, (_, value) in pin.entries.items()}
        entry = validated(document, path, EngineShape, data)
        if entry is not None:
            found[name] = entry
    return found


def _spelled(node: object) -> object:
    if isinstance(node, Scalar):
        return None if node.plain and node.value is None else node.text
    return []


def _models(document: Document, names: tuple[str, ...], engines: tuple[str, ...]) -> dict[str, ModelShape]:
    found = {}
    allowed = (*MODEL_KEYS, *engines)
    for name in names:
        path = ("models", name)
        node = document.node(path)
        if not isinstance(node, Mapping):
            document.fault(path, f"must be a mapping of engines to files; found {described(node)}")
            continue
        for key in node.entries:
            if key not in allowed:
                what = f'"{key}" is neither an engine of this file nor a key{suggestion(key, allowed)}'
                document.fault((*path, key), f"{what}; allowed: {listed(allowed)}", at=document.key_mark((*path, key)))
        if not any(key in engines for key in node.entries):
            document.fault(path, f"names no files for any engine; there are: {listed(engines)}")
        known = {key: plain(value) for key, (_, value) in node.entries.items() if key in allowed}
        entry = validated(document, path, ModelShape, known)
        if entry is not None:
            found[name] = entry
        for engine in engines:
            drafts = document.node((*path, engine, "drafts"))
            for key in drafts.entries if isinstance(drafts, Mapping) else ():
                if re.fullmatch(NAME_PATTERN, key) is None:
                    _bad_name(document, (*path, engine, "drafts", key))
    return found


def _items(document: Document, key: str, shape: type[Shape]) -> dict[int, Shape]:
    node = document.node(("matrix", key))
    count = len(node.items) if isinstance(node, Sequence) else 0
    found = {index: validated(document, ("matrix", key, index), shape) for index in range(count)}
    return {index: entry for index, entry in found.items() if entry is not None}

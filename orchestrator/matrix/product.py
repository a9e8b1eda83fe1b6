"""Which combinations of names a matrix asks for, and which of them can be cells."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping

from orchestrator.matrix.types import Axes, Exclusion, ModelSpec, Point
from orchestrator.schema.cell import Method, MethodKind

MAX_POINTS = 10_000
"""Of one product. More could not be measured in years, and is a slip of the keyboard."""


def count(axes: Axes) -> int:
    """How many points the product of the axes has."""
    return math.prod(len(getattr(axes, axis)) for axis in Point._fields)


def product(axes: Axes) -> Iterator[Point]:
    """Every combination, the last axis running fastest."""
    for names in itertools.product(axes.engine, axes.model, axes.method, axes.sampling, axes.workload):
        yield Point(*names)


def exclusion_of(point: Point, exclude: Iterable[Exclusion]) -> Exclusion | None:
    """The first exclusion that matches the point in every axis that it names."""
    return next((one for one in exclude if _matches(point, one)), None)


def refusal(point: Point, models: Mapping[str, ModelSpec], methods: Mapping[str, Method]) -> str | None:
    """Why the point cannot be a cell: the model lacks a file that the engine or the method needs.

    Args:
        point: names that are all defined.
        models: by name.
        methods: by name, with the built-in baseline.
    """
    model, method = models[point.model], methods[point.method]
    files = model.files.get(point.engine)
    if files is None:
        there = ", ".join(model.files)
        return f"models.{model.name} names no files for engine {point.engine} (it has: {there})"
    place = f"models.{model.name}.{point.engine}"
    if method.draft is not None and method.draft not in files.drafts:
        there = ", ".join(files.drafts) or "none"
        return f"method {method.name} needs the draft {method.draft}, which {place}.drafts lacks (it has: {there})"
    if method.kind is MethodKind.MTP and files.mtp is None and not files.mtp_inside:
        return f"method {method.name} needs an MTP module: give {place}.mtp a path, or the word inside"
    return None


def _matches(point: Point, exclusion: Exclusion) -> bool:
    for axis, name in zip(Point._fields, point, strict=True):
        names = getattr(exclusion, axis)
        if names is not None and name not in names:
            return False
    return True

"""Faults that only show when sections are read together: names that do not exist, cells that cannot be."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from orchestrator.matrix import build
from orchestrator.matrix.document import listed, suggestion
from orchestrator.matrix.policies import POLICIES
from orchestrator.matrix.presets import PRESETS
from orchestrator.matrix.product import MAX_POINTS, count, exclusion_of, product, refusal
from orchestrator.matrix.types import BASELINE_METHOD, Axes, Point
from orchestrator.matrix.yaml_tree import Mapping, Sequence
from orchestrator.workloads.load import is_path

if TYPE_CHECKING:
    from orchestrator.matrix.document import Document, TreePath
    from orchestrator.matrix.sections import Sections
    from orchestrator.matrix.shape import AxesShape, ExcludeShape, RunShape

OWN_PROMPTS = ", or a .jsonl or .txt file, or a folder, written with a slash"
_SECTION_OF = {
    "engine": "engines",
    "model": "models",
    "method": "methods",
    "sampling": "sampling",
    "workload": "workloads",
}


def check_references(document: Document, sections: Sections, prompt_sets: Collection[str] | None) -> set[Point]:
    """Notes every fault between sections, and returns the points that become cells.

    Args:
        document: the file; its faults grow.
        sections: what is valid by itself.
        prompt_sets: names of the prompt sets there are; ``None`` leaves them to whoever loads them.
    """
    _check_methods(document, sections)
    _check_order(document, sections)
    _check_sampling(document, sections)
    _check_framing(document, sections)
    if prompt_sets is not None:
        _check_prompts(document, sections, prompt_sets)
    axes_known = sections.axes is None or _check_names(document, ("matrix", "axes"), sections.axes, sections)
    for index, exclude in sections.exclude.items():
        path = ("matrix", "exclude", index)
        if all(getattr(exclude, axis) is None for axis in Point._fields):
            what = f"names no axis, so it would take everything out; name one of: {listed(Point._fields)}"
            document.fault(path, what)
        _check_names(document, path, exclude, sections)
    includes = {
        index: build.axes(include)
        for index, include in sections.include.items()
        if _check_names(document, ("matrix", "include", index), include, sections)
    }
    plan = document.node(("matrix",))
    if isinstance(plan, Mapping) and not {"axes", "include"} & set(plan.entries):
        document.fault(("matrix",), "names no cell to measure; give it axes, or include")
    return _points(document, sections, build.axes(sections.axes) if sections.axes and axes_known else None, includes)


def _points(document: Document, sections: Sections, axes: Axes | None, includes: dict[int, Axes]) -> set[Point]:
    models = {name: build.model(name, shape) for name, shape in sections.models.items()}
    methods = {name: build.method(name, shape) for name, shape in sections.methods.items()}
    methods[BASELINE_METHOD] = build.BASELINE
    excludes = [build.exclusion(shape) for shape in sections.exclude.values()]
    formed: set[Point] = set()
    reasons: list[str] = []

    def judge(point: Point) -> str | None:
        known = point.model in models and point.method in methods
        return refusal(point, models, methods) if known else None

    if axes is not None and _small(document, ("matrix", "axes"), axes):
        for point in product(axes):
            reason = judge(point)
            if exclusion_of(point, excludes) is None and reason is None:
                formed.add(point)
            elif reason is not None:
                reasons.append(f"{point.id}: {reason}")
    for index, include in includes.items():
        path: TreePath = ("matrix", "include", index)
        for point in product(include) if _small(document, path, include) else ():
            reason = judge(point)
            if reason is None:
                formed.add(point)
            else:
                document.fault(path, f"{point.id} cannot be formed: {reason}")
    if not document.faulty and not formed:
        why = f"; first of {len(reasons)} reasons: {reasons[0]}" if reasons else ""
        document.fault(("matrix",), f"no cell is left to measure{why}")
    return formed


def _small(document: Document, path: TreePath, axes: Axes) -> bool:
    number = count(axes)
    if number > MAX_POINTS:
        document.fault(path, f"comes to {number} cells, more than the {MAX_POINTS} that are read; name fewer")
    return number <= MAX_POINTS


def _check_names(document: Document, path: TreePath, shape: AxesShape | ExcludeShape, sections: Sections) -> bool:
    before = True
    for axis, section in _SECTION_OF.items():
        known = sections.names[section] + ((BASELINE_METHOD,) if axis == "method" else ())
        in_list = isinstance(document.node((*path, axis)), Sequence)
        for index, name in enumerate(getattr(shape, axis) or ()):
            if name not in known:
                before = False
                place = (*path, axis, index) if in_list else (*path, axis)
                built_in = tuple(POLICIES) if axis == "sampling" else ()
                more = f"; built in: {listed(built_in)}" if built_in else ""
                hint = suggestion(name, (*known, *built_in))
                document.fault(place, f'{section} has no "{name}"{hint}; there are: {listed(known)}{more}')
    return before


def _check_methods(document: Document, sections: Sections) -> None:
    for name, shape in sections.methods.items():
        path = ("methods", name)
        if shape.method == "draft" and shape.draft is None:
            document.fault(path, 'missing key "draft": the name, under drafts of the model, of the draft to use')
        elif shape.method != "draft" and shape.draft is not None:
            what = f"only method draft uses a draft model, this is method {shape.method}; take the key out"
            document.fault((*path, "draft"), what)


def _check_order(document: Document, sections: Sections) -> None:
    run = sections.run
    if run is None:
        return
    if run.order == "abba" and run.sessions is not None and run.sessions % 2:
        what = f"order abba needs an even number of sessions, {run.sessions} is odd; change it, or write order: random"
        document.fault(("run", "sessions"), what)
    if run.order == "blocked_with_canary" and run.twin is False:
        what = "in order blocked_with_canary the twin is the canary; take the key out, or choose another order"
        document.fault(("run", "twin"), what)
    _check_adaptive(document, run)


def _check_adaptive(document: Document, run: RunShape) -> None:
    if run.adaptive is None:
        return
    path: TreePath = ("run", "adaptive", "max_sessions")
    most, least = run.adaptive.max_sessions, run.sessions or PRESETS[run.preset].sessions
    if run.order == "blocked_with_canary":
        what = "order blocked_with_canary completes all sets at its end and cannot stop early; choose one of the two"
        document.fault(("run", "adaptive"), what)
    elif run.order == "abba" and most % 2:
        document.fault(path, f"order abba needs an even number of sessions, {most} is odd; change it")
    if most < least:
        document.fault(path, f"{most} is less than the {least} sessions that are measured in any case; write more")


def _check_sampling(document: Document, sections: Sections) -> None:
    for name, shape in sections.sampling.items():
        if shape.temperature == 0 and shape.xtc_probability > 0:
            what = (
                "XTC takes the best token away, temperature 0 always takes it; set one of the two to mean what you want"
            )
            document.fault(("sampling", name, "xtc_probability"), what)


def _check_framing(document: Document, sections: Sections) -> None:
    for name, shape in sections.workloads.items():
        for key in ("system", "thinking"):
            if shape.template == "raw" and getattr(shape, key) is not None:
                what = f"{key} is of a conversation: write template: chat beside it, or take the key out"
                document.fault(("workloads", name, key), what)
        if shape.template == "chat" and shape.prefix is not None:
            what = "a prefix stands before raw prompts; of a conversation write system, or take the key out"
            document.fault(("workloads", name, "prefix"), what)
        if shape.cache == "shared-prefix" and shape.prefix is None and shape.system is None:
            what = "no start is shared: write prefix (or, with template chat, system) beside it"
            document.fault(("workloads", name, "cache"), what)


def _check_prompts(document: Document, sections: Sections, prompt_sets: Collection[str]) -> None:
    for name, shape in sections.workloads.items():
        if is_prompt_file(shape.prompts):
            continue
        if shape.format is not None:
            what = f'"{shape.prompts}" is no path, and sets of the program have their format; take the key out'
            document.fault(("workloads", name, "format"), what)
        if shape.prompts in prompt_sets:
            continue
        what = f'no prompt set "{shape.prompts}"{suggestion(shape.prompts, prompt_sets)}; there are: '
        document.fault(("workloads", name, "prompts"), what + listed(prompt_sets) + OWN_PROMPTS)


def is_prompt_file(prompts: str) -> bool:
    """Whether ``prompts`` is a path rather than the name of a set, as its reader tells them apart."""
    return is_path(prompts)

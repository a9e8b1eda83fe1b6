"""From valid shapes to the types that the rest of the program uses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from orchestrator.matrix.presets import PRESETS, PresetName
from orchestrator.matrix.shape import (
    MTP_INSIDE,
    AxesShape,
    ChecksShape,
    EngineShape,
    ExcludeShape,
    FilesShape,
    HostShape,
    MethodShape,
    ModelShape,
    RunShape,
    SamplingShape,
    WorkloadShape,
)
from orchestrator.matrix.types import (
    BASELINE_METHOD,
    Adaptive,
    Axes,
    CheckSettings,
    Exclusion,
    HostSettings,
    ModelFiles,
    ModelSpec,
    Point,
    Reserve,
    RunSettings,
)
from orchestrator.schema.cell import EngineConfig, Method, MethodKind, Sampling, Workload

BASELINE = Method(BASELINE_METHOD, MethodKind.NONE)


def engine(name: str, shape: EngineShape, options: dict[str, Any]) -> EngineConfig:
    """The engine with its adapter's ``options``, defaults filled in."""
    return EngineConfig(name, shape.adapter, shape.binary, shape.python, dict(shape.pin), shape.allow_unpinned, options)


def model(name: str, shape: ModelShape) -> ModelSpec:
    """The model with its files by engine, paths as written."""
    files = {key: _files(value) for key, value in (shape.__pydantic_extra__ or {}).items()}
    return ModelSpec(name, shape.same_target, shape.weights_equivalent, files)


def _files(shape: FilesShape) -> ModelFiles:
    inside = shape.mtp == MTP_INSIDE
    return ModelFiles(shape.target, dict(shape.drafts), None if inside else shape.mtp, inside)


def method(name: str, shape: MethodShape) -> Method:
    """The method with its options as written."""
    return Method(name, MethodKind(shape.method), shape.n_max, shape.draft, dict(shape.options))


def sampling(name: str, shape: SamplingShape) -> Sampling:
    """The policy with every setting stated."""
    return Sampling(
        name=name,
        temperature=shape.temperature,
        seed=shape.seed,
        top_k=shape.top_k,
        top_p=shape.top_p,
        min_p=shape.min_p,
        repeat_penalty=shape.repeat_penalty,
        presence_penalty=shape.presence_penalty,
        frequency_penalty=shape.frequency_penalty,
        xtc_probability=shape.xtc_probability,
        xtc_threshold=shape.xtc_threshold,
    )


def workload(name: str, shape: WorkloadShape) -> Workload:
    """The workload."""
    return Workload(
        name,
        shape.prompts,
        shape.max_tokens,
        shape.eos,
        format=shape.format,
        template=shape.template,
        system=shape.system,
        thinking=shape.thinking,
        cache=shape.cache,
        prefix=shape.prefix,
        trials=shape.trials,
    )


def run(shape: RunShape) -> RunSettings:
    """The preset's numbers, replaced by those that are written."""
    preset = PRESETS[shape.preset]
    return RunSettings(
        preset=shape.preset,
        sessions=preset.sessions if shape.sessions is None else shape.sessions,
        trials=preset.trials if shape.trials is None else shape.trials,
        warmup=preset.warmup if shape.warmup is None else shape.warmup,
        order=shape.order,
        order_seed=shape.order_seed,
        cache=shape.cache,
        # In a blocked order the twin is the canary, and there is no such order without one.
        twin=shape.order == "blocked_with_canary" or (preset.twin if shape.twin is None else shape.twin),
        phases=preset.phases if shape.phases is None else shape.phases,
        silence_timeout_s=shape.timeout.silence,
        total_timeout_s=shape.timeout.total,
        startup_timeout_s=shape.timeout.startup,
        adaptive=Adaptive(shape.adaptive.half_width, shape.adaptive.max_sessions) if shape.adaptive else None,
        confirm_winner=preset.confirm_winner if shape.confirm_winner is None else shape.confirm_winner,
        force_fit=shape.force_fit,
    )


def checks(shape: ChecksShape, preset: PresetName) -> CheckSettings:
    """The checks, with the preset's choice where none is written."""
    wanted = PRESETS[preset].cross_scoring if shape.cross_scoring is None else shape.cross_scoring
    return CheckSettings(
        greedy_identity=shape.greedy_identity,
        cross_scoring=wanted,
        memory_trial=shape.memory_trial,
        distribution=shape.distribution,
    )


def host(shape: HostShape) -> HostSettings:
    """The machine's settings."""
    return HostSettings(tuple(Reserve(one.name, one.bytes) for one in shape.reserve), shape.environment)


def axes(shape: AxesShape) -> Axes:
    """The axes."""
    return Axes(*(tuple(getattr(shape, axis)) for axis in Point._fields))


def exclusion(shape: ExcludeShape) -> Exclusion:
    """The exclusion; an axis that it does not name matches everything."""
    named = {axis: getattr(shape, axis) for axis in Point._fields}
    given = {axis: None if names is None else tuple(names) for axis, names in named.items()}
    return Exclusion(**given, why=shape.why or "")


def default_paths(shape: BaseModel, prefix: str) -> Iterator[str]:
    """Dotted paths of the values that the file does not say."""
    extra = shape.__pydantic_extra__ or {}
    for name, value in ((name, getattr(shape, name)) for name in (*type(shape).model_fields, *extra)):
        path = f"{prefix}.{name}"
        if isinstance(value, BaseModel):
            yield from default_paths(value, path)
        elif name not in shape.model_fields_set and name not in extra:
            yield path

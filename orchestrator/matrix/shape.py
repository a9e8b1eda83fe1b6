"""The shape of the file: which keys there are and what each may hold. The JSON Schema is made from these models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from orchestrator.matrix.presets import (
    DEFAULT_PRESET,
    DEFAULT_SEED,
    DEFAULT_SILENCE_S,
    DEFAULT_STARTUP_S,
    DEFAULT_TOTAL_S,
    PresetName,
)
from orchestrator.matrix.quantities import (
    DURATION_PATTERN,
    SHARE_PATTERN,
    SIZE_PATTERN,
    duration_s,
    share,
    size_bytes,
)
from orchestrator.matrix.types import BASELINE_METHOD, CachePolicy, DistributionCheck, Environment, Language, Order
from orchestrator.schema.cell import EosPolicy
from orchestrator.workloads.load import Format

MATRIX_VERSION = 1
"""Version of the file format.

History:
    1: first version.
"""

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
"""Names become parts of a cell's id and of folder names: no slash, nothing that a glob or a shell reads."""

MODEL_KEYS = ("same_target", "weights_equivalent")
"""Keys of a model that are not engines."""

MTP_INSIDE = "inside"
"""The value of ``mtp`` that says: the module is part of the target itself."""

Text = Annotated[str, Field(min_length=1)]
Name = Annotated[str, Field(pattern=NAME_PATTERN)]
Duration = Annotated[
    float,
    BeforeValidator(duration_s),
    WithJsonSchema(
        {"anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": DURATION_PATTERN}]}
    ),
]
Size = Annotated[
    int,
    BeforeValidator(size_bytes),
    WithJsonSchema({"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": SIZE_PATTERN}]}),
]
Share = Annotated[
    float,
    BeforeValidator(share),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
                {"type": "string", "pattern": SHARE_PATTERN},
            ]
        }
    ),
]


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


Names = Annotated[
    list[str],
    BeforeValidator(_listed),
    Field(min_length=1),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1, "items": {"type": "string"}}]}),
]


class Strict(BaseModel):
    """No unknown key, no silent conversion of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class EngineShape(Strict):
    """One way to run one engine."""

    adapter: str = Field(description="Which adapter drives this engine; `specmatrix engines` lists them.")
    binary: Text | None = Field(default=None, description="Server program: a path, or a command found on PATH.")
    python: Text | None = Field(default=None, description="Python interpreter in which the engine is installed.")
    pin: dict[str, Text] = Field(
        default_factory=dict,
        description="Versions that must be found, as written; another one is not run. Without a pin: unpinned.",
        json_schema_extra={"additionalProperties": {"type": ["string", "number"], "minLength": 1}},
    )
    allow_unpinned: bool = Field(default=False, description="Measure although the version found is not the pinned one.")
    options: dict[str, Any] = Field(default_factory=dict, description="Settings of this engine, by its adapter.")


class FilesShape(Strict):
    """The files of a model for one engine: absolute, from ~, from this file's folder, or demo:NAME."""

    target: Text = Field(description="The model itself: a file or a folder, whichever the engine reads.")
    drafts: dict[str, Text] = Field(
        default_factory=dict,
        description="Draft models by the name that methods use.",
        json_schema_extra={"propertyNames": {"pattern": NAME_PATTERN}},
    )
    mtp: Text | None = Field(
        default=None, description="MTP module: a path, or `inside` when it is part of the target's own file."
    )


class ModelShape(BaseModel):
    """One target model, with its files by engine."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)
    __pydantic_extra__: dict[str, FilesShape]

    same_target: Name | None = Field(
        default=None, description="Models (and engines) with the same word here may stand side by side in the report."
    )
    weights_equivalent: bool = Field(
        default=False, description="Declares that all engines' files hold the same weights, so ratios are allowed."
    )


class MethodShape(Strict):
    """One way to speculate. The baseline is built in under the name `none`."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"method": {"const": "draft"}}, "required": ["method"]},
            "then": {"required": ["draft"]},
            "else": {"properties": {"draft": False}},
        }
    )

    method: Literal["draft", "mtp", "ngram"] = Field(description="What makes the draft tokens.")
    n_max: int = Field(ge=1, le=1024, description="Draft length K: at most so many tokens per verify round.")
    draft: Name | None = Field(default=None, description="For method draft: a name under `drafts` of the model.")
    options: dict[str, Any] = Field(default_factory=dict, description="Further settings, by the engine's adapter.")


class SamplingShape(Strict):
    """A sampling policy. All settings are sent with each request; the defaults switch a sampler off."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"temperature": {"const": 0}}},
            "then": {"properties": {"xtc_probability": {"const": 0}}},
        }
    )

    temperature: float = Field(ge=0, le=100, description="0 takes the best token every time (greedy).")
    top_k: int = Field(default=0, ge=0, description="0: off.")
    top_p: float = Field(default=1.0, gt=0, le=1, description="1: off.")
    min_p: float = Field(default=0.0, ge=0, le=1, description="0: off.")
    repeat_penalty: float = Field(default=1.0, gt=0, le=100, description="1: off.")
    presence_penalty: float = Field(default=0.0, ge=-100, le=100, description="0: off.")
    frequency_penalty: float = Field(default=0.0, ge=-100, le=100, description="0: off.")
    xtc_probability: float = Field(
        default=0.0, ge=0, le=1, description="0: off. How often the likeliest tokens are excluded (XTC)."
    )
    xtc_threshold: float = Field(default=0.1, ge=0, le=0.5, description="XTC keeps the least likely token above this.")
    seed: int = Field(
        default=DEFAULT_SEED, ge=0, le=2**31 - 1, description="Start of the random numbers; requests derive theirs."
    )


class WorkloadShape(Strict):
    """What is asked, and how long the answers may be."""

    prompts: Text = Field(
        description="Name of a prompt set (`specmatrix workloads` lists them); or a .jsonl or .txt file of your own, "
        "or a folder of texts, written with a slash."
    )
    format: Format | None = Field(
        default=None, description="Shape of your own file, where its name and its first line do not tell it."
    )
    template: Literal["raw", "chat"] = Field(
        default="raw",
        description="raw: prompts go to the model as they stand. chat: as a conversation, in the chat template of the "
        "model's own files, rendered here so that every engine is given the same text.",
    )
    system: Text | None = Field(
        default=None, description="With template chat: a system prompt, in place of one that the prompts bring."
    )
    thinking: bool | None = Field(
        default=None,
        description="With template chat: whether the model shall think first (enable_thinking); unset leaves it to the "
        "template.",
    )
    cache: Literal["cold", "warm", "shared-prefix"] = Field(
        default="cold",
        description="cold: no request meets an earlier one's prompt cache. warm: each prompt is asked once untimed "
        "right before it is measured. shared-prefix: prompts share their start (prefix, or system with template chat), "
        "which an untimed request puts into the cache first. No two of these are ever compared.",
    )
    prefix: Text | None = Field(default=None, description="With template raw: text that stands before every prompt.")
    trials: int | None = Field(
        default=None,
        ge=1,
        le=10_000,
        description="Measured requests per session, one prompt each, in place of the run's own number: all of a set "
        "of tasks, for instance.",
    )
    max_tokens: int = Field(ge=1, description="Output limit of each answer, in tokens.")
    eos: EosPolicy = Field(
        default=EosPolicy.STOP,
        description="At end of text: stop there; continue past it; or mask the token so that it cannot be chosen.",
    )


class TimeoutShape(Strict):
    """Seconds as a number, or with a unit: 90s, 2min, 1h."""

    silence: Duration = Field(default=DEFAULT_SILENCE_S, description="Longest time without a sign of life.")
    total: Duration = Field(default=DEFAULT_TOTAL_S, description="Longest time for one request.")
    startup: Duration = Field(default=DEFAULT_STARTUP_S, description="Longest time until the engine is ready.")


class AdaptiveShape(Strict):
    """Goes on after `sessions` until the intervals are narrow enough, in whole sets."""

    half_width: Share = Field(default=0.02, description="Wanted precision of the total wait: 2% or 0.02.")
    max_sessions: int = Field(ge=4, le=1000, description="Stop there whatever the precision.")


class RunShape(Strict):
    """How much is measured."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"order": {"const": "abba"}}},
            "then": {"properties": {"sessions": {"multipleOf": 2}}},
        }
    )

    preset: PresetName = Field(
        default=DEFAULT_PRESET,
        description="Sessions × trials: demo 4×3, quick 2×3 (no verdicts), standard 4×5, publish 8×3.",
    )
    sessions: int | None = Field(default=None, ge=1, le=1000, description="Fresh engine processes per cell.")
    trials: int | None = Field(default=None, ge=1, le=10000, description="Measured requests per session.")
    warmup: int | None = Field(
        default=None, ge=0, le=1000, description="At most so many requests before them; kept, marked, not pooled."
    )
    adaptive: AdaptiveShape | None = Field(
        default=None, description="More sessions, up to a limit, until the wait is known within ±half_width."
    )
    order: Order = Field(
        default="abba",
        description="How a cell and its baseline alternate. blocked_with_canary, where loading is dear: all sessions "
        "of a cell in a row, the baseline before and after the others.",
    )
    order_seed: int = Field(default=DEFAULT_SEED, ge=0, le=2**31 - 1, description="Seed of the order `random`.")
    cache: CachePolicy = Field(default="cold", description="Prompt caches: cold, no request meets an earlier one's.")
    twin: bool | None = Field(
        default=None, description="Measure each baseline twice, to know the noise. Default: in standard and publish."
    )
    phases: bool | None = Field(
        default=None,
        description="Time drafting, verifying and rollback in an untimed repeat, where an engine allows it. "
        "Default: in publish.",
    )
    confirm_winner: bool | None = Field(
        default=None,
        description="Where several cells of a block are faster, measure the best anew before it is called best. "
        "Default: in publish.",
    )
    force_fit: bool = Field(
        default=False, description="Measure also what cannot fit into memory by the prediction of `specmatrix check`."
    )
    timeout: TimeoutShape = Field(default_factory=TimeoutShape, description="When to give up.")


class ReserveShape(Strict):
    """Memory that something else on this machine must keep."""

    name: Text = Field(description="What it is.")
    bytes: Size = Field(description="How much: 12GiB, 8GB, or a number of bytes.")


class HostShape(Strict):
    """The machine while it measures."""

    reserve: list[ReserveShape] = Field(default_factory=list, description="Memory to leave to other programs.")
    environment: Environment = Field(
        default="everyday", description="clean: nothing else runs. everyday: the usual programs run as well."
    )


class AxesShape(Strict):
    """Every combination of these names is a cell."""

    engine: Names
    model: Names
    method: Names = Field(description="Names under `methods`, or `none` for the baseline alone.")
    sampling: Names
    workload: Names


class ExcludeShape(Strict):
    """Takes out of the product what matches all the keys given."""

    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [{"required": [key]} for key in ("engine", "model", "method", "sampling", "workload")]
        }
    )

    engine: Names | None = None
    model: Names | None = None
    method: Names | None = None
    sampling: Names | None = None
    workload: Names | None = None
    why: Text | None = Field(default=None, description="The reason, for the report.")


class IncludeShape(AxesShape):
    """Adds every combination of these names, after `exclude`."""


class PlanShape(Strict):
    """Which cells there are: the product of the axes, less `exclude`, plus `include`. Baselines come by themselves."""

    model_config = ConfigDict(json_schema_extra={"anyOf": [{"required": ["axes"]}, {"required": ["include"]}]})

    axes: AxesShape | None = Field(default=None, description="The product.")
    exclude: list[ExcludeShape] = Field(default_factory=list, description="What to take out of the product.")
    include: list[IncludeShape] = Field(default_factory=list, description="What to add to it.")


class ChecksShape(Strict):
    """Which checks of the answers are wanted."""

    greedy_identity: bool = Field(default=True, description="At temperature 0: the same tokens with and without?")
    distribution: DistributionCheck | None = Field(
        default=None,
        description="Above temperature 0: the same distribution of answers? screen: 1 000 short generations per arm "
        "and context, certify: 7 000. Each speculative cell gets a check, with the id of the cell and ~check.",
    )
    cross_scoring: bool | None = Field(
        default=None,
        description="The baseline scores both arms' texts token by token, untimed: finds in long texts what short ones "
        "hide. Default: in publish.",
    )
    memory_trial: bool = Field(
        default=False,
        description="One untimed request per cell with weights not mapped: how much memory a drafter adds.",
    )


class ReportShape(Strict):
    """The report."""

    language: Language = Field(default="en", description="Language of its sentences.")


def _names(*reserved: str) -> dict[str, Any]:
    rule: dict[str, Any] = {"pattern": NAME_PATTERN}
    return {"propertyNames": {**rule, "not": {"enum": list(reserved)}} if reserved else rule}


class MatrixShape(Strict):
    """A matrix of speculative decoding measurements."""

    version: Literal[1] = Field(description="Version of this file format.")
    name: Name = Field(description="Names the runs of this matrix.")
    engines: dict[str, EngineShape] = Field(
        min_length=1, description="The engines, by names of your choice.", json_schema_extra=_names(*MODEL_KEYS)
    )
    models: dict[str, ModelShape] = Field(
        min_length=1, description="The target models, by names of your choice.", json_schema_extra=_names()
    )
    methods: dict[str, MethodShape] = Field(
        default_factory=dict, description="Ways to speculate.", json_schema_extra=_names(BASELINE_METHOD)
    )
    sampling: dict[str, SamplingShape] = Field(
        default_factory=dict,
        min_length=1,
        description="Sampling policies, besides those that are built in: greedy, t0.6, t0.8, t1.0 and more.",
        json_schema_extra=_names(),
    )
    workloads: dict[str, WorkloadShape] = Field(min_length=1, description="What is asked.", json_schema_extra=_names())
    run: RunShape = Field(default_factory=RunShape, description="How much is measured.")
    host: HostShape = Field(default_factory=HostShape, description="The machine while it measures.")
    matrix: PlanShape = Field(description="Which combinations are measured.")
    checks: ChecksShape = Field(default_factory=ChecksShape, description="Checks of the answers.")
    report: ReportShape = Field(default_factory=ReportShape, description="The report.")

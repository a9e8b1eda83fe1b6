"""What llama-cpp-python can do, decided before any process starts, and the acceptance rule that it follows."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adapters.shared.gguf import GgufError, GgufHeader, read_header
from orchestrator.schema.adapter import Claim, EngineIdentity, Refusal, Rule
from orchestrator.schema.cell import Cell, Method, MethodKind
from orchestrator.schema.status import Status

CHECKED_VERSIONS = frozenset({"0.3.36"})
"""Versions of the package whose loop was read and measured."""

RECURRENT_KEYS = ("ssm.", "wkv.", "wkv_head_size", "shortconv.", "time_mix_extra_dim", "kda.")
"""Keys of a GGUF header, after its architecture, of models with a state that is not a cache of tokens."""

WINDOW_KEY = "attention.sliding_window"

CacheType = Literal["f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0"]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class PythonOptions(_Strict):
    """``engines.*.options`` of llama-cpp-python."""

    threads: int | None = Field(
        default=None,
        ge=1,
        le=1024,
        description="CPU threads; engine's own choice if unset: half the cores, all to verify.",
    )
    context: int = Field(default=4096, ge=1, description="Context size in tokens.")
    gpu_layers: int | None = Field(
        default=None, ge=-1, description="Layers on the GPU, -1 for all; engine's own choice if unset, which is 0."
    )
    flash_attention: bool = Field(default=False, description="Flash attention.")
    batch: int = Field(default=512, ge=1, description="Logical batch size in tokens (prefill).")
    ubatch: int = Field(default=512, ge=1, description="Physical batch size in tokens (prefill).")
    mmap: bool = Field(default=True, description="Map the model's file instead of reading it into memory.")
    cache_type_k: CacheType = Field(default="f16", description="Number format of the K cache.")
    cache_type_v: CacheType = Field(default="f16", description="Number format of the V cache.")


class NoOptions(_Strict):
    """Method ``none`` has no options."""


class LookupOptions(_Strict):
    """Options of the method ``ngram`` (the package's prompt lookup); ``n_max`` is its ``num_pred_tokens``."""

    max_ngram_size: int = Field(
        default=2, ge=1, le=1024, description="Longest end of the text that is looked up in it; shorter ones follow."
    )


def engine_options(cell: Cell) -> PythonOptions:
    """The cell's engine options with defaults filled in; raises ``pydantic.ValidationError``."""
    return PythonOptions.model_validate(dict(cell.engine.options))


def lookup_options(method: Method) -> LookupOptions:
    """Options of an ``ngram`` method; raises ``pydantic.ValidationError``."""
    return LookupOptions.model_validate(dict(method.options))


def supports(cell: Cell, identity: EngineIdentity) -> Refusal | None:
    """Why the cell cannot work, in words."""
    if identity.unavailable is not None:
        return Refusal(Status.UNAVAILABLE, identity.unavailable)
    try:
        return _refuse_method(cell) or _refuse_options(cell) or _refuse_sampling(cell) or _refuse_model(cell)
    except GgufError as err:
        return Refusal(
            Status.UNSUPPORTED, str(err), "llama.cpp loads GGUF files; convert the model, or correct the path"
        )


def claim(cell: Cell, identity: EngineIdentity) -> Claim:
    """A proposed token is kept where the target samples the same one, with the same random numbers as without."""
    by = "llama-cpp-python 0.3.36 source, measured on the CPU"
    if cell.method.kind is MethodKind.NONE:
        return Claim(Rule.NONE, exact=True, by=by, note="no speculation")
    rule = Rule.GREEDY_MATCH if cell.sampling.greedy else Rule.SAMPLE_MATCH
    if identity.version not in CHECKED_VERSIONS:
        found = identity.version or "of unknown version"
        return Claim(rule, exact=None, by=by, note=f"the rule was checked at 0.3.36, this engine is {found}")
    if _window(cell):
        note = "the model's sliding window was not checked: taking tokens back from it may leave it incomplete"
        return Claim(rule, exact=None, by=by, note=note)
    note = "verify batches can run other kernels than single tokens: quantised or GPU targets may flip near-ties"
    return Claim(rule, exact=True, by=by, note=note)


def _refuse_method(cell: Cell) -> Refusal | None:
    method = cell.method
    if cell.engine.binary is not None:
        reason = "llama-cpp-python is a Python package, not a binary"
        return Refusal(Status.UNSUPPORTED, reason, f"name its interpreter: engines.{cell.engine.name}.python")
    if method.kind is MethodKind.DRAFT:
        reason = "llama-cpp-python has no drafter that is a model: its draft_model is a Python function, prompt lookup"
        return Refusal(Status.UNSUPPORTED, reason, "measure an external draft with llama-server, or method ngram here")
    if method.kind is MethodKind.MTP:
        reason = "llama-cpp-python does not speculate with a model's MTP layers: only its C bindings know of them"
        return Refusal(Status.UNSUPPORTED, reason, "measure MTP with llama-server")
    if method.kind is MethodKind.NGRAM and (method.n_max is None or method.n_max < 1):
        reason = f"method {method.name}: n_max is {method.n_max}, a draft has at least 1 token"
        return Refusal(Status.UNSUPPORTED, reason, f"set methods.{method.name}.n_max")
    return None


def _refuse_options(cell: Cell) -> Refusal | None:
    try:
        options = engine_options(cell)
        (lookup_options(cell.method) if cell.method.kind is MethodKind.NGRAM else NoOptions.model_validate({}))
    except ValidationError as err:
        first = err.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        return Refusal(Status.UNSUPPORTED, f"option {where}: {first['msg']}", "correct the option in the matrix")
    if cell.method.kind is MethodKind.NGRAM and (cell.method.n_max or 0) + 1 > options.batch:
        reason = f"n_max {cell.method.n_max} and the token before it are more than a batch of {options.batch}"
        return Refusal(Status.UNSUPPORTED, reason, "raise the engine's option batch")
    return None


def _refuse_sampling(cell: Cell) -> Refusal | None:
    if cell.sampling.xtc_probability > 0:
        reason = "llama-cpp-python's generate has no XTC"
        return Refusal(
            Status.UNSUPPORTED, reason, "set xtc_probability to 0, or measure it with llama-server or MLX-LM"
        )
    if not cell.sampling.temperature >= 0:
        reason = f"temperature {cell.sampling.temperature:g}: the package reads less than 0 as something else"
        return Refusal(Status.UNSUPPORTED, reason, "set a temperature of at least 0")
    return None


def _refuse_model(cell: Cell) -> Refusal | None:
    header = read_header(cell.model.target)
    if cell.method.kind is not MethodKind.NGRAM:
        return None
    key = recurrent_key(header)
    if key is None:
        return None
    reason = (
        f"{cell.model.target} is a recurrent or hybrid model ({key}): llama-cpp-python cannot take its state back to "
        "before a refused draft token, and its next decode call fails (llama_decode returned -1)"
    )
    return Refusal(Status.UNSUPPORTED, reason, "measure n-gram drafts of this model with llama-server")


def recurrent_key(header: GgufHeader) -> str | None:
    """The header's key that tells a recurrent or hybrid model, if there is one."""
    prefixes = tuple(f"{header.architecture}.{key}" for key in RECURRENT_KEYS)
    return next((key for key in (*header.scalars, *header.array_lengths) if key.startswith(prefixes)), None)


def _window(cell: Cell) -> bool:
    try:
        header = read_header(cell.model.target)
    except GgufError:
        return False
    found = header.scalars.get(f"{header.architecture}.{WINDOW_KEY}")
    return isinstance(found, int) and found > 0

"""Which methods and samplers mlx-vlm has, and the acceptance rule claimed for them."""

from __future__ import annotations

from adapters.mlx_vlm import files
from adapters.shared.penalties import neutral_penalties
from orchestrator.schema.adapter import Claim, Refusal, Rule
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.status import Status

CHECKED_VERSIONS = frozenset({"0.7.10"})
"""Versions of mlx-vlm whose acceptance rule was read in the source and measured."""
MEASURED_DRAFTERS = frozenset({"qwen3_5_mtp", "qwen3_5"})
"""Drafter models with which it was measured."""


def claim(cell: Cell, version: str | None) -> Claim:
    """The rule claimed for a cell under that version of mlx-vlm.

    The round loop is one for all MTP drafters, but each family of models has a verify pass of its own.
    """
    by = "mlx-vlm 0.7.10 source, measured"
    if cell.method.kind is MethodKind.NONE:
        return Claim(Rule.NONE, exact=True, by=by, note="no speculation")
    if cell.method.kind is not MethodKind.MTP:
        return Claim(Rule.UNKNOWN, exact=None, by=by, note="mlx-vlm has no such method")
    rule = Rule.GREEDY_MATCH if cell.sampling.greedy else Rule.SAMPLE_MATCH
    if version not in CHECKED_VERSIONS:
        found = version or "of unknown version"
        return Claim(rule, exact=None, by=by, note=f"the rule was checked at 0.7.10, this engine is {found}")
    if not neutral_penalties(cell.sampling):
        return Claim(rule, exact=False, by=by, note=PENALTIES)
    kind = _drafter_kind(cell)
    if kind not in MEASURED_DRAFTERS:
        note = f"read in the source for every MTP drafter, measured with Qwen3.5's alone; this one is {kind}"
        return Claim(rule, exact=None, by="mlx-vlm 0.7.10 source", note=note)
    return Claim(rule, exact=True, by=by, note="a draft token is emitted only where it is the target's own choice")


PENALTIES = "while it speculates mlx-vlm applies penalties to the first token alone, and says nothing"


def refuse_method(cell: Cell) -> Refusal | None:
    """A way to speculate that this adapter does not have, or one that is not wholly described."""
    method = cell.method
    if cell.engine.binary is not None:
        reason = "mlx_vlm is a Python package, not a binary"
        return Refusal(Status.UNSUPPORTED, reason, f"name its interpreter: engines.{cell.engine.name}.python")
    if method.kind is MethodKind.DRAFT:
        reason = "mlx-vlm drafts with modules that read the target's hidden states, not with a draft model of its own"
        return Refusal(Status.UNSUPPORTED, reason, "measure the method mtp, or a draft model with MLX-LM")
    if method.kind is MethodKind.NGRAM:
        return Refusal(Status.UNSUPPORTED, "mlx-vlm has no n-gram drafter", "measure the method mtp instead")
    if method.kind is MethodKind.MTP and (method.n_max is None or method.n_max < 1):
        reason = f"method {method.name}: n_max is {method.n_max}, a block has at least 1 draft token"
        return Refusal(Status.UNSUPPORTED, reason, f"set methods.{method.name}.n_max")
    return None


def refuse_sampling(cell: Cell, seeding: str) -> Refusal | None:
    """A sampler setting that mlx-vlm would refuse, leave out, or read as something else."""
    asked = cell.sampling
    if cell.method.kind is MethodKind.MTP and not neutral_penalties(asked):
        return Refusal(Status.UNSUPPORTED, PENALTIES, "set repeat_penalty to 1 and the other penalties to 0, off")
    if asked.repeat_penalty <= 0:
        reason = f"repeat_penalty {asked.repeat_penalty:g}: mlx-vlm reads 0 as off and refuses less"
        return Refusal(Status.UNSUPPORTED, reason, "set repeat_penalty to 1, which means off")
    if asked.xtc_probability > 0:
        reason = "mlx-vlm's generation passes no XTC on to its sampler"
        return Refusal(Status.UNSUPPORTED, reason, "set xtc_probability to 0, or measure it with llama.cpp or MLX-LM")
    if asked.greedy:
        return None
    if not asked.temperature > 0:
        reason = f"temperature {asked.temperature:g} is not at least 0"
        return Refusal(Status.UNSUPPORTED, reason, "set temperature to 0 or more")
    if not 0 < asked.top_p <= 1:
        reason = f"top_p {asked.top_p:g}: mlx-vlm takes values from 0 to 1, and reads 0 as off"
        return Refusal(Status.UNSUPPORTED, reason, "set top_p to 1, which means off")
    if not 0 <= asked.min_p <= 1:
        return Refusal(Status.UNSUPPORTED, f"min_p {asked.min_p:g} is not between 0 and 1", "set min_p to 0, off")
    if seeding == "position" and asked.min_p > 0:
        reason = "with min_p mlx-vlm leaves its seeding by position out, and says nothing"
        return Refusal(Status.UNSUPPORTED, reason, f"set min_p to 0, or engines.{cell.engine.name}.seeding to stream")
    return None


def _drafter_kind(cell: Cell) -> str:
    """The drafter's model type, or why it is not known."""
    folder = files.drafter_folder(cell)
    try:
        return str(files.config(folder or "").get("model_type"))
    except (OSError, ValueError):
        return "of a folder that cannot be read"

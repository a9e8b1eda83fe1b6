"""Which methods and samplers MLX-LM has, and the acceptance rule claimed for them."""

from __future__ import annotations

from adapters.shared.penalties import neutral_penalties
from orchestrator.schema.adapter import Claim, Refusal, Rule
from orchestrator.schema.cell import Cell, EosPolicy, MethodKind
from orchestrator.schema.status import Status

CHECKED_VERSIONS = frozenset({"0.32.2"})
"""Versions of mlx-lm whose acceptance rule was read in the source and measured."""


def claim(cell: Cell, version: str | None) -> Claim:
    """The rule claimed for a cell under that version of mlx-lm.

    Penalties and XTC are the exceptions from match of the target's own choice: with a draft the penalties see other
    tokens, and one XTC coin is shared.
    """
    by = "mlx-lm 0.32.2 source, measured"
    if cell.method.kind is MethodKind.NONE:
        return Claim(Rule.NONE, exact=True, by=by, note="no speculation")
    rule = Rule.GREEDY_MATCH if cell.sampling.greedy else Rule.SAMPLE_MATCH
    if version not in CHECKED_VERSIONS:
        found = version or "of unknown version"
        return Claim(rule, exact=None, by=by, note=f"the rule was checked at 0.32.2, this engine is {found}")
    if not neutral_penalties(cell.sampling):
        note = (
            "with a draft the penalties do not see the prompt but for its last token, without one they do: the "
            "two distributions differ"
        )
        return Claim(rule, exact=False, by=by, note=note)
    if cell.sampling.xtc_probability > 0:
        return _xtc_claim(cell, rule, by)
    return Claim(rule, exact=True, by=by, note="a draft token is emitted only where it is the target's own choice")


def _xtc_claim(cell: Cell, rule: Rule, by: str) -> Claim:
    """XTC throws its coin once a call of the sampler: a call is one token, or all rows of a verify pass."""
    if cell.workload.eos is EosPolicy.MASK:
        note = (
            "the mask makes mlx-lm sample a verify pass row by row, each row with an XTC coin: read, and a check at "
            "screen size saw no difference"
        )
        return Claim(rule, exact=None, by=by, note=note)
    note = (
        "one XTC coin decides for all rows of a verify pass, without a draft each token has its own: each token's "
        "distribution is right, their joint one is not"
    )
    return Claim(rule, exact=False, by=by, note=note)


def refuse_method(cell: Cell) -> Refusal | None:
    """A way to speculate that mlx-lm does not have, or one that is not wholly described."""
    method = cell.method
    if cell.engine.binary is not None:
        reason = "mlx_lm is a Python package, not a binary"
        return Refusal(Status.UNSUPPORTED, reason, f"name its interpreter: engines.{cell.engine.name}.python")
    if method.kind is MethodKind.MTP:
        reason = "mlx-lm drops a model's MTP weights when it loads, and has no MTP drafter"
        return Refusal(Status.UNSUPPORTED, reason, "measure a draft model instead, or MTP with another engine")
    if method.kind is MethodKind.NGRAM:
        return Refusal(Status.UNSUPPORTED, "mlx-lm has no n-gram drafter", "measure a draft model instead")
    if method.kind is MethodKind.DRAFT and (method.n_max is None or method.n_max < 1):
        reason = f"method {method.name}: n_max is {method.n_max}, a draft has at least 1 token"
        return Refusal(Status.UNSUPPORTED, reason, f"set methods.{method.name}.n_max")
    if method.kind is MethodKind.DRAFT and cell.draft_path is None:
        reason = f"model {cell.model.name} names no draft {method.draft!r} for this engine"
        return Refusal(Status.UNSUPPORTED, reason, f"add it under models.{cell.model.name}.drafts")
    return None


def refuse_sampling(cell: Cell) -> Refusal | None:
    """A sampler setting that mlx-lm would refuse, or read as something else."""
    asked = cell.sampling
    if not asked.greedy and not 0 < asked.top_p <= 1:
        reason = f"top_p {asked.top_p:g}: mlx-lm takes values from 0 to 1, and reads 0 as off"
        return Refusal(Status.UNSUPPORTED, reason, "set top_p to 1, which means off")
    if not asked.greedy and not 0 <= asked.min_p <= 1:
        return Refusal(Status.UNSUPPORTED, f"min_p {asked.min_p:g} is not between 0 and 1", "set min_p to 0, off")
    if not 0 <= asked.xtc_probability <= 1 or not 0 <= asked.xtc_threshold <= 0.5:
        reason = f"XTC {asked.xtc_probability:g} / {asked.xtc_threshold:g}: mlx-lm takes 0 to 1, and thresholds to 0.5"
        return Refusal(Status.UNSUPPORTED, reason, "set xtc_probability to 0, which means off")
    if asked.greedy and asked.xtc_probability > 0:
        return Refusal(Status.UNSUPPORTED, "at temperature 0 mlx-lm leaves XTC out", "set xtc_probability to 0, off")
    if asked.repeat_penalty <= 0:
        reason = f"repeat_penalty {asked.repeat_penalty:g}: mlx-lm reads 0 as off and refuses less"
        return Refusal(Status.UNSUPPORTED, reason, "set repeat_penalty to 1, which means off")
    return None

"""The conditions ledger: which settings decide whether two cells may be compared, and where they differ."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from orchestrator.schema.adapter import Condition
from orchestrator.schema.record import SessionRecord

MATERIAL: frozenset[str] = frozenset(
    {
        # what is sampled
        "temperature", "top_k", "top_p", "min_p", "typical_p", "top_n_sigma", "xtc_probability", "xtc_threshold",
        "dynatemp_range", "mirostat", "dry_multiplier", "repeat_penalty", "presence_penalty", "frequency_penalty",
        "repeat_last_n", "samplers", "filter_order", "backend_sampling", "n_probs",
        # how long
        "max_tokens", "n_predict", "ignore_eos", "end_of_text",
        # what is asked
        "chat_template", "prompt_ids", "prompt_cache", "cache_prompt",
        # how the target runs
        "context", "cache_type_k", "cache_type_v", "kv_bits", "kv_group_size", "quantized_kv_start", "dtype",
        "prefill_step_size", "batch", "ubatch", "threads", "flash_attention", "gpu_layers", "mmap", "fused_kernels",
    }
)  # fmt: skip
"""Settings of the target, of sampling and of the request: two arms that differ here are two experiments.

Not material: whatever belongs to the drafter (it is what the comparison is about), the seed of a single request, and
remarks on how an engine does the same thing.
"""


@dataclass(frozen=True, slots=True)
class Difference:
    """One setting that was not the same in two cells, each by its engine's own word."""

    name: str
    mine: str
    other: str

    @property
    def sentence(self) -> str:
        """``context 4096, baseline 2048``."""
        return f"{self.name} {self.mine}, baseline {self.other}"


def last_conditions(sessions: Sequence[SessionRecord]) -> tuple[Condition, ...]:
    """The conditions of the newest session that has any."""
    found: tuple[Condition, ...] = ()
    for session in sessions:
        found = session.conditions or found
    return found


def material_differences(mine: Iterable[Condition], other: Iterable[Condition]) -> tuple[Difference, ...]:
    """Material settings whose effective values are known on both sides and differ; what is not told decides nothing."""
    theirs = {one.name: one for one in other}
    found = []
    for one in mine:
        base = theirs.get(one.name)
        if one.name not in MATERIAL or base is None or one.effective is None or base.effective is None:
            continue
        if one.effective != base.effective:
            found.append(Difference(one.name, one.effective, base.effective))
    return tuple(found)


def refusal(mine: Sequence[SessionRecord], other: Sequence[SessionRecord]) -> str:
    """Why two arms must not be compared by their conditions, with the list; empty where they may.

    Every session of an arm counts: a setting that was another one in the first session spoils the pool as well.
    """
    found = {}
    for session in mine:
        for one in material_differences(session.conditions, last_conditions(other)):
            found[one.name] = one
    if not found:
        return ""
    return "conditions differ: " + "; ".join(one.sentence for one in found.values())

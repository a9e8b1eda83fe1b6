"""Which of llama.cpp's drafters a method sets to work, in the engine's order, with what each is told."""

from __future__ import annotations

from dataclasses import dataclass

from adapters.llama_cpp.options import (
    CACHE_LENGTH,
    DEFAULT_NGRAM_LENGTH,
    DraftOptions,
    NgramDrafter,
    draft_length,
    speculative_options,
)
from orchestrator.schema.cell import Method, MethodKind

ORDER = (
    "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod", "ngram-cache", "draft-simple", "draft-eagle3",
    "draft-mtp", "draft-dflash", "draft-dspark",
)  # fmt: skip
"""Every kind of ``--spec-type``, in the order in which b11434 asks them, whatever the order on the command.

Source: llama.cpp b11434, common/speculative.cpp (``common_speculative_init``).
"""

STATEFUL = frozenset({"ngram-mod", "ngram-cache"})
"""Drafters that remember earlier requests of their process: what they propose depends on the prompts before.

Source: real runs of b11434 with one prompt asked again; the other n-gram drafters repeat their counts.
"""

NO_SPECULATION = "none"


@dataclass(frozen=True, slots=True)
class Drafter:
    """One drafter: llama.cpp's name of it, its longest draft in tokens, and what an n-gram one is told."""

    name: str
    length: int
    ngram: NgramDrafter | None = None


def drafters(method: Method) -> tuple[Drafter, ...]:
    """The drafters of the method, in the engine's order; none for the baseline.

    Raises:
        pydantic.ValidationError: an option is unknown or out of range.
    """
    options = speculative_options(method)
    if options is None:
        return ()
    length = draft_length(method)
    if isinstance(options, NgramDrafter):
        found = [Drafter(f"ngram-{options.drafter}", length, options)]
    elif isinstance(options, DraftOptions):
        found = [Drafter(f"draft-{options.drafter}", length)]
    else:
        found = [Drafter("draft-mtp", length)]
    if options.chain is not None:
        default = CACHE_LENGTH if options.chain.drafter == "cache" else DEFAULT_NGRAM_LENGTH
        found.append(Drafter(f"ngram-{options.chain.drafter}", options.chain.size_m or default, options.chain))
    return tuple(sorted(found, key=lambda drafter: ORDER.index(drafter.name)))


def spec_types(method: Method) -> str:
    """The value of ``--spec-type``."""
    return ",".join(drafter.name for drafter in drafters(method)) or NO_SPECULATION


def longest_draft(method: Method) -> int:
    """The longest draft in tokens that any drafter of the method can make; 0 for the baseline."""
    return max((drafter.length for drafter in drafters(method)), default=0)


def stateful(method: Method) -> bool:
    """Whether a drafter of the method remembers earlier requests."""
    return any(drafter.name in STATEFUL for drafter in drafters(method))


def ngram_settings(drafter: Drafter) -> dict[str, int]:
    """What an n-gram drafter is told, by llama.cpp's own names; empty for ``ngram-cache``, which takes nothing."""
    ngram = drafter.ngram
    if ngram is None or drafter.name == "ngram-cache":
        return {}
    if drafter.name == "ngram-mod":
        return {"n_match": ngram.size_n, "n_min": ngram.n_min, "n_max": drafter.length}
    return {"size_n": ngram.size_n, "size_m": drafter.length, "min_hits": ngram.min_hits}


def head_path(method: Method, draft: str | None, mtp: str | None) -> str | None:
    """The file of the drafter that has weights of its own; ``None`` where it needs none beside the target."""
    if method.kind is MethodKind.DRAFT:
        return draft
    return mtp if method.kind is MethodKind.MTP else None

"""Cells of the llama.cpp adapters on the demo models."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from orchestrator.schema.adapter import TrialSpec
from orchestrator.schema.cell import (
    Cell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
)

if TYPE_CHECKING:
    from pathlib import Path

GREEDY = Sampling("greedy", 0.0, 1, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
WARM = Sampling("t0.8", 0.8, 1, 40, 0.95, 0.05, 1.0, 0.0, 0.0)
COIN = Sampling("xtc", 0.8, 1, 40, 0.95, 0.05, 1.0, 0.0, 0.0, xtc_probability=0.5, xtc_threshold=0.1)
HOT = Sampling("t3", 3.0, 1, 0, 1.0, 0.0, 1.0, 0.0, 0.0)

NONE = Method("none", MethodKind.NONE)
DRAFT = Method("draft-k4", MethodKind.DRAFT, 4, "tiny")
REJECTION = Method("draft-k4-prob", MethodKind.DRAFT, 4, "tiny", {"acceptance": "probabilistic"})
MTP = Method("mtp-k2", MethodKind.MTP, 2)
NGRAM = Method("ngram", MethodKind.NGRAM, 8, options={"size_n": 2})
NEVER = Method("ngram-never", MethodKind.NGRAM, 8, options={"size_n": 64})

MAP_K = Method("map-k", MethodKind.NGRAM, 8, options={"drafter": "map-k", "size_n": 2})
MAP_K4V = Method("map-k4v", MethodKind.NGRAM, 8, options={"drafter": "map-k4v", "size_n": 2})
MOD = Method("mod", MethodKind.NGRAM, 8, options={"drafter": "mod", "size_n": 3})
CACHE = Method("cache", MethodKind.NGRAM, 8, options={"drafter": "cache"})
_SIMPLE = {"size_n": 2, "size_m": 8}
DRAFT_CHAIN = Method("draft-chain", MethodKind.DRAFT, 4, "tiny", {"chain": _SIMPLE})
MTP_CHAIN = Method("mtp-chain", MethodKind.MTP, 2, options={"chain": _SIMPLE})
NGRAM_CHAIN = Method(
    "ngram-chain", MethodKind.NGRAM, 8, options={"size_n": 2, "chain": {"drafter": "map-k", **_SIMPLE}}
)
SYNTHETIC = Method("synthetic", MethodKind.DRAFT, 4, "tiny", {"synthetic": True, "synth_len": 2.5})
RATES = Method("rates", MethodKind.DRAFT, 3, "tiny", {"synthetic": True, "synth_rates": [0.9, 0.5, 0.2]})


def make_cell(
    adapter: str,
    target: Path | str,
    method: Method = NONE,
    sampling: Sampling = GREEDY,
    *,
    draft: Path | str | None = None,
    mtp: Path | str | None = None,
    tokens: int = 32,
    eos: EosPolicy = EosPolicy.MASK,
    binary: str | None = None,
    **options: Any,
) -> Cell:
    engine = EngineConfig("llama.cpp", adapter, binary=binary, options={"threads": 1, "context": 512, **options})
    drafts = {} if draft is None else {"tiny": str(draft)}
    model = ModelConfig("tiny", str(target), drafts=drafts, mtp=None if mtp is None else str(mtp))
    return Cell(engine, model, method, sampling, Workload("short", "demo-short", tokens, eos))


def make_trial(index: int = 0, prompt: str = "Count from 73 to 94:", seed: int = 1) -> TrialSpec:
    return TrialSpec(index, "measured", f"p{index}", prompt, seed)


def with_options(method: Method, **options: Any) -> Method:
    return dataclasses.replace(method, options=options)

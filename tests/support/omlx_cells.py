"""Cells of the oMLX adapter on the demo models and on a tiny Qwen3.5 model with an MTP layer."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from adapters.omlx.adapter import Omlx
from orchestrator.demo.export import resolve
from orchestrator.schema.adapter import Launch, LaunchContext, TrialSpec
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload

SUPPORT = Path(__file__).resolve().parent

GREEDY = Sampling("greedy", 0.0, 1, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
WARM = Sampling("t0.8", 0.8, 1, 40, 0.95, 0.05, 1.0, 0.0, 0.0)

NONE = Method("none", MethodKind.NONE)
MTP = Method("mtp-k1", MethodKind.MTP, 1)
CHAIN = Method("mtp-k3", MethodKind.MTP, 3)
ADAPTIVE = Method("mtp-up-to-k3", MethodKind.MTP, 3, options={"adaptive": True})
DFLASH = Method("dflash", MethodKind.DRAFT, 15, "dflash")


class StartedFor(Omlx):
    """The adapter, but for a server that is started for another cell."""

    def __init__(self, started: Cell) -> None:
        self._started = started

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        return super().launch(self._started, context)


def target() -> Path:
    """The demo target in f32, an MLX folder."""
    return resolve("tiny-target-f32")


def qwen35(python: str, folder: Path) -> Path:
    """A tiny random Qwen3.5 model with an MTP layer, in this folder."""
    made = folder / "tiny-qwen35"
    _make(python, "omlx_qwen35_maker.py", made)
    return made


def gemma4(python: str, folder: Path) -> tuple[Path, Path]:
    """A tiny random Gemma 4 model and its assistant, in this folder."""
    _make(python, "omlx_gemma4_maker.py", folder)
    return folder / "tiny-gemma4", folder / "tiny-assistant"


def _make(python: str, maker: str, made: Path) -> None:
    words = [python, "-I", str(SUPPORT / maker), str(made), str(target())]
    subprocess.run(words, check=True, capture_output=True, timeout=300)


def make_cell(
    model: Path | str,
    method: Method = NONE,
    sampling: Sampling = GREEDY,
    *,
    python: str | None = None,
    tokens: int = 24,
    drafts: dict[str, str] | None = None,
    mtp: str | None = None,
    eos: EosPolicy = EosPolicy.STOP,
    **options: Any,
) -> Cell:
    engine = EngineConfig("omlx", "omlx", python=python, options=options)
    files = ModelConfig("tiny", str(model), drafts=drafts or {}, mtp=mtp)
    return Cell(engine, files, method, sampling, Workload("short", "demo-short", tokens, eos))


def make_trial(index: int = 0, prompt: str = "Count from 73 to 94:", seed: int = 5) -> TrialSpec:
    return TrialSpec(index, "measured", f"p{index}", prompt, seed)

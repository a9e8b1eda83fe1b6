"""Cells on ds4, a fake of it in a folder of its own, and one session of a cell by the real runner."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.matrix.types import RunSettings
from orchestrator.runner.session import SessionPlan, SessionResult, run_session
from orchestrator.schema.adapter import TrialSpec
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.schema.record import Phase, Place
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from orchestrator.schema.adapter import Adapter

FAKE = Path(__file__).resolve().parent.parent / "fake_engines" / "fake_ds4.py"
NONE = Method("none", MethodKind.NONE)
GREEDY = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
WARM = dataclasses.replace(GREEDY, name="t0.8", temperature=0.8, top_p=0.95)


def mtp(n_max: int = 2, **options: Any) -> Method:
    """A method ``mtp``."""
    return Method(f"mtp-k{n_max}", MethodKind.MTP, n_max, None, options)


def make_cell(
    binary: str | None = "ds4",
    method: Method = NONE,
    sampling: Sampling = GREEDY,
    *,
    target: str = "zero.gguf",
    module: str | None = "zero-mtp.gguf",
    tokens: int = 48,
    eos: EosPolicy = EosPolicy.STOP,
    **options: Any,
) -> Cell:
    """A cell; ``options`` are those of the engine."""
    engine = EngineConfig("ds4", "ds4", binary, options=options)
    model = ModelConfig("flash", target, mtp=module)
    return Cell(engine, model, method, sampling, Workload("short", "demo-short", tokens, eos))


def fake_ds4(folder: Path, name: str = "ds4", **config: Any) -> str:
    """The path of a fake in ``folder``, which behaves as ``config`` says, with files for its model beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "fake.json").write_text(json.dumps(config), encoding="utf-8")
    path = folder / name
    path.write_text(f"#!{sys.executable}\n" + FAKE.read_text(encoding="utf-8"), encoding="utf-8")
    path.chmod(0o755)
    for model in ("zero.gguf", "zero-mtp.gguf"):
        (folder / model).write_bytes(b"GGUF")
    return str(path)


def run_cell(
    adapter: Adapter,
    cell: Cell,
    folder: Path,
    *,
    texts: Sequence[str] = ("Count from 73 to 94:", "Sum: 18 + 9 ="),
    limits: Mapping[str, float] | None = None,
    seed: int = 7,
) -> SessionResult:
    """One session by the runner, a trial per text, without a warm-up."""
    folder.mkdir(parents=True, exist_ok=True)
    times = {"silence": 60.0, "total": 120.0, "startup": 60.0, **(limits or {})}
    settings = RunSettings(
        "demo", 1, len(texts), 0, "abba", 7, "cold", False, times["silence"], times["total"], times["startup"]
    )
    prompts = load_prompts("demo-short")[: len(texts)]
    trials = tuple(
        (TrialSpec(number, Phase.MEASURED.value, prompt.id, text, seed), prompt)
        for number, (text, prompt) in enumerate(zip(texts, prompts, strict=True))
    )
    place = Place(cell.id, "0" * 16, cell.block_id, 1, 0, 0, 0)
    return run_session(SessionPlan(cell, place, trials, folder, "session", settings), adapter, lambda _event: None)


def values(result: SessionResult, trial: int = 0) -> dict[str, Any]:
    """What one trial told, by metric; what it did not tell is left out."""
    return {item.metric: item.value for item in result.trials[trial].observations if item.absent is None}


def absences(result: SessionResult, trial: int = 0) -> dict[str, Any]:
    """Why what one trial did not tell is not there, by metric."""
    return {item.metric: item.absent for item in result.trials[trial].observations if item.absent is not None}

"""Cells of the Slipstream adapter on its stand-in, and the stand-in as a program."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload

FAKE = Path(__file__).resolve().parents[1] / "fake_engines" / "fake_slipstream.py"
GREEDY = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
WARM = Sampling("t0.8", 0.8, 7, 20, 0.95, 0.0, 1.0, 0.0, 0.0)
NONE = Method("none", MethodKind.NONE)
MTP = Method("mtp", MethodKind.MTP, 3)
LOOKUP = Method("lookup", MethodKind.NGRAM, 4)


def program(folder: Path, fault: str = "none") -> str:
    """A file that runs the stand-in with that fault."""
    script = folder / f"slipstream-{fault}"
    script.write_text(
        f"#!{sys.executable}\nimport runpy, sys\nsys.argv.insert(1, {fault!r})\n"
        f"runpy.run_path({str(FAKE)!r}, run_name='__main__')\n",
        encoding="utf-8",
    )
    script.chmod(0o755)
    return str(script)


def model_folder(folder: Path) -> Path:
    """A folder that looks like a prepared model."""
    made = folder / "swift-qwen38"
    made.mkdir(exist_ok=True)
    (made / "manifest.json").write_text("{}", encoding="utf-8")
    return made


def make_cell(
    binary: str,
    target: Path | str,
    method: Method = NONE,
    sampling: Sampling = GREEDY,
    *,
    tokens: int = 24,
    eos: EosPolicy = EosPolicy.STOP,
    template: Literal["raw", "chat"] = "raw",
    **options: object,
) -> Cell:
    engine = EngineConfig("slipstream", "slipstream", binary=binary, options=options)
    workload = Workload("plain", "demo-short", tokens, eos, template=template)
    return Cell(engine, ModelConfig("swift", str(target)), method, sampling, workload)

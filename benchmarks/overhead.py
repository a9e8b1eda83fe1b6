"""What measuring costs: our decode rate ÷ llama.cpp's own, and what we add to the server's time.

Run by hand, on a machine that does nothing else: ``PYTHONPATH=. python benchmarks/overhead.py [--cells 3]``. It prints
ratios from one run of the real embedded engine on the tiny model, with the published goals beside them; it asserts
nothing.
"""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median

from orchestrator import registry
from orchestrator.cli.workspace import open_workspace
from orchestrator.clock import now_s
from orchestrator.runner.plan import session_trials
from orchestrator.runner.session import SessionPlan, run_session
from orchestrator.schema.cell import Cell
from orchestrator.schema.record import Place, TrialRecord
from orchestrator.workloads.load import load_prompts

TEMPLATE = Path(__file__).resolve().parent.parent / "matrix.yaml"
TRIALS, TOKENS = 5, 96


def value(record: TrialRecord, metric: str) -> float | None:
    """A trial's figure, ``None`` where it is absent."""
    found = next((item.value for item in record.observations if item.metric == metric), None)
    return float(found) if isinstance(found, int | float) else None


def measure(cell: Cell, folder: Path, number: int) -> tuple[float, list[TrialRecord]]:
    """Seconds that one session took from first to last trial, and its trials."""
    settings = replace(SETTINGS, trials=TRIALS, warmup=1)
    plan = SessionPlan(
        cell,
        Place(cell.id, "0" * 16, cell.block_id, 1, number, 0, 0),
        session_trials(load_prompts(cell.workload.prompts), cell, settings, 0),
        folder,
        folder.name,
        settings,
    )
    stamps: list[float] = []
    result = run_session(plan, registry.adapter(cell.engine.adapter), lambda _event: stamps.append(now_s()))
    if result.session.status != "ok":
        raise SystemExit(f"{cell.id}: {result.session.status}: {result.session.reason}")
    return stamps[-1] - stamps[0], [trial for trial in result.trials if trial.phase == "measured"]


def main() -> None:
    """Prints the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=3, help="sessions of five trials to run")
    count = parser.parse_args().cells
    ratios, added, per_cell, left_out = [], [], [], 0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(count):
            folder = Path(scratch) / f"session-{number}"
            folder.mkdir()
            wall_s, trials = measure(CELL, folder, number)
            server_s = 0.0
            for trial in trials:
                ours, engine = value(trial, "decode_rate"), value(trial, "engine_decode_rate")
                wait, prefill = value(trial, "e2e_latency"), value(trial, "engine_prefill_time")
                decode = value(trial, "engine_decode_time")
                if wait is None or prefill is None or decode is None:
                    raise SystemExit(f"a trial lacks a time: {trial.reason or 'the engine reported none'}")
                if ours is None or engine is None:
                    left_out += 1  # suppressed: our stamps came late, which a busy machine does
                else:
                    ratios.append(ours / engine)
                added.append(wait - prefill - decode)
                server_s += prefill + decode
            per_cell.append(wall_s - server_s)
    if left_out:
        print(f"{left_out} of {count * TRIALS} answers were stamped late and have no rate: is the machine busy?")
    if not ratios:
        raise SystemExit("no answer has a rate")
    print(f"our decode rate ÷ llama.cpp's own: median {median(ratios):.4f}, {min(ratios):.4f} to {max(ratios):.4f}")
    print("  goal 0.99 to 1.01")
    print(f"added to the server's time per request: median {1e3 * median(added):.2f} ms, max {1e3 * max(added):.2f} ms")
    print("  goal at most 2.5 ms")
    print(f"added per cell of {TRIALS} × {TOKENS} tokens: median {median(per_cell):.3f} s, max {max(per_cell):.3f} s")
    print("  goal at most 0.35 s")


if __name__ == "__main__":
    WORKSPACE = open_workspace(TEMPLATE, Path(tempfile.mkdtemp()))
    SETTINGS = WORKSPACE.matrix.run
    FOUND = next(cell for cell in WORKSPACE.cells if cell.id == "llama.cpp/tiny/none/greedy/short")
    CELL = replace(FOUND, workload=replace(FOUND.workload, max_tokens=TOKENS))
    main()

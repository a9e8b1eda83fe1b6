"""What concluding costs: comparisons of 1 000 cells × 15 trials, and the whole analysis of such a run.

``PYTHONPATH=. python benchmarks/comparisons.py [--cells 1000]`` prints seconds of processor time (of all threads, so
that one core is what is told) and the peak of memory, with the published goals beside them; it asserts nothing. Values
are drawn with a fixed seed: nothing is measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import resource
import sys
from collections.abc import Iterator
from time import process_time

import numpy as np

from orchestrator.report.analysis.analyse import analyse
from orchestrator.report.analysis.measures import Arm
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.schema.metrics import VOCABULARY, Scope
from orchestrator.schema.observation import Observation, observed
from orchestrator.schema.record import (
    SCHEMA_VERSION,
    AttemptRecord,
    Engagement,
    MatrixRecord,
    Phase,
    Place,
    Record,
    RunHeader,
    SessionRecord,
    SetRecord,
    TrialRecord,
)
from orchestrator.schema.status import Status
from orchestrator.stats.compare import apply_holm, compare
from orchestrator.stats.noise import noise_floor
from orchestrator.store.index import Index

SESSIONS, TRIALS, TOKENS, PER_BLOCK = 5, 3, 32, 8
METRICS = ("e2e_latency", "ttft", "decode_rate", "time_to_16", "time_to_32", "peak_unified")
UTC = "2026-01-01T00:00:00Z"
EXACT = Claim(Rule.GREEDY_MATCH, True, "the benchmark")
RNG = np.random.default_rng(1)


def block(number: int, cells: int) -> list[Cell]:
    """A baseline, its twin and so many speculative cells."""
    base = Cell(
        EngineConfig("engine", "engine"),
        ModelConfig(f"model-{number}", "target", drafts={"d": "draft"}),
        Method("none", MethodKind.NONE),
        Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0),
        Workload("w", "w", TOKENS, EosPolicy.MASK),
    )
    methods = [Method(f"k{k}", MethodKind.DRAFT, k, "d") for k in range(1, cells + 1)]
    return [base, *(dataclasses.replace(base, method=one) for one in methods), dataclasses.replace(base, twin=True)]


def observations(cell: Cell) -> tuple[Observation, ...]:
    """One answer's values, each with 2 % of noise."""
    pace = 0.01 * float(np.exp(RNG.normal(0, 0.02))) * (1.0 if cell.method.kind is MethodKind.NONE else 0.8)
    seen = [
        observed("ttft", 3 * pace, "-"),
        observed("e2e_latency", TOKENS * pace, "-"),
        observed("decode_rate", 1 / pace, "-"),
        observed("tpot", pace, "-"),
        observed("time_to_16", 16 * pace, "-"),
        observed("time_to_32", 32 * pace, "-"),
        observed("output_tokens", TOKENS, "-"),
        observed("prompt_tokens", 20, "-"),
    ]
    if cell.method.kind is not MethodKind.NONE:
        accepted = int(RNG.integers(8, 20))
        seen += [
            observed("drafted_tokens", 24, "-"),
            observed("accepted_tokens", accepted, "-"),
            observed("rejected_tokens", (24 - accepted) // 2, "-"),
            observed("discarded_tokens", 24 - accepted - (24 - accepted) // 2, "-"),
            observed("verify_rounds", 12, "-"),
            observed("target_passes", TOKENS - accepted, "-"),
            observed("tokens_per_pass", TOKENS / (TOKENS - accepted), "-"),
        ]
    return tuple(seen)


def records(blocks: list[list[Cell]]) -> Iterator[Record]:
    """The journal of a run in which every cell was measured in every session."""
    rows, claims = [], {}
    for members in blocks:
        for cell in members:
            row = {"id": cell.id, "fingerprint": "f", "block": cell.block_id, "role": cell.role.value}
            rows.append(row | {"baseline": members[0].id, "settings": cell.settings()})
            claims[cell.id] = EXACT
    yield MatrixRecord("", tuple(rows), {}, claims, {}, UTC)
    ids = tuple(range(TOKENS))
    for members in blocks:
        prints, name = {cell.id: "f" for cell in members}, members[0].block_id
        yield AttemptRecord(name, 1, prints, SESSIONS, TRIALS, "random", 1, UTC)
        for number in range(SESSIONS):
            for order, cell in enumerate(members):
                place = Place(cell.id, "f", name, 1, number, 0, order)
                for trial in range(TRIALS):
                    yield TrialRecord(
                        place, trial, Phase.MEASURED, f"p{trial}", "prose", "en", 7, Status.OK, "",
                        observations(cell), ids, "text", "length", (), (), UTC,
                    )  # fmt: skip
                memory = (observed("peak_unified", round(1e9 * float(np.exp(RNG.normal(0, 0.01)))), "-"),)
                engaged = Engagement.OFF if cell.method.kind is MethodKind.NONE else Engagement.ENGAGED
                yield SessionRecord(place, Status.OK, "", "", engaged, memory, (), 0, "", (), UTC, UTC)
            yield SetRecord(name, 1, number, 0, prints, UTC)


def comparisons(index: Index, blocks: list[list[Cell]]) -> int:
    """Every speculative cell against its baseline in every metric, Holm within each block; how many there were."""
    count = 0
    for members in blocks:
        arms = {cell.id: Arm(index.cells[cell.id].sessions, index.cells[cell.id].trials) for cell in members}
        base, twin = arms[members[0].id], arms[members[-1].id]
        for metric in METRICS:
            off = base.frame(metric)
            floor = noise_floor(twin.frame(metric), off)
            better = VOCABULARY[metric].better
            rows = [
                compare(
                    cell.id, members[0].id, metric, arms[cell.id].frame(metric), off,
                    better=better, noise_floor=floor.half_width,
                )
                for cell in members[1:-1]
            ]  # fmt: skip
            count += len(apply_holm(rows))
    return count


def peak_bytes() -> int:
    """The process's peak resident set; Linux gives kibibytes, macOS bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", type=int, default=1000, help="speculative cells")
    wanted = parser.parse_args().cells
    sizes = [PER_BLOCK] * (wanted // PER_BLOCK) + ([wanted % PER_BLOCK] if wanted % PER_BLOCK else [])
    blocks = [block(number, size) for number, size in enumerate(sizes)]
    session_metrics = sum(VOCABULARY[name].scope is Scope.SESSION for name in METRICS)
    began = process_time()
    index = Index.build(records(blocks))
    print(f"{wanted} cells × {SESSIONS * TRIALS} trials in {len(blocks)} blocks made and indexed: "
          f"{process_time() - began:.1f} s of one core")  # fmt: skip
    began = process_time()
    count = comparisons(index, blocks)
    spent = process_time() - began
    print(f"{count} comparisons ({len(METRICS)} metrics, {session_metrics} of them by session): {spent:.1f} s, "
          f"peak {peak_bytes() / 1e6:.0f} MB")  # fmt: skip
    print("  goal less than 20 s and 500 MB")
    header = RunHeader(SCHEMA_VERSION, "0", "benchmark", UTC, "matrix.yaml", "", {}, "benchmark")
    began = process_time()
    found = analyse(index, header)
    print(f"the whole analysis (checks, acceptance, model, flags, advice) of {len(found.cells)} cells: "
          f"{process_time() - began:.1f} s, peak {peak_bytes() / 1e6:.0f} MB")  # fmt: skip


if __name__ == "__main__":
    main()

"""Seconds and bytes of the report for 20, 100 and 1 000 cells, on synthetic runs of the tests' builder.

Trials are given what real ones have besides: the engine's own times, gaps, rounds, counts by draft position, grades and
the reasons of what is not there, so that a page is as heavy as that of a run of engines.

    python benchmarks/report_size.py [CELLS …]

``analyse`` is the statistics, ``view`` words and figures, ``render`` the page; each once, after a small run in each
language that loads matplotlib, compiles the templates and fills the caches of patterns, as any second report of one
process would find them. The last line is a fresh process, imports and all. Seconds are of processor time, which a busy
machine stretches too: cores that share their caches are slower for each.

A page of more than 250 cells leaves single values out of the data inside it and says so (``left out``).
"""

from __future__ import annotations

import dataclasses
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "report")]

import run_builder as runs  # noqa: E402

from orchestrator.report.analysis.analyse import analyse  # noqa: E402
from orchestrator.report.language.words import Words  # noqa: E402
from orchestrator.report.output.render import render_html  # noqa: E402
from orchestrator.report.page.view import build_view  # noqa: E402
from orchestrator.schema.adapter import Claim, Rule  # noqa: E402
from orchestrator.schema.cell import EngineConfig, Method, MethodKind, ModelConfig  # noqa: E402
from orchestrator.schema.codec import dump_record  # noqa: E402
from orchestrator.schema.observation import Absence, Observation, absent, observed  # noqa: E402
from orchestrator.schema.record import TrialRecord  # noqa: E402
from orchestrator.store.directory import JOURNAL, RunDirectory  # noqa: E402
from orchestrator.store.index import Index  # noqa: E402

PER_BLOCK = 5
"""Cells of a block: a baseline and four draft lengths; twins come on top and are not counted."""
BUDGET_BYTES, BUDGET_S, BUDGET_CELLS = 3_000_000, 1.0, 100


def blocks(cells: int) -> tuple[runs.BlockSpec, ...]:
    """Engines × models × samplings × workloads with a sweep of draft lengths in each."""
    match = Claim(Rule.GREEDY_MATCH, True, "from the engine's source")
    made = []
    for number in range(cells // PER_BLOCK):
        engine = EngineConfig(f"engine-{number % 3}", "mlx_lm", pin={"version": "1"})
        model = ModelConfig(f"model-{number // 12}", f"/models/{number // 12}.gguf", f"target-{number // 12}")
        lengths = [
            runs.Spec(
                Method(f"draft-k{k}", MethodKind.DRAFT, k, "small"), pass_s=0.02 + 0.002 * k, drafts=k, claim=match,
                take=0.6 + 0.01 * (number % 20),
            )
            for k in (2, 4, 6, 8)
        ]  # fmt: skip
        sampling = runs.GREEDY if number // 3 % 2 else runs.WARM
        workload = runs.SHORT if number // 6 % 2 else runs.LONG
        made.append(runs.BlockSpec(engine, model, sampling, workload, runs.Spec(), tuple(lengths)))
    return tuple(made)


def real_shaped(path: Path) -> Path:
    """The run with its trials filled up to what engines report; the path again."""
    records = [filled(one) if isinstance(one, TrialRecord) else one for one in RunDirectory.open(path).records()]
    (path / JOURNAL).write_text("".join(map(dump_record, records)), encoding="utf-8")
    return path


def filled(trial: TrialRecord) -> TrialRecord:
    """The trial with the other metrics of a real one; its figures follow from those that it has."""
    seen = {item.metric: float(item.value) for item in trial.observations if isinstance(item.value, int | float)}
    each, source = seen["tpot"], "the engine's own timings of this request"
    more = {
        "burst_gap_p50": each * 0.987, "burst_gap_p95": each * 1.163, "engine_prefill_time": seen["ttft"] * 0.953,
        "engine_decode_time": seen["decode_time"] * 0.971, "engine_decode_rate": seen["decode_rate"] / 0.971,
        "cached_share": 0.0, "memory_stall": 0.0, "trial_swap_delta": 0,
    }  # fmt: skip
    drafts: list[Observation] = []
    if "drafted_tokens" in seen:
        rounds, tokens, judged = seen["verify_rounds"], seen["output_tokens"], seen["accepted_tokens"] + 1
        whole = round(rounds)
        more |= {
            "target_passes": whole + 3, "tokens_per_pass": tokens / (whole + 3), "no_draft_rounds": 3, "cut_rounds": 1,
            "tokens_per_round": 1 + seen["accepted_tokens"] / rounds, "replay_passes": 0,
            "speculative_coverage": 1 - 3 / tokens, "judged_tokens": round(judged),
            "judged_acceptance_rate": seen["accepted_tokens"] / judged, "draft_capacity": round(seen["drafted_tokens"]),
            "capacity_acceptance_rate": seen["acceptance_rate"],
        }  # fmt: skip
        kept = tuple(whole * part // 8 for part in (6, 4, 2, 1))
        drafts = [
            observed("drafted_by_position", (whole,) * len(kept), "rounds"),
            observed("accepted_by_position", kept, "rounds"),
        ]
    known = {item.metric for item in trial.observations}
    why = "this engine times no part of a round outside an instrumented repeat"
    gone = [
        absent(name, Absence.NOT_REPORTED, why)
        for name in ("draft_time", "verify_time", "rollback_time", "energy_decode")
        if name not in known
    ]
    added = [observed(name, value, source) for name, value in more.items() if name not in known]
    return dataclasses.replace(trial, observations=(*trial.observations, *added, *drafts, *gone))


def measure(path: Path, language: str) -> tuple[str, dict[str, float]]:
    """The page and the seconds of each stage."""
    stages, directory = {}, RunDirectory.open(path)
    stamp = time.process_time()
    index = Index.build(directory.records())
    stages["read"] = time.process_time() - stamp
    stamp = time.process_time()
    found = analyse(index, directory.header)
    stages["analyse"] = time.process_time() - stamp
    stamp = time.process_time()
    words = Words(language)
    view = build_view(found, directory.header, index, language, words, path)
    stages["view"] = time.process_time() - stamp
    stamp = time.process_time()
    html = render_html(view, words)
    stages["render"] = time.process_time() - stamp
    return html, stages


def fresh(folder: Path) -> float:
    """Seconds of processor time of a process that makes the report of a run, from its start to its end."""
    path = real_shaped(runs.write_run(folder / "fresh", blocks(BUDGET_CELLS), runs.IDENTITIES))
    write = f"write_report(Path({str(path)!r}))"
    code = f"from pathlib import Path; from orchestrator.report.output.write import write_report; {write}"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main(arguments: list[str]) -> int:
    """Prints a line per size and language."""
    sizes = [int(one) for one in arguments] or [20, 100, 1000]
    with tempfile.TemporaryDirectory() as folder:
        warm = runs.write_run(Path(folder) / "warm", blocks(10), runs.IDENTITIES)
        for language in ("en", "ko"):
            measure(warm, language)
        print("cells  lang       bytes   figures  read s  analyse s  view s  render s  draw s (view + render)")
        for cells in sizes:
            path = real_shaped(runs.write_run(Path(folder) / f"run-{cells}", blocks(cells), runs.IDENTITIES))
            for language in ("en", "ko"):
                html, told = measure(path, language)
                size, draw = len(html.encode()), told["view"] + told["render"]
                within = cells != BUDGET_CELLS or (size < BUDGET_BYTES and draw < BUDGET_S)
                print(
                    f"{cells:5}  {language}    {size:10}  {html.count('<figure'):7}  {told['read']:6.2f}  "
                    f"{told['analyse']:9.2f}  {told['view']:6.2f}  {told['render']:8.2f}  {draw:6.2f}"
                    f"{'' if within else '  over the budget'}{'' if ' data-whole>' in html else '  left out: values'}"
                )
        print(f"fresh process, {BUDGET_CELLS} cells: {fresh(Path(folder)):.2f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Runs the distribution checks that are too long for every test run, and writes what they came to.

``python scripts/make_evidence.py WORK [GROUP …]`` makes the groups named (all without one) in run directories under
``WORK``, going on where an earlier call stopped, and writes ``docs/evidence/distribution-<group>.json``: every answer
by arm and context with its count. ``python scripts/make_evidence.py --page`` writes ``docs/evidence/distribution.md``
from those files alone; ``--check`` compares. ``--per-arm N`` makes fewer generations, which the page then says.
Group ``synthetic`` needs a llama-server binary in ``SPECMATRIX_LLAMA_SERVER``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.clock import utc_now
from orchestrator.exactness.checking import TOKENS, judge_check
from orchestrator.exactness.distribution import Preset
from orchestrator.exactness.prefix_tree import total_variation
from orchestrator.schema.adapter import Claim, Rule
from orchestrator.schema.record import CheckArm, CheckPlanRecord, CheckRecord
from orchestrator.schema.status import Status
from orchestrator.store.check_states import CheckState
from orchestrator.store.index import Index
from orchestrator.workloads.load import load_prompts

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "evidence"
SHUFFLE_SEED = 11
SHUFFLES = 1_999

LLAMA = """
  llama.cpp: {{adapter: llama_cpp_embedded, pin: {{xllamacpp: 2026.10.11549}}, options: {{threads: 1, context: 512}}}}
"""
MLX = """
  mlx-lm: {{adapter: mlx_lm, pin: {{mlx-lm: 0.32.2, mlx: 0.32.4}}, options: {{dtype: float32}}}}
"""
SERVER = """
  llama-server: {{adapter: llama_cpp, binary: {binary}, options: {{threads: 1, context: 512}}}}
"""
MATRIX = """version: 1
name: evidence-{group}
engines:{engines}
models:
{models}
methods:
{methods}
sampling:
  {sampling}
workloads:
  short: {{prompts: demo-short, max_tokens: 16, eos: {eos}}}
run: {{preset: quick, twin: false, warmup: 0}}
checks: {{distribution: {preset}}}
matrix:
  axes: {{engine: [{engine}], model: [{model}], method: [{method}], sampling: [{policy}], workload: [short]}}
"""
GGUF = "  tiny: {{{engine}: {{target: demo:tiny-target-f32.gguf, drafts: {{small: demo:tiny-draft-f32.gguf}}}}}}"
GROUPS: dict[str, dict[str, str]] = {
    "llama": {
        "engines": LLAMA,
        "engine": "llama.cpp",
        "models": GGUF,
        "model": "tiny",
        "methods": "  draft-k4: {{method: draft, draft: small, n_max: 4}}\n"
        "  draft-k4-prob: {{method: draft, draft: small, n_max: 4, options: {{acceptance: probabilistic}}}}",
        "method": "draft-k4, draft-k4-prob",
    },
    "certify": {
        "engines": LLAMA,
        "engine": "llama.cpp",
        "models": GGUF,
        "model": "tiny",
        "methods": "  draft-k4: {{method: draft, draft: small, n_max: 4}}",
        "method": "draft-k4",
        "preset": "certify",
    },
    "mtp": {
        "engines": LLAMA,
        "engine": "llama.cpp",
        "models": "  tiny-mtp: {{{engine}: {{target: demo:tiny-mtp-f32.gguf, mtp: inside}}}}",
        "model": "tiny-mtp",
        "methods": "  mtp-k2: {{method: mtp, n_max: 2}}\n"
        "  mtp-k2-prob: {{method: mtp, n_max: 2, options: {{acceptance: probabilistic}}}}",
        "method": "mtp-k2, mtp-k2-prob",
    },
    "synthetic": {
        "engines": SERVER,
        "engine": "llama-server",
        "models": GGUF,
        "model": "tiny",
        "methods": "  draft-k4-synthetic: {{method: draft, draft: small, n_max: 4, "
        "options: {{synthetic: true, synth_len: 3.0}}}}",
        "method": "draft-k4-synthetic",
    },
    "mlx": {
        "engines": MLX,
        "engine": "mlx-lm",
        "models": "  tiny: {{{engine}: {{target: demo:tiny-target-f32, drafts: {{small: demo:tiny-draft-f32}}}}}}",
        "model": "tiny",
        "methods": "  draft-k2: {{method: draft, draft: small, n_max: 2}}\n"
        "  draft-k4: {{method: draft, draft: small, n_max: 4}}",
        "method": "draft-k2, draft-k4",
    },
    "xtc": {
        "engines": MLX,
        "engine": "mlx-lm",
        # The target drafts for itself: only rows of one pass share the coin, so many must be accepted.
        "models": "  tiny: {{{engine}: {{target: demo:tiny-target-f32, drafts: {{itself: demo:tiny-target-f32}}}}}}",
        "model": "tiny",
        "methods": "  draft-k4: {{method: draft, draft: itself, n_max: 4}}",
        "method": "draft-k4",
        "sampling": "t0.3-xtc: {{temperature: 0.3, xtc_probability: 0.5, xtc_threshold: 0.1}}",
        "policy": "t0.3-xtc",
        "eos": "continue",  # a mask is a logits processor, and with one mlx-lm samples, and throws the coin, row by row
        "why": "chosen by simulating the shared coin on the model's own probabilities",
    },
}
GROUPS["xtc-mask"] = {
    **GROUPS["xtc"],
    "models": GROUPS["mlx"]["models"],
    "methods": "  draft-k4: {{method: draft, draft: small, n_max: 4}}",
    "sampling": "t0.8-xtc: {{temperature: 0.8, xtc_probability: 0.5, xtc_threshold: 0.05}}",
    "policy": "t0.8-xtc",
    "eos": "mask",
}
EXPECTED = {group: "fail" if group in ("synthetic", "xtc") else "pass" for group in GROUPS}
"""What each group is there to show; a run that shows something else is written down as it is, and its test fails."""


def matrix_text(group: str) -> str:
    """The matrix of a group."""
    parts = {
        "sampling": "t0.8: {{temperature: 0.8}}",
        "policy": "t0.8",
        "eos": "mask",
        "preset": "screen",
        **GROUPS[group],
    }
    values = {"binary": os.environ.get("SPECMATRIX_LLAMA_SERVER", "llama-server"), "engine": parts["engine"]}
    filled = {key: text.format(**values) if "{" in text else text for key, text in parts.items()}
    return MATRIX.format(group=group, **filled)


def fix_contexts(job: Any, directory: Any, group: str, names: list[str], presets: Mapping[str, Preset]) -> None:  # noqa: ANN401
    """Writes the plan that a pilot would have written, unless there is one."""
    from orchestrator.runner.check_run import planned_checks  # noqa: PLC0415

    texts = {prompt.id: prompt.text for prompt in load_prompts("demo-short")}
    contexts = {name: texts[name.split("@")[0]][: int(name.split("@")[1])] for name in names}
    why = dict.fromkeys(contexts, GROUPS[group].get("why", "chosen by the pilot of llama.cpp on the same weights"))
    for planned in planned_checks(job, directory):
        if planned.is_new:
            size = presets[planned.preset].per_arm
            where = (planned.block, planned.base, planned.attempt, planned.preset)
            directory.append(CheckPlanRecord(*where, contexts, size, TOKENS, why, utc_now()))


def run_group(group: str, work: Path, per_arm: int | None, contexts: list[str]) -> None:
    """Makes or goes on with the group's checks, and writes its file."""
    from orchestrator.cli.workspace import open_workspace  # noqa: PLC0415  (loads the adapters)
    from orchestrator.runner.check_run import PRESETS, run_checks  # noqa: PLC0415
    from orchestrator.runner.execute import execute  # noqa: PLC0415
    from orchestrator.store.directory import RunDirectory  # noqa: PLC0415

    work.mkdir(parents=True, exist_ok=True)
    path = work / f"{group}.yaml"
    path.write_text(matrix_text(group), encoding="utf-8")
    workspace = open_workspace(path, work)
    found = workspace.newest_run()
    directory = RunDirectory.open(found) if found is not None else workspace.create_run()
    presets = dict(PRESETS)
    if per_arm is not None:
        presets = {name: dataclasses.replace(preset, per_arm=per_arm) for name, preset in PRESETS.items()}
    execute(workspace.job([], again=False), directory, lambda _: None)
    job = workspace.job(workspace.expansion.checks, again=False)
    with directory.lock():
        if contexts:
            fix_contexts(job, directory, group, contexts, presets)
        run_checks(job, directory, say, presets)
    index = Index.build(directory.records())
    text = json.dumps(raw(group, index, per_arm, contexts), ensure_ascii=False, indent=None, separators=(",", ":"))
    (FOLDER / f"distribution-{group}.json").write_text(text + "\n", encoding="utf-8")


def say(event: object) -> None:
    """Prints what the runner says."""
    print(getattr(event, "text", event), flush=True)


def raw(group: str, index: Index, per_arm: int | None, contexts: list[str]) -> dict[str, Any]:
    """Everything that the verdicts follow from."""
    matrix = index.matrix
    if matrix is None:
        raise SystemExit("the run holds no matrix")
    command = f"python scripts/make_evidence.py WORK {group}" + ("" if per_arm is None else f" --per-arm {per_arm}")
    command += "".join(f" --context {one}" for one in contexts)
    checks: list[dict[str, Any]] = []
    for state in index.checks.values():
        claim = matrix.claims[state.cell]
        plan = state.plan
        if plan is None:
            raise SystemExit(f"{state.id}: {state.status.value}: {state.reason}")
        arms = {
            arm.value: {context: [_batch(one) for one in batches] for context, batches in by.items()}
            for arm, by in state.arms.items()
            if arm is not CheckArm.PILOT
        }
        checks.append(
            {
                "id": state.id,
                "rule": claim.rule.value,
                "exact": claim.exact,
                "by": claim.by,
                "status": state.status.value,
                "contexts": dict(plan.contexts),
                "why": dict(plan.why),
                "preset": plan.preset,
                "per_arm": plan.per_arm,
                "tokens": plan.tokens,
                "arms": arms,
            }
        )
    shared: dict[str, Any] = {arm: checks[0]["arms"][arm] for arm in ("off", "off_again")}
    control = next((one["arms"]["control"] for one in checks if "control" in one["arms"]), None)
    shared |= {"control": control} if control is not None else {}
    for one in checks:
        one["arms"] = {arm: by for arm, by in one["arms"].items() if arm not in shared}
    engines = {name: dict(found.facts) for name, found in matrix.engines.items()}
    return {"group": group, "command": command, "engines": engines, "shared": shared, "checks": checks}


def _batch(one: CheckRecord) -> dict[str, Any]:
    """Its answers in order, for the looks and the coupled arm need the order; seeds are a function of the matrix."""
    told = {"t": one.temperature, "f": one.first_burst, "b": one.in_bursts, "d": one.drafted, "ids": one.tokens}
    judged = [[round(number, 4) for number in places] for places in one.judged]
    return {**told, **({"j": judged} if judged else {}), **({"u": one.unjudged} if one.unjudged else {})}


def state_of(check: dict[str, Any], shared: dict[str, Any]) -> CheckState:
    """The check as the program holds it, from the file alone."""
    preset = check.get("preset", "screen")
    plan = CheckPlanRecord("", "", 1, preset, check["contexts"], check["per_arm"], check["tokens"], check["why"], "")
    arms = {
        CheckArm(arm): {context: tuple(map(_record, batches)) for context, batches in by.items()}
        for arm, by in ({**shared, **check["arms"]}).items()
    }
    status = Status(check["status"])
    return CheckState(check["id"], "", "", "", preset, "", "", status, "", "", 1, plan, arms, ())


def _record(row: dict[str, Any]) -> CheckRecord:
    tokens = tuple(tuple(one) for one in row["ids"])
    return CheckRecord(
        "", "", "", 1, CheckArm.ON, "", 0, (), tokens, row["t"], row["f"], row["b"], row["d"], "", "", "",
        judged=tuple(map(tuple, row.get("j", ()))), unjudged=row.get("u", ""),
    )  # fmt: skip


def verdicts(data: dict[str, Any]) -> list[tuple[dict[str, Any], Any]]:
    """(check, outcome) of a file, judged now."""
    found = []
    for check in data["checks"]:
        claim = Claim(Rule(check["rule"]), check["exact"], check["by"])
        found.append((check, judge_check(state_of(check, data["shared"]), claim)))
    return found


def page() -> str:
    """``distribution.md`` from the files."""
    lines = [
        "# Distribution checks on real engines",
        "",
        "Made by `scripts/make_evidence.py` on the built-in tiny models (f32, CPU); this page is computed from",
        "the files beside it by `scripts/make_evidence.py --page`, and a test computes it again. TV",
        "is the raw distance of the joint of the first three compared tokens, which is above 0 for two samples of one",
        "distribution too: the mean under no difference and the permutation p stand beside it.",
        "",
    ]
    for path in sorted(FOLDER.glob("distribution-*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        told = {
            name: ", ".join(f"{key} {value[:12]}" for key, value in found.items())
            for name, found in data["engines"].items()
        }
        facts = "; ".join(f"{name}: {words}" for name, words in told.items())
        lines += [f"## {data['group']}", "", f"`{data['command']}` — {facts}. Raw: `{path.name}`.", ""]
        for check, outcome in verdicts(data):
            lines += _section(check, outcome, data["shared"])
    return "\n".join(lines).rstrip("\n") + "\n"


def _section(check: dict[str, Any], outcome: Any, shared: dict[str, Any]) -> list[str]:  # noqa: ANN401
    on = [batch for batches in check["arms"]["on"].values() for batch in batches]
    made, together = sum(len(one["ids"]) for one in on), sum(one["b"] for one in on)
    rule = f"{check['rule']}{'' if check['exact'] else ', not exact'}"
    lines = [f"### `{check['id']}`", "", f"Claimed: {rule}, by {check['by']}.", ""]
    lines += [f"* **{one.check}: {one.verdict.value.replace('_', ' ')}** — {one.evidence}" for one in outcome.results]
    for size, p, level in outcome.looks:
        said = "nothing to compare" if p is None else f"p {p:.2g}"
        lines.append(f"* look at {size} generations per context: {said}, level {level:.2g}")
    lines.append(f"* speculation took place: {together} tokens came with an earlier one, in {made} generations")
    skip = 0 if any(one["f"] > 1 for one in on) else 1
    for context, text in check["contexts"].items():
        mine, theirs = _ids(check["arms"]["on"][context]), _ids(shared["off"][context])
        size = min(len(mine), len(theirs))
        found = total_variation(mine[:size], theirs[:size], seed=SHUFFLE_SEED, skip=skip, shuffles=SHUFFLES)
        if found is None:
            raise SystemExit(f"{check['id']}: nothing after {context}")
        first = Counter(one[skip] for one in theirs if len(one) > skip)
        lines.append(
            f"* after `{json.dumps(text, ensure_ascii=False)}` ({context}: {check['why'][context]}): "
            f"TV {found.raw:.3f}, {found.null_mean:.3f} under no difference, permutation p {found.p:.2g}; "
            f"{len(first)} different first compared tokens"
        )
    return [*lines, ""]


def _ids(batches: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    return [tuple(one) for batch in batches for one in batch["ids"]]


def main() -> None:
    """Parses the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", nargs="?", type=Path)
    parser.add_argument("groups", nargs="*", choices=[*GROUPS, []])
    parser.add_argument("--per-arm", type=int)
    parser.add_argument("--context", action="append", default=[], help="instead of a pilot, e.g. sum-1@10")
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--check", action="store_true")
    args = parser.parse_args()
    target = FOLDER / "distribution.md"
    if args.check:
        sys.exit(0 if target.read_text(encoding="utf-8") == page() else "docs/evidence/distribution.md is out of date")
    if not args.page:
        if args.work is None:
            parser.error("name a folder to work in")
        for group in args.groups or GROUPS:
            run_group(group, args.work, args.per_arm, args.context)
    target.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()

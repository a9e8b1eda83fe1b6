"""Captures golden output of oMLX: ``SPECMATRIX_OMLX=PYTHON python scripts/capture_omlx_golden.py [CASE …]``.

Cases of ``REAL`` are runs of flyto-mlx 0.7.0 on a CPU. Each of ``FROM_SOURCE`` is one of them with log lines or events
in their place that were written after oMLX's source, for what does not run here: other drafters, later versions, and
fall-backs. ``tests/golden/omlx/README.md`` says which is which. Replace them by real ones when somebody has them.
``capture_golden.py omlx --update`` rewrites the expectations alone.
"""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from capture_golden import write  # noqa: E402  (the path is set just above)
from engine_session import drive  # noqa: E402
from golden_cases import CELL, EVENTS, GOLDEN, STDERR, STDOUT, TRIAL, load_case, write_expected  # noqa: E402
from omlx_cells import (  # noqa: E402
    ADAPTIVE,
    CHAIN,
    DFLASH,
    GREEDY,
    MTP,
    NONE,
    WARM,
    StartedFor,
    gemma4,
    make_cell,
    make_trial,
    qwen35,
    target,
)

from adapters.omlx.adapter import ADAPTER  # noqa: E402
from orchestrator.schema.cell import Method, Sampling  # noqa: E402

CASES = GOLDEN / "omlx"
MARK = "from-source"
"""The file that marks a case as not written by an engine alone; the docs count them apart."""
COUNT, COPY = "Count from 73 to 94:", "Copy: warm basket blue bright warm cold =>"


@dataclass(frozen=True)
class Real:
    """A run: the cell, and the method that the server is started with where that is another."""

    method: Method
    sampling: Sampling = GREEDY
    model: str = "qwen"
    prompt: str = COUNT
    tokens: int = 24
    launched: Method | None = None
    has_trial: bool = True
    options: dict[str, Any] = field(default_factory=dict)


REAL = {
    "vlm": Real(CHAIN, model="gemma"),
    "vlm-t08": Real(CHAIN, WARM, model="gemma", tokens=64),
    "vlm-one-token": Real(CHAIN, model="gemma", tokens=1),
    "vlm-served-as-text": Real(CHAIN, model="gemma as text", has_trial=False),
    "none": Real(NONE, model="llama"),
    "none-end-of-text": Real(NONE, model="llama", prompt=COPY, tokens=64),
    "none-split-characters": Real(NONE),
    "prompt-too-long": Real(NONE, model="llama", prompt=COUNT * 30, options={"context": 64}),
    "mtp": Real(MTP),
    "mtp-t08": Real(MTP, WARM),
    "mtp-long": Real(MTP, tokens=160),
    "mtp-one-token": Real(MTP, tokens=1),
    "mtp-not-engaged": Real(MTP, launched=NONE),
    "baseline-speculates": Real(NONE, launched=MTP, has_trial=False),
}

STAMP = "2026-11-29 12:00:00,000"
SCHEDULER, BATCH = "omlx.scheduler", "omlx.patches.mlx_lm_mtp.batch_generator"


def line(logger: str, level: str, text: str) -> str:
    """A log line as oMLX writes it."""
    return f"{STAMP} - {logger} - {level} - {text}\n"


def chain(
    accept: str, depth: str, emits: str, cycles: int, tokens: int = 24, finish: str = "length", idle: int = 0
) -> str:
    """A statistics line of chained native MTP; ``idle`` of its cycles had no drafts."""
    told = (f" depth[{depth}]" if depth else "") + (f" d0={idle}" if idle else "")
    rate, per = "75.0%", f"{tokens / cycles:.2f}"
    return line(
        BATCH,
        "INFO",
        f"MTP[0] finish={finish} tokens={tokens} cycles={cycles} tok/cycle={per} accept={accept} ({rate}){told}"
        f" emits[{emits}] timing[backbone=151.2ms mtp=44.0ms sample=1.9ms cache=0.3ms]",
    )


def vlm(rounds: int, accepted: int, emitted: int, finish: str = "length", block: int = 4) -> str:
    """The lines of one answer by VLM MTP."""
    capacity = rounds * (block - 1)
    return line(SCHEDULER, "INFO", f"vlm_mtp decode started: request=3af0a741 uid=-2 block_size={block}") + line(
        SCHEDULER,
        "INFO",
        f"vlm_mtp stats: request=3af0a741 finish={finish} rounds={rounds} accepted={accepted}/{capacity} "
        f"({100 * accepted / capacity:.1f}%) tokens_per_round={(accepted + rounds) / rounds:.2f} "
        f"emitted={emitted} block_size={block}",
    )


def dflash(cycles: int, tail: str = "") -> str:
    """The line of one answer by DFlash."""
    return line(
        "omlx.engine.dflash",
        "INFO",
        f"DFlash generation complete: 24 tokens, 45.3 tok/s, acceptance=87.2%, cycles={cycles}{tail}",
    )


def joined(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Events as they come when the reader lags: each second one carries its predecessor's text too."""
    kept: list[dict[str, Any]] = []
    held: list[dict[str, Any]] = []
    for row in rows:
        is_text = row.get("kind") == "event" and '"text_completion"' in row["data"] and '"usage"' not in row["data"]
        if not is_text or "keepalive" in row["data"]:
            kept += [*held, row]
            held = []
        elif not held:
            held = [row]
        else:
            first, second = (json.loads(one["data"].removeprefix("data:")) for one in (held[0], row))
            second["choices"][0]["text"] = first["choices"][0]["text"] + second["choices"][0]["text"]
            kept.append({**row, "data": json.dumps(second)})
            held = []
    return [*kept, *held]


@dataclass(frozen=True)
class Derived:
    """A real case with its lines about drafts replaced: ``lines`` in the request's log, ``start`` while loading."""

    base: str
    method: Method
    lines: str
    start: str | None = None
    files: dict[str, Any] = field(default_factory=dict)
    events: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] | None = None
    has_trial: bool = True


DRAFTER = {"mtp": "/models/drafter", "drafts": {}}
LOADED = line("omlx.engine_pool", "INFO", "VLM MTP enabled for tiny-qwen35, drafter=/models/drafter")
IGNORED = line(
    "omlx.engine_pool", "WARNING", "VLM MTP toggle on for tiny-qwen35 but drafter load failed; toggle ignored"
)
FROM_SOURCE = {
    "mtp-end-of-text": Derived(
        "none-end-of-text",
        MTP,
        line(
            BATCH,
            "INFO",
            "MTP[0] finish=stop tokens=40 cycles=22 accept=17/22 (77.3%) emits[init=2,draft=17,bonus=16,verify=5]"
            " timing[backbone=362.5ms mtp=116.2ms sample=11.5ms cache=0.6ms]",
        ),
    ),
    "mtp-chain": Derived("mtp", CHAIN, chain("13/20", "d1=7/9,d2=4/7,d3=2/4", "init=2,draft=13,bonus=2,verify=7", 9)),
    "mtp-chain-refused": Derived(
        "mtp", CHAIN, chain("0/22", "d1=0/22,d2=0/0,d3=0/0", "init=2,draft=0,bonus=0,verify=22", 22)
    ),
    "mtp-chain-deeper-than-asked": Derived(
        "mtp", MTP, chain("13/20", "d1=7/9,d2=4/7,d3=2/4", "init=2,draft=13,bonus=2,verify=7", 9)
    ),
    "mtp-parked": Derived(
        "mtp",
        CHAIN,
        line(BATCH, "INFO", "MTP[0] parked for 64 standard tokens before re-entry probe")
        + chain("6/9", "d1=3/4,d2=2/3,d3=1/2", "init=2,draft=6,bonus=1,verify=3", 4, 12),
    ),
    "mtp-parked-by-finish": Derived(
        "mtp",
        ADAPTIVE,
        chain("6/9", "d1=3/4,d2=2/3,d3=1/2", "init=2,draft=6,bonus=1,verify=3", 4, 12, "parked-at-depth-0"),
    ),
    "mtp-parked-at-the-end": Derived(
        "mtp",
        ADAPTIVE,
        "".join(
            chain("10/15", "d1=6/9,d2=4/6", "init=2,draft=10,bonus=7,verify=5", 12, finish=finish, idle=3)
            for finish in ("parked", "length")
        ),
    ),
    "mtp-no-drafts": Derived("mtp", ADAPTIVE, chain("0/22", "", "init=2,draft=0,bonus=22,verify=0", 22, idle=22)),
    "mtp-cycles-for-drafts": Derived("mtp", CHAIN, chain("10/13", "", "init=2,draft=10,bonus=9,verify=3", 13)),
    "mtp-unread-line": Derived("mtp", MTP, line(BATCH, "INFO", "MTP[0] done: 24 tokens, 10 of 13 drafts kept")),
    "mtp-two-lines": Derived(
        "mtp", CHAIN, 2 * chain("13/20", "d1=7/9,d2=4/7,d3=2/4", "init=2,draft=13,bonus=2,verify=7", 9)
    ),
    "mtp-joined-events": Derived(
        "mtp",
        CHAIN,
        chain("13/20", "d1=7/9,d2=4/7,d3=2/4", "init=2,draft=13,bonus=2,verify=7", 9),
        events=joined,
    ),
    "vlm-end-of-text": Derived("none-end-of-text", CHAIN, vlm(15, 24, 40, "stop"), LOADED, DRAFTER),
    "vlm-busy": Derived(
        "mtp",
        CHAIN,
        line(
            SCHEDULER,
            "INFO",
            "vlm_mtp routing skipped for 3af0a741: drafter is busy with 1 request(s); falling back to BatchGenerator",
        ),
        LOADED,
        DRAFTER,
    ),
    "vlm-drafter-not-loaded": Derived("mtp", CHAIN, "", IGNORED, DRAFTER, has_trial=False),
    "dflash": Derived("mtp", DFLASH, dflash(7), "", {"drafts": {"dflash": "/models/draft"}}),
    "dflash-without-drafts": Derived(
        "mtp", DFLASH, dflash(0, ", fallback=AR"), "", {"drafts": {"dflash": "/models/draft"}}
    ),
}


def main() -> int:
    """Captures the cases named, all of them by default."""
    names = sys.argv[1:] or [*REAL, *FROM_SOURCE]
    with tempfile.TemporaryDirectory() as made:
        wanted = {name: REAL[name] for name in names if name in REAL}
        models = _models(Path(made)) if wanted else {}
        for name, real in wanted.items():
            capture(name, real, *models[real.model])
            print(f"omlx/{name}")
    for name in names:
        if name in FROM_SOURCE:
            derive(name, FROM_SOURCE[name])
            print(f"omlx/{name} (from source)")
    return 0


def _models(made: Path) -> dict[str, tuple[Path, Path | None]]:
    """Target and drafter by name. ``gemma as text``: its configuration names an audio tower that is not there."""
    gemma, assistant = gemma4(_python(), made)
    broken = made / "as-text" / "tiny-gemma4"
    shutil.copytree(gemma, broken)
    config = json.loads((broken / "config.json").read_text(encoding="utf-8"))
    del config["audio_config"]
    (broken / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return {
        "llama": (target(), None),
        "qwen": (qwen35(_python(), made / "qwen"), None),
        "gemma": (gemma, assistant),
        "gemma as text": (broken, assistant),
    }


def capture(name: str, real: Real, used: Path, drafter: Path | None) -> None:
    """Runs one session and writes the case."""
    mtp = None if drafter is None else str(drafter)
    cell = make_cell(used, real.method, real.sampling, python=_python(), tokens=real.tokens, mtp=mtp, **real.options)
    launched = dataclasses.replace(cell, method=real.launched or real.method)
    trial = make_trial(prompt=real.prompt) if real.has_trial else None
    with tempfile.TemporaryDirectory() as scratch:
        drive(StartedFor(launched), cell, () if trial is None else (trial,), Path(scratch))
        home = str(Path(_python()).parent.parent)
        short = {_python(): "omlx-python", home: "/omlx", str(used.parent): "/models", scratch: "/session"}
        short |= {} if drafter is None else {str(drafter.parent): "/models"}
        write(CASES / name, Path(scratch), cell, trial, short)
    write_expected(ADAPTER, load_case(CASES / name))


def derive(name: str, wanted: Derived) -> None:
    """Writes a case from a real one and the lines that stand for what does not run here."""
    base = load_case(CASES / wanted.base)
    rows = [json.loads(text) for text in base.events.decode().splitlines()]
    log = next(row for row in rows if row["kind"] == "log" and row["trial"] >= 0)
    start = base.stderr[: log["stderr_from"]].decode()
    body = base.stderr[log["stderr_from"] : log["stderr_to"]].decode()
    if wanted.start is not None:
        start = "".join(one for one in start.splitlines(keepends=True) if "MTP" not in one) + wanted.start
    kept = "".join(one for one in body.splitlines(keepends=True) if "MTP" not in one)
    lines = kept.splitlines(keepends=True)
    end = next(at for at, one in enumerate(lines) if "- Completion: " in one)
    body = "".join([*lines[:end], wanted.lines, *lines[end:]])
    log["stderr_from"], log["stderr_to"] = len(start.encode()), len((start + body).encode())
    for row in rows:
        if row["kind"] == "log" and row["trial"] < 0:
            row["stderr_from"] = row["stderr_to"] = log["stderr_from"]
    if not wanted.has_trial:
        rows = [row for row in rows if row["trial"] < 0]
    elif wanted.events is not None:
        rows = wanted.events(rows)
    model = dataclasses.replace(base.cell.model, **wanted.files)
    cell = dataclasses.replace(base.cell, method=wanted.method, model=model)
    case = CASES / name
    case.mkdir(parents=True, exist_ok=True)
    (case / EVENTS).write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    (case / STDERR).write_text(start + body if wanted.has_trial else start, encoding="utf-8")
    (case / STDOUT).write_bytes(base.stdout)
    (case / MARK).write_text("", encoding="utf-8")
    (case / CELL).write_text(json.dumps(cell.settings(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    trial = dataclasses.asdict(base.trial) if wanted.has_trial and base.trial is not None else None
    (case / TRIAL).write_text(json.dumps(trial, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    write_expected(ADAPTER, load_case(case))


def _python() -> str:
    return os.environ["SPECMATRIX_OMLX"]


if __name__ == "__main__":
    sys.exit(main())

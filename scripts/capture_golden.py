"""Captures golden output of the llama.cpp paths from real runs on the demo models.

Usage:
    python scripts/capture_golden.py llama_cpp_embedded [CASE …]
    python scripts/capture_golden.py llama_cpp --binary PATH [CASE …]
    python scripts/capture_golden.py ADAPTER --update [CASE …]

Without ``--update`` the engine runs and a case's capture is written anew, expectation included. With it no engine runs:
``expected.json`` alone is rewritten from the captures that are there. Either way the difference is to be read.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import json
import re
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from engine_session import EVENTS, drive  # noqa: E402  (the path is set just above)
from golden_cases import CELL, GOLDEN, STDERR, STDOUT, TRIAL, case_folders, load_case, write_expected  # noqa: E402
from head_files import write_dflash, write_eagle3  # noqa: E402
from llama_cells import (  # noqa: E402
    CACHE,
    DRAFT,
    DRAFT_CHAIN,
    GREEDY,
    HOT,
    MAP_K,
    MAP_K4V,
    MOD,
    MTP,
    MTP_CHAIN,
    NEVER,
    NGRAM,
    NONE,
    REJECTION,
    SYNTHETIC,
    WARM,
    make_cell,
    make_trial,
    with_options,
)
from mtp_files import write_head, write_trunk  # noqa: E402

from orchestrator.demo.export import resolve  # noqa: E402
from orchestrator.registry import adapter as find_adapter  # noqa: E402
from orchestrator.schema.cell import Cell, EosPolicy, Method, MethodKind, Sampling  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from orchestrator.schema.adapter import Adapter, TrialSpec

COUNT, KOREAN = "Count from 73 to 94:", "이야기: 낮에 새 다리가"
COPY, SUM = "Copy: warm basket blue bright warm cold =>", "Sum: 18 + 9 ="
NOISE = re.compile(
    rb"llama_model_loader|print_info|\bload: |resolve_fused_ops: .*[Ff]used|load_tensors|chat|device_info|  - CPU|fit_|"
    rb"^audio_tower\."
)
"""Start-up lines that no adapter reads, left out to keep the captures small."""


@dataclass(frozen=True)
class Wanted:
    """A case: its models by file name, and the launched method where it differs from the cell's."""

    target: str
    method: Method
    sampling: Sampling = GREEDY
    draft: str | None = None
    eos: EosPolicy = EosPolicy.MASK
    prompt: str = COUNT
    tokens: int = 32
    launched: Method | None = None
    has_trial: bool = True
    head: bool = False
    """Whether the MTP block is taken out of the target and given as a head file."""
    hand_made: Callable[[Path, Mapping[int, int]], Path] | None = None
    """Writes the head that drafts what the baseline of the same prompt said after the same token before."""


T, D, M, B = "tiny-target-f16.gguf", "tiny-draft-f16.gguf", "tiny-mtp-f16.gguf", "tiny-incompatible-f16.gguf"
CASES: dict[str, Wanted] = {
    "none": Wanted(T, NONE),
    "none-split-characters": Wanted(M, NONE, HOT, prompt="Copy: 뷁 쮃 뷁 쮃 =>"),
    "draft-greedy": Wanted(T, DRAFT, draft=D, prompt=SUM),
    "draft-t08": Wanted(T, DRAFT, WARM, D, prompt=SUM),
    "draft-ends-inside-character": Wanted(T, DRAFT, HOT, D, prompt="쮃쮃쮃쮃"),
    "draft-rejection": Wanted(T, REJECTION, WARM, D),
    "draft-end-of-text": Wanted(T, DRAFT, draft=D, eos=EosPolicy.STOP, prompt=COPY, tokens=48),
    "draft-end-of-text-korean": Wanted(T, DRAFT, draft=D, eos=EosPolicy.STOP, prompt=KOREAN, tokens=48),
    "mtp": Wanted(M, MTP),
    "ngram": Wanted(T, NGRAM, prompt="Story: In the evening the small candle"),
    "ngram-nothing-drafted": Wanted(T, NEVER),
    "hybrid-replay": Wanted(M, DRAFT, WARM, M, prompt=SUM),
    "mtp-head-file": Wanted(M, MTP, head=True),
    "ngram-map-k": Wanted(T, MAP_K, prompt=COPY),
    "ngram-map-k4v": Wanted(T, MAP_K4V, prompt=COPY),
    "ngram-mod": Wanted(T, MOD, prompt=COPY),
    "ngram-cache": Wanted(T, CACHE, prompt=COPY, tokens=160),
    "draft-eagle3": Wanted(T, with_options(DRAFT, drafter="eagle3"), hand_made=write_eagle3),
    "draft-dflash": Wanted(
        T, Method("draft-k3", MethodKind.DRAFT, 3, "tiny", {"drafter": "dflash"}), hand_made=write_dflash
    ),
    "draft-dspark": Wanted(
        T, with_options(DRAFT, drafter="dspark"), hand_made=functools.partial(write_dflash, markov=True)
    ),
    "draft-chain": Wanted(T, DRAFT_CHAIN, draft=D, prompt=COPY),
    "mtp-chain": Wanted(M, MTP_CHAIN, prompt=COPY),
    "synthetic": Wanted(T, SYNTHETIC, draft=D),
    "vocabulary-mismatch": Wanted(T, DRAFT, draft=B, has_trial=False),
    "baseline-speculates": Wanted(T, NONE, launched=NGRAM, has_trial=False),
    "context-full": Wanted(T, NONE, prompt="Count from 1 to 9:" * 80),
    "prompt-too-long": Wanted(T, NONE, prompt="Count from 1 to 9:" * 200),
}


def main() -> int:
    """Captures or updates the cases named, all of them by default."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("adapter")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--binary", help="the llama-server of the adapter llama_cpp")
    parser.add_argument("--update", action="store_true", help="rewrite expected.json alone; no engine runs")
    given = parser.parse_intermixed_args()
    adapter = find_adapter(given.adapter)
    if given.update:
        for folder in case_folders(given.adapter):
            if not given.cases or folder.name in given.cases:
                write_expected(adapter, load_case(folder))
        return 0
    for name in given.cases or CASES:
        capture(adapter, name, CASES[name], given.binary)
        print(f"{given.adapter}/{name}")
    return 0


def capture(adapter: Adapter, name: str, wanted: Wanted, binary: str | None) -> None:
    """Runs one session and writes the case."""
    target = resolve(wanted.target)
    draft = None if wanted.draft is None else resolve(wanted.draft)
    cell = make_cell(
        adapter.name,
        target,
        wanted.method,
        wanted.sampling,
        draft=draft,
        tokens=wanted.tokens,
        eos=wanted.eos,
        binary=binary,
    )
    trial = make_trial(prompt=wanted.prompt, seed=5) if wanted.has_trial else None
    launched = cell if wanted.launched is None else dataclasses.replace(cell, method=wanted.launched)
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as made:
        folder = Path(scratch)
        if wanted.head:
            trunk, head = write_trunk(Path(made) / "tiny-trunk-f32.gguf"), write_head(Path(made) / "tiny-head-f32.gguf")
            cell = dataclasses.replace(cell, model=dataclasses.replace(cell.model, target=str(trunk), mtp=str(head)))
            launched = cell
        if wanted.hand_made:
            head = wanted.hand_made(Path(made) / f"{name}.gguf", said_after(adapter))
            cell = dataclasses.replace(cell, model=dataclasses.replace(cell.model, drafts={"tiny": str(head)}))
            launched = cell
        drive(adapter, launched, () if trial is None else (trial,), folder)
        names = {str(target.parent): "/models", scratch: "/session", made: "/models"}
        names |= {binary: "llama-server"} if binary else {}
        write(GOLDEN / adapter.name / name, folder, cell, trial, names)
    write_expected(adapter, load_case(GOLDEN / adapter.name / name))


def said_after(adapter: Adapter) -> dict[int, int]:
    """Which token the captured baseline said first after each of its tokens."""
    ids: list[int] = load_case(GOLDEN / adapter.name / "none").expected["trial"]["token_ids"]
    return dict(reversed(list(itertools.pairwise(ids))))


def write(case: Path, session: Path, cell: Cell, trial: TrialSpec | None, names: dict[str, str]) -> None:
    """Copies the session's files without this machine's paths, the log's byte offsets moved accordingly."""
    case.mkdir(parents=True, exist_ok=True)

    def plain(text: str) -> str:
        for path, short in names.items():
            text = text.replace(path, short)
        return text

    log = (session / STDERR).read_bytes()
    rows = [json.loads(line) for line in (session / EVENTS).read_text(encoding="utf-8").splitlines()]
    starts = [row["stderr_from"] for row in rows if row["kind"] == "log" and row["trial"] >= 0]
    kept_from = min(starts, default=len(log))

    def short(data: bytes, offset: int) -> bytes:
        lines = data.splitlines(keepends=True)
        kept = (line for line in lines if not NOISE.search(line)) if offset < kept_from else lines
        return plain(b"".join(kept).decode("utf-8", "replace")).encode()

    def moved(offset: int) -> int:
        return len(short(log[: min(offset, kept_from)], 0)) + len(short(log[kept_from:offset], kept_from))

    lines = []
    for row in rows:
        if row["kind"] == "log":
            row["stderr_from"], row["stderr_to"] = moved(row["stderr_from"]), moved(row["stderr_to"])
        lines.append(plain(json.dumps(row, ensure_ascii=False)) + "\n")
    (case / EVENTS).write_text("".join(lines), encoding="utf-8")
    (case / STDERR).write_bytes(short(log[:kept_from], 0) + short(log[kept_from:], kept_from))
    (case / STDOUT).write_text(plain((session / STDOUT).read_text(encoding="utf-8")), encoding="utf-8")
    (case / CELL).write_text(plain(json.dumps(cell.settings(), indent=1, ensure_ascii=False)) + "\n", encoding="utf-8")
    data = None if trial is None else dataclasses.asdict(trial)
    (case / TRIAL).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())

"""Captures golden output of the llama-cpp-python worker from real runs on the demo models.

Usage:
    SPECMATRIX_LLAMA_CPP_PYTHON=/path/to/python python scripts/capture_lcpp_golden.py [CASE …]

The variable names an interpreter in which llama-cpp-python is installed. Each case is written anew, expectation
included; the difference is to be read. To rewrite expectations alone there is
``capture_golden.py llama_cpp_python --update``.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from golden_cases import (  # noqa: E402  (the path is set just above)
    CELL,
    EVENTS,
    GOLDEN,
    STDERR,
    STDOUT,
    TRIAL,
    load_case,
    write_expected,
)
from lcpp_session import (  # noqa: E402
    GREEDY,
    NONE,
    PYTHON_VARIABLE,
    WARM,
    lookup,
    lookup_session,
    make_cell,
)

from adapters.llama_cpp_python.adapter import ADAPTER  # noqa: E402
from orchestrator.demo.export import resolve  # noqa: E402
from orchestrator.schema.cell import EosPolicy, Method, Sampling  # noqa: E402

COUNT, SUM, COPY = "Count from 73 to 94:", "Sum: 18 + 9 =", "Copy: warm basket blue bright warm cold =>"
STORY = "Story: In the evening the small candle"
KOREAN = "이야기: 낮에 새 다리가"
PENALISED = dataclasses.replace(GREEDY, name="penalised", repeat_penalty=1.1)


@dataclass(frozen=True)
class Wanted:
    """A case: what is asked, and the launched method where it differs from the cell's."""

    method: Method
    sampling: Sampling = GREEDY
    prompt: str = COUNT
    tokens: int = 32
    eos: EosPolicy = EosPolicy.MASK
    launched: Method | None = None
    target: str = "tiny-target-f16.gguf"


CASES: dict[str, Wanted] = {
    "none": Wanted(NONE),
    "none-end-of-text": Wanted(NONE, prompt=COPY, eos=EosPolicy.STOP, tokens=96),
    "none-hybrid-korean": Wanted(NONE, prompt=KOREAN, eos=EosPolicy.CONTINUE, target="tiny-mtp-f16.gguf"),
    "none-one-token": Wanted(NONE, tokens=1),
    "lookup-all-refused": Wanted(lookup(8, 3)),
    "lookup-k1": Wanted(lookup(1), prompt=STORY),
    "lookup-k8": Wanted(lookup(8), prompt=STORY, tokens=64, eos=EosPolicy.CONTINUE),
    "lookup-cut-by-limit": Wanted(lookup(8, 3), prompt=STORY),
    "lookup-end-of-text": Wanted(lookup(4), prompt=COPY, eos=EosPolicy.STOP, tokens=96),
    "lookup-nothing-drafted": Wanted(lookup(4), prompt=SUM, tokens=2),
    "lookup-one-token": Wanted(lookup(4), tokens=1),
    "lookup-penalties": Wanted(lookup(4), PENALISED, STORY),
    "lookup-t08": Wanted(lookup(4), WARM, STORY, eos=EosPolicy.CONTINUE),
    "baseline-speculates": Wanted(NONE, launched=lookup(4)),
    "context-full": Wanted(lookup(4), tokens=600),
}


def main() -> int:
    """Captures the cases named, all of them by default."""
    python = os.environ.get(PYTHON_VARIABLE)
    if python is None:
        print(f"set {PYTHON_VARIABLE} to an interpreter in which llama-cpp-python is installed", file=sys.stderr)
        return 2
    for name in sys.argv[1:] or CASES:
        capture(name, CASES[name], python)
        print(f"llama_cpp_python/{name}")
    return 0


def capture(name: str, wanted: Wanted, python: str) -> None:
    """Runs one session of one trial and writes the case."""
    target = resolve(wanted.target)
    cell = make_cell(
        target,
        method=wanted.method,
        sampling=wanted.sampling,
        tokens=wanted.tokens,
        eos=wanted.eos,
        python=python,
    )
    launched = dataclasses.replace(cell, method=wanted.launched) if wanted.launched is not None else cell
    with tempfile.TemporaryDirectory() as scratch, lookup_session(launched, Path(scratch)) as session:
        session.trial(wanted.prompt, seed=5, cell=launched)
        rows = [json.loads(line) for line in session.lines]
        stdout, stderr = session.process.stdout, session.process.stderr_path.read_bytes()
        trial = session.specs[0]
    # What llama.cpp says while it loads is long, and no adapter reads it: the log of the trial alone is kept.
    log = next(row for row in rows if row["kind"] == "log")
    kept = stderr[log["stderr_from"] : log["stderr_to"]]
    log.update(stderr_from=0, stderr_to=len(kept))
    shown = dataclasses.replace(
        cell,
        engine=dataclasses.replace(cell.engine, python=None),
        model=dataclasses.replace(
            cell.model, target=f"/models/{target.name}", drafts={"tiny": f"/models/{target.name}"}
        ),
    )
    case = GOLDEN / ADAPTER.name / name
    case.mkdir(parents=True, exist_ok=True)
    (case / CELL).write_text(plain(dataclasses.asdict(shown)), encoding="utf-8")
    (case / TRIAL).write_text(plain(dataclasses.asdict(trial)), encoding="utf-8")
    lines = (json.dumps(row, ensure_ascii=False).replace(str(target.parent), "/models") + "\n" for row in rows)
    (case / EVENTS).write_text("".join(lines), encoding="utf-8")
    (case / STDOUT).write_text(stdout, encoding="utf-8")
    (case / STDERR).write_bytes(kept)
    write_expected(ADAPTER, load_case(case))


def plain(data: object) -> str:
    """Indented JSON with a newline at its end."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())

"""Captures golden output of the mlx-vlm worker from real runs on the demo models.

Usage:
    python scripts/capture_vlm_golden.py [CASE …]

The engine runs and each case is written anew, expectation included; the difference is to be read. To rewrite
expectations alone there is ``capture_golden.py mlx_vlm --update``.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

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
from vlm_session import BARE, GREEDY, NONE, WARM, make_cell, mtp, vlm_session  # noqa: E402

from adapters.mlx_vlm.adapter import ADAPTER  # noqa: E402
from orchestrator.demo.export import resolve  # noqa: E402
from orchestrator.schema.cell import EosPolicy, Method, Sampling  # noqa: E402

COUNT, SUM, COPY = "Count from 73 to 94:", "Sum: 18 + 9 =", "Copy: warm basket blue bright warm cold =>"
KOREAN = "이야기: 낮에 새 다리가"
WHOLE: dict[str, Any] = {"prefill_step_size": None}
BY_POSITION: dict[str, Any] = {"seeding": "position"}
PENALISED = dataclasses.replace(GREEDY, name="penalised", repeat_penalty=1.1)
IMPOSSIBLE = dataclasses.replace(WARM, name="impossible", top_k=5000)


@dataclass(frozen=True)
class Wanted:
    """A case: what is asked, and the launched method where it differs from the cell's."""

    method: Method
    sampling: Sampling = GREEDY
    prompt: str = SUM
    tokens: int = 32
    eos: EosPolicy = EosPolicy.MASK
    launched: Method | None = None
    options: dict[str, Any] = field(default_factory=dict)


CASES: dict[str, Wanted] = {
    "none": Wanted(NONE),
    "none-korean": Wanted(NONE, WARM, KOREAN, eos=EosPolicy.CONTINUE),
    "none-end-of-text": Wanted(NONE, prompt=COPY, eos=EosPolicy.STOP, tokens=64),
    "none-penalties": Wanted(NONE, PENALISED, eos=EosPolicy.STOP),
    "mtp-k2": Wanted(mtp(2)),
    "mtp-end-of-text": Wanted(mtp(2), prompt=COPY, eos=EosPolicy.STOP, tokens=64),
    "mtp-k4-cut-by-limit": Wanted(mtp(4), prompt=COUNT, tokens=6, eos=EosPolicy.CONTINUE),
    "mtp-longer-than-answer": Wanted(mtp(16), prompt=KOREAN, tokens=6, eos=EosPolicy.CONTINUE),
    "mtp-all-refused": Wanted(mtp(2), prompt=COPY, tokens=5, eos=EosPolicy.STOP, options=WHOLE),
    "mtp-one-token": Wanted(mtp(2), tokens=1),
    "mtp-t08": Wanted(mtp(2), WARM, COUNT),
    "mtp-t08-by-position": Wanted(mtp(2), BARE, COUNT, eos=EosPolicy.STOP, options=BY_POSITION),
    "baseline-speculates": Wanted(NONE, launched=mtp(2)),
    "drafter-missing": Wanted(mtp(2), launched=NONE),
    "request-refused": Wanted(mtp(2), IMPOSSIBLE),
}


def main() -> int:
    """Captures the cases named, all of them by default."""
    for name in sys.argv[1:] or CASES:
        capture(name, CASES[name])
        print(f"mlx_vlm/{name}")
    return 0


def capture(name: str, wanted: Wanted) -> None:
    """Runs one session of one trial and writes the case."""
    target, drafter = resolve("tiny-mtp-vlm-f16"), resolve("tiny-mtp-vlm-drafter-f16")
    cell = make_cell(
        target,
        drafter,
        method=wanted.method,
        sampling=wanted.sampling,
        tokens=wanted.tokens,
        eos=wanted.eos,
        **wanted.options,
    )
    launched = dataclasses.replace(cell, method=wanted.launched) if wanted.launched is not None else cell
    with tempfile.TemporaryDirectory() as scratch, vlm_session(launched, Path(scratch)) as session:
        session.trial(wanted.prompt, seed=5, cell=launched)
        events, stdout, stderr = "".join(session.lines), session.process.stdout, session.process.stderr
        trial = session.specs[0]
    shown = dataclasses.replace(
        cell,
        engine=dataclasses.replace(cell.engine, python=None),
        model=dataclasses.replace(cell.model, target=f"/models/{target.name}", mtp=f"/models/{drafter.name}"),
    )
    case = GOLDEN / ADAPTER.name / name
    case.mkdir(parents=True, exist_ok=True)
    (case / CELL).write_text(plain(dataclasses.asdict(shown)), encoding="utf-8")
    (case / TRIAL).write_text(plain(dataclasses.asdict(trial)), encoding="utf-8")
    (case / EVENTS).write_text(events, encoding="utf-8")
    for file, text in ((STDOUT, stdout), (STDERR, stderr)):
        (case / file).write_text(text.replace(str(ROOT), "/specmatrix").replace(sys.prefix, "/venv"), encoding="utf-8")
    write_expected(ADAPTER, load_case(case))


def plain(data: object) -> str:
    """Indented JSON with a newline at its end."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main())

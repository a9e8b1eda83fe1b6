"""Captures golden output of the MLX-LM worker from real runs on the demo models.

Usage:
    python scripts/capture_mlx_golden.py [CASE …]

The engine runs and each case is written anew, expectation included; the difference is to be read. To rewrite
expectations alone there is ``capture_golden.py mlx_lm --update``.
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
from mlx_session import GREEDY, NONE, WARM, drafting, make_cell, mlx_session  # noqa: E402

from adapters.mlx_lm.adapter import ADAPTER  # noqa: E402
from orchestrator.demo.export import resolve  # noqa: E402
from orchestrator.schema.cell import EosPolicy, Method, Sampling  # noqa: E402

COUNT, SUM, COPY = "Count from 73 to 94:", "Sum: 18 + 9 =", "Copy: warm basket blue bright warm cold =>"
KOREAN = "이야기: 낮에 새 다리가"


@dataclass(frozen=True)
class Wanted:
    """A case: what is asked, and the launched method where it differs from the cell's."""

    method: Method
    sampling: Sampling = GREEDY
    prompt: str = SUM
    tokens: int = 32
    eos: EosPolicy = EosPolicy.MASK
    launched: Method | None = None
    phase: str = "measured"
    options: dict[str, Any] = field(default_factory=dict)


PENALISED = dataclasses.replace(GREEDY, name="penalised", repeat_penalty=1.1)
XTC = dataclasses.replace(WARM, name="xtc", xtc_probability=0.5, xtc_threshold=0.1)
IMPOSSIBLE = dataclasses.replace(WARM, name="impossible", top_k=5000)
CASES: dict[str, Wanted] = {
    "none": Wanted(NONE),
    "none-korean": Wanted(NONE, prompt=KOREAN, eos=EosPolicy.CONTINUE),
    "none-end-of-text": Wanted(NONE, prompt=COPY, eos=EosPolicy.STOP, tokens=96),
    "draft-k1": Wanted(drafting(1)),
    "draft-k4": Wanted(drafting(4)),
    "draft-k8-cut-by-limit": Wanted(drafting(8), prompt=COUNT, tokens=40, eos=EosPolicy.CONTINUE),
    "draft-end-of-text": Wanted(drafting(4), prompt=COPY, eos=EosPolicy.STOP, tokens=96),
    "draft-t08": Wanted(drafting(4), WARM, eos=EosPolicy.CONTINUE),
    "draft-penalties": Wanted(drafting(2), PENALISED),
    "draft-one-token": Wanted(drafting(4), tokens=1),
    "draft-longer-than-answer": Wanted(drafting(16), tokens=6, eos=EosPolicy.CONTINUE),
    "draft-phases": Wanted(drafting(4), phase="phases"),
    "draft-quantised-cache": Wanted(drafting(4), options={"kv_bits": 8, "kv_group_size": 32}),
    "draft-xtc": Wanted(drafting(2), XTC, eos=EosPolicy.CONTINUE),
    "baseline-speculates": Wanted(NONE, launched=drafting(4)),
    "request-refused": Wanted(NONE, IMPOSSIBLE),
}


def main() -> int:
    """Captures the cases named, all of them by default."""
    for name in sys.argv[1:] or CASES:
        capture(name, CASES[name])
        print(f"mlx_lm/{name}")
    return 0


def capture(name: str, wanted: Wanted) -> None:
    """Runs one session of one trial and writes the case."""
    target, draft = resolve("tiny-target-f16"), resolve("tiny-draft-f16")
    cell = make_cell(
        target,
        draft,
        method=wanted.method,
        sampling=wanted.sampling,
        tokens=wanted.tokens,
        eos=wanted.eos,
        **wanted.options,
    )
    launched = dataclasses.replace(cell, method=wanted.launched) if wanted.launched is not None else cell
    with tempfile.TemporaryDirectory() as scratch, mlx_session(launched, Path(scratch)) as session:
        session.trial(wanted.prompt, seed=5, cell=launched, phase=wanted.phase)
        events, stdout, stderr = "".join(session.lines), session.process.stdout, session.process.stderr
        trial = session.specs[0]
    shown = dataclasses.replace(
        cell,
        engine=dataclasses.replace(cell.engine, python=None),
        model=dataclasses.replace(
            cell.model, target=f"/models/{target.name}", drafts={"tiny": f"/models/{draft.name}"}
        ),
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

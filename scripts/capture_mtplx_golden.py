"""Captures golden output of MTPLX: ``python scripts/capture_mtplx_golden.py --binary MTPLX --model FOLDER [CASE …]``.

The model is the one that tests/support/omlx_qwen35_maker.py writes; for ``mtp-end-of-text`` with ``eos_token_id`` 837
in its config.json, a token that its greedy answer has. Of ``/health`` only what is named here is kept: the
rest describes the machine. How MTPLX was made to run elsewhere than on a Mac is told in tests/golden/mtplx/README.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from engine_session import EVENTS, drive  # noqa: E402  (the path is set just above)
from golden_cases import CELL, GOLDEN, STDERR, STDOUT, TRIAL, load_case, write_expected  # noqa: E402

from orchestrator.registry import adapter as find_adapter  # noqa: E402
from orchestrator.schema.adapter import TrialSpec  # noqa: E402
from orchestrator.schema.cell import (  # noqa: E402
    Cell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
)

NONE, MTP, MTP1 = Method("none", MethodKind.NONE), Method("mtp", MethodKind.MTP, 3), Method("mtp-k1", MethodKind.MTP, 1)
GREEDY = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
WARM = Sampling("t0.8", 0.8, 7, 20, 0.95, 0.0, 1.0, 0.0, 0.0)
HOT = Sampling("t1.5", 1.5, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
COUNT = "Count from 73 to 94:"
CASES: dict[str, tuple[Method, Sampling, str, int]] = {
    "none": (NONE, GREEDY, COUNT, 32),
    "none-end-of-text": (NONE, HOT, COUNT, 400),
    "mtp": (MTP, GREEDY, COUNT, 32),
    "mtp-k1": (MTP1, GREEDY, COUNT, 24),
    "mtp-t08": (MTP, WARM, COUNT, 24),
    "mtp-end-of-text": (MTP, GREEDY, COUNT, 32),
    "mtp-one-token": (MTP, GREEDY, COUNT, 1),
    "mtp-two-tokens": (MTP, GREEDY, COUNT, 2),
    "refused-request": (MTP, GREEDY, "", 24),
    "baseline-speculates": (NONE, GREEDY, COUNT, 0),
}
LAUNCHED = {"baseline-speculates": MTP}
"""Where the process is started for another method than the cell's."""

HEALTH = {
    *("ok", "model", "model_path", "generation_mode", "load_mtp", "mtp_enabled", "depth"),
    *("adaptive", "verify_strategy", "verify_core", "warmup"),
}


class As:
    """The adapter, starting its engine for another method."""

    def __init__(self, adapter: object, method: Method) -> None:
        self.adapter, self.method = adapter, method

    def __getattr__(self, name: str) -> object:
        return getattr(self.adapter, name)

    def launch(self, cell: Cell, context: object) -> object:
        """The other method's command."""
        return self.adapter.launch(dataclasses.replace(cell, method=self.method), context)


def shortened(line: str) -> str:
    """A line of events without what ``/health`` says of the machine."""
    row = json.loads(line)
    if row.get("step") == "health" and row.get("kind") == "event":
        found = json.loads(row["data"])
        row["data"] = json.dumps({key: value for key, value in found.items() if key in HEALTH})
    return json.dumps(row, ensure_ascii=False) + "\n"


def main() -> int:
    """Captures the cases named, all of them by default."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--binary", required=True)
    parser.add_argument("--model", required=True)
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args()
    adapter = find_adapter("mtplx")
    for name in asked.cases or CASES:
        method, sampling, prompt, tokens = CASES[name]
        options = {"profile": "performance-cold", "allow_unverified": True}
        engine = EngineConfig("mtplx", "mtplx", asked.binary, options=options)
        workload = Workload("plain", "demo-short", tokens or 24, EosPolicy.STOP)
        cell = Cell(engine, ModelConfig("tiny", asked.model), method, sampling, workload)
        trial = TrialSpec(0, "measured", "p0", prompt, 5) if tokens else None
        with tempfile.TemporaryDirectory() as made:
            used = As(adapter, LAUNCHED[name]) if name in LAUNCHED else adapter
            drive(used, cell, () if trial is None else (trial,), Path(made))
            case = GOLDEN / "mtplx" / name
            case.mkdir(parents=True, exist_ok=True)

            def plain(text: str, folder: str = made) -> str:
                for path, shown in ((asked.binary, "mtplx"), (asked.model, "/models/tiny"), (folder, "/session")):
                    text = text.replace(path, shown)
                return text.replace(sys.prefix, "/python")

            for file in (EVENTS, STDOUT, STDERR):
                text = (Path(made) / file).read_text(encoding="utf-8")
                if file == EVENTS:
                    text = "".join(shortened(line) for line in text.splitlines())
                (case / file).write_text(plain(text), encoding="utf-8")
            settings = json.dumps(cell.settings(), indent=1, ensure_ascii=False)
            (case / CELL).write_text(plain(settings) + "\n", encoding="utf-8")
            data = None if trial is None else dataclasses.asdict(trial)
            (case / TRIAL).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_expected(adapter, load_case(case))
        print(f"mtplx/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

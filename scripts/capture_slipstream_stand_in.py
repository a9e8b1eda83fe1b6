"""Captures what the Slipstream adapter reads, from a stand-in: ``python scripts/capture_slipstream_stand_in.py``.

Not golden output of the engine, which needs a Mac: the stand-in was written from the engine's source, and the captures
keep what is read from that format from changing unseen. Replace them by real ones when somebody runs it.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from engine_session import EVENTS, drive  # noqa: E402  (the path is set just above)
from golden_cases import CELL, GOLDEN, STDERR, STDOUT, TRIAL, load_case, write_expected  # noqa: E402
from slipstream_cells import LOOKUP, MTP, NONE, WARM, make_cell, model_folder, program  # noqa: E402

from orchestrator.registry import adapter as find_adapter  # noqa: E402
from orchestrator.schema.adapter import TrialSpec  # noqa: E402
from orchestrator.schema.cell import Method  # noqa: E402

PLAIN, KOREAN = "Tell of a candle.", "글을 써 줘: 작은 초 하나"
CASES: dict[str, tuple[str, Method, str, int]] = {
    "none": ("none", NONE, PLAIN, 24),
    "mtp": ("none", MTP, PLAIN, 24),
    "mtp-t08": ("none", MTP, PLAIN, 24),
    "mtp-end-of-text": ("none", MTP, PLAIN, 64),
    "mtp-split-characters": ("none", MTP, KOREAN, 24),
    "mtp-one-token": ("none", MTP, PLAIN, 1),
    "lookup": ("none", LOOKUP, PLAIN, 24),
    "baseline-drafts": ("always_drafts", NONE, PLAIN, 24),
    "counter-reset": ("reset", MTP, PLAIN, 24),
    "engine-restarted": ("restart", MTP, PLAIN, 24),
    "another-client": ("other_client", MTP, PLAIN, 24),
    "stale-once": ("stale_once", MTP, PLAIN, 24),
    "stale": ("stale", MTP, PLAIN, 24),
    "stream-error": ("error", MTP, PLAIN, 24),
    "no-counters": ("no_counters", MTP, PLAIN, 0),
}


def main() -> int:
    """Captures the cases named, all of them by default."""
    adapter = find_adapter("slipstream")
    for name in sys.argv[1:] or CASES:
        fault, method, prompt, tokens = CASES[name]
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            (folder / "session").mkdir()
            extra = {"sampling": WARM} if name == "mtp-t08" else {}
            cell = make_cell(program(folder, fault), model_folder(folder), method, tokens=tokens or 24, **extra)
            trial = TrialSpec(0, "measured", "p0", prompt, 5) if tokens else None
            drive(adapter, cell, () if trial is None else (trial,), folder / "session")
            case = GOLDEN / "slipstream" / name
            case.mkdir(parents=True, exist_ok=True)

            def plain(text: str, names: tuple[str, str] = (cell.engine.binary or "", str(folder))) -> str:
                return text.replace(names[0], "slipstream").replace(names[1], "/models")

            for file in (EVENTS, STDOUT, STDERR):
                text = (folder / "session" / file).read_text(encoding="utf-8")
                (case / file).write_text(plain(text), encoding="utf-8")
            settings = json.dumps(cell.settings(), indent=1, ensure_ascii=False)
            (case / CELL).write_text(plain(settings) + "\n", encoding="utf-8")
            (case / "from-source").write_text("Written by a stand-in; see ../README.md.\n", encoding="utf-8")
            data = None if trial is None else dataclasses.asdict(trial)
            (case / TRIAL).write_text(json.dumps(data, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        write_expected(adapter, load_case(case))
        print(f"slipstream/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

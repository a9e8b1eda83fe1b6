"""Captures golden output of ds4: from a real CPU build of May 2026, and what only other builds print from a stand-in.

Usage:
    python scripts/capture_ds4_golden.py --ds4 FOLDER [CASE …]      FOLDER holds ds4 and ds4-server, built with make cpu
    python scripts/capture_ds4_golden.py --stand-in [CASE …]
    python scripts/capture_golden.py ds4 --update [CASE …]          rewrites the expectations alone

A real answer takes minutes: the model has its full shape, though no weights (tests/support/ds4_sparse_gguf.py). The
files of cases named ``source-…`` come from tests/fake_engines/fake_ds4.py, which was written from ds4's source: they
show that lines of that format are read, not that ds4 prints them.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "support")]

from ds4_cells import GREEDY, NONE, WARM, fake_ds4, make_cell, mtp, run_cell  # noqa: E402  (the path is set just above)
from ds4_sparse_gguf import write_module, write_target  # noqa: E402
from golden_cases import CELL, EVENTS, GOLDEN, STDERR, STDOUT, TRIAL, load_case, write_expected  # noqa: E402

from adapters.ds4.adapter import ADAPTER  # noqa: E402
from orchestrator.schema.adapter import TrialSpec  # noqa: E402
from orchestrator.schema.cell import Method, Sampling  # noqa: E402
from orchestrator.schema.record import Phase  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

PROMPT = "hi"
SPEECH = "Count from 73 to 94:"
SURE = dataclasses.replace(WARM, name="t0.8-sure", top_p=1e-6)
"""Sampling that can only take the first token: of equal logits any other name would not come back as one token."""
CYCLES = ["miss", "batch 2", "batch 1", "skip", "idle"]
DSPARK = ["5/5", "idle", "4/0", "3/2", "idle", "idle"]
LONG = {"silence": 900.0, "total": 3600.0, "startup": 900.0}


@dataclass(frozen=True)
class Wanted:
    """A case: the cell, and how the stand-in behaves where there is no real build for it."""

    method: Method = NONE
    sampling: Sampling = GREEDY
    tokens: int = 48
    options: dict[str, Any] = field(default_factory=dict)
    module: str | None = "zero-mtp.gguf"
    fake: dict[str, Any] = field(default_factory=dict)
    locked: bool = False
    """Whether we hold ds4's lock meanwhile, as another ds4 would."""

    @property
    def program(self) -> str:
        """The binary that the cell's mode needs."""
        return "ds4-server" if self.options.get("mode") == "server" else "ds4"


CPU = {"generation": "2026-05", "backend": "cpu", "context": 256, "threads": 2}
MAY, SEP = {"generation": "2026-05"}, {"generation": "2026-09"}
REAL: dict[str, Wanted] = {
    "may-none": Wanted(tokens=3, options=CPU),
    "may-foreign-module": Wanted(mtp(2), tokens=2, options=CPU, module="zero.gguf"),
    "may-locked": Wanted(tokens=2, options=CPU, locked=True),
    "may-one-token": Wanted(tokens=1, options=CPU),
    "may-mtp-never-drafts": Wanted(mtp(2), tokens=1, options=CPU),
    "may-server-thinking": Wanted(tokens=1, options={**CPU, "mode": "server", "thinking": True}),
    "may-server-mtp": Wanted(mtp(2), tokens=2, options={**CPU, "mode": "server"}),
    "may-none-sampled": Wanted(sampling=SURE, tokens=2, options=CPU),
}
SOURCE: dict[str, Wanted] = {
    "source-may-mtp": Wanted(mtp(2), options=MAY, fake={"cycles": CYCLES}),
    "source-may-mtp-all-missed": Wanted(mtp(2), options=MAY, fake={"cycles": ["miss"]}),
    "source-may-mtp-strict": Wanted(mtp(2, strict=True), options=MAY, fake={"cycles": ["exact 2", "exact 1", "miss"]}),
    "source-may-mtp-long": Wanted(mtp(4), options=MAY, fake={"cycles": ["one-by-one 2", "batch 1"]}),
    "source-may-end-of-text": Wanted(options=MAY, fake={"ends_at": 36}),
    "source-sep-none": Wanted(options=SEP),
    "source-sep-server": Wanted(mtp(5, drafter="dspark"), options={**SEP, "mode": "server"}),
    "source-sep-none-sampled": Wanted(sampling=WARM, options=SEP),
    "source-sep-dspark": Wanted(mtp(5, drafter="dspark"), options=SEP, fake={"cycles": DSPARK}),
    "source-sep-dspark-exact": Wanted(
        mtp(5, drafter="dspark", exact_sampling=True), WARM, options=SEP, fake={"cycles": DSPARK}
    ),
    "source-sep-dspark-nothing": Wanted(mtp(5, drafter="dspark"), options=SEP, fake={"cycles": ["idle"]}),
    "source-sep-glm": Wanted(
        mtp(1, drafter="embedded"), options=SEP, module=None, fake={"cycles": ["keep", "refuse", "keep"]}
    ),
    "source-sep-qwen": Wanted(
        mtp(2, drafter="embedded"), WARM, options=SEP, module=None, fake={"cycles": ["keep"], "summary": True}
    ),
    "source-sep-baseline-speculates": Wanted(options=SEP, fake={"cycles": DSPARK, "always": "dspark"}),
    "source-sep-glm-exact": Wanted(
        mtp(1, drafter="embedded", exact_sampling=True),
        WARM,
        options=SEP,
        module=None,
        fake={"cycles": ["keep", "refuse", "plain"]},
    ),
    "source-sep-mtp-strict": Wanted(mtp(2, strict=True), options=SEP, fake={"cycles": ["exact 2", "exact 1", "miss"]}),
    "source-sep-prompt-in-chunks": Wanted(
        mtp(5, drafter="dspark"), options=SEP, fake={"cycles": [*DSPARK, "bypass"], "chunked": True, "warm_up_s": 0.25}
    ),
    "source-sep-lines-missing": Wanted(mtp(5, drafter="dspark"), options=SEP, fake={"speculates": False}),
}


def main(argv: list[str]) -> int:
    """Captures the cases of one kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ds4", type=Path, help="folder of a CPU build")
    parser.add_argument("--stand-in", action="store_true", help="write the cases that no build here can show")
    parser.add_argument("cases", nargs="*")
    asked = parser.parse_args(argv)
    cases = SOURCE if asked.stand_in else REAL
    for name in asked.cases or cases:
        capture(name, cases[name], None if asked.stand_in else asked.ds4.resolve())
        print(f"{name}: written; read its expected.json", flush=True)
    return 0


def capture(name: str, wanted: Wanted, build: Path | None) -> None:
    """One case: its session by the runner, then its files."""
    with tempfile.TemporaryDirectory() as scratch:
        home = Path(scratch) / "engine"
        if build is None:
            binary = fake_ds4(
                home, wanted.program, **wanted.fake, **{k: v for k, v in wanted.options.items() if k == "generation"}
            )
        else:
            binary = str(build / wanted.program)
            for path, write in ((build / "zero.gguf", write_target), (build / "zero-mtp.gguf", write_module)):
                if not path.exists():
                    write(path)
        module = wanted.module if wanted.method is not NONE else None
        cell = make_cell(binary, wanted.method, wanted.sampling, module=module, tokens=wanted.tokens, **wanted.options)
        text = SPEECH if build is None else PROMPT
        session = Path(scratch) / "session"
        with lock() if wanted.locked else contextlib.nullcontext():
            result = run_cell(ADAPTER, cell, session, texts=(text,), limits=LONG)
        print(result.session.status, result.session.reason, [trial.reason for trial in result.trials])
        folder = GOLDEN / "ds4" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file in (EVENTS, STDOUT, STDERR):
            shutil.copyfile(session / file, folder / file)
        plain = dataclasses.replace(cell, engine=dataclasses.replace(cell.engine, binary=wanted.program))
        write_json(folder / CELL, dataclasses.asdict(plain))
        write_json(folder / TRIAL, dataclasses.asdict(TrialSpec(0, Phase.MEASURED.value, "p", text, 7)))
        write_expected(ADAPTER, load_case(folder))


@contextlib.contextmanager
def lock() -> Iterator[None]:
    """Holds the machine's lock of ds4."""
    with Path("/tmp/ds4.lock").open("w", encoding="ascii") as file:  # noqa: S108  (where ds4 has it)
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield


def write_json(path: Path, data: object) -> None:
    """Indented, for reading."""
    path.write_text(json.dumps(data, indent=1, ensure_ascii=False, default=str) + "\n", encoding="utf-8")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

"""The committed token counts are those of the tokenizers that are installed, counted by the engine."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.demo.packaged import SMOLLM2

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.engine
@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="needs the extra llama-cpp")
def test_the_counts_are_the_engines():
    done = subprocess.run(
        [sys.executable, "scripts/count_tokens.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout
    told = re.search(r"(\d+) prompts, 0 out of date; counted by (.+)", done.stdout)
    assert told is not None
    assert int(told[1]) > 250
    wanted = "tiny, smollm2" if SMOLLM2.path().exists() else "tiny"
    assert told[2] == wanted

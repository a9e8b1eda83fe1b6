from __future__ import annotations

import sys
from pathlib import Path

import pytest

from orchestrator.process.build import run_echoed
from orchestrator.process.errors import LaunchError


def test_output_is_echoed_and_the_code_returned(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    script = "import os, sys; print('out', os.getcwd()); print('err', file=sys.stderr); sys.exit(3)"
    assert run_echoed([sys.executable, "-c", script], tmp_path) == 3
    shown = capfd.readouterr()
    assert shown.out == f"out {tmp_path.resolve()}\n"
    assert shown.err == "err\n"


def test_messages_are_asked_for_in_plain_ascii(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_echoed([sys.executable, "-c", "import os; print(os.environ['LC_ALL'])"]) == 0
    assert capfd.readouterr().out == "C\n"


def test_a_missing_command_is_a_launch_error() -> None:
    with pytest.raises(LaunchError, match="no-such-build-tool"):
        run_echoed(["no-such-build-tool", "--version"])

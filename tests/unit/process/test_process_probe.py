from __future__ import annotations

import sys
from pathlib import Path

import pytest
from liveness import is_dead

from orchestrator.process import probe as module
from orchestrator.process.probe import run_probe
from orchestrator.schema.adapter import Probe


def python(script: str, timeout_s: float = 60.0) -> Probe:
    return Probe("version", (sys.executable, "-c", script), timeout_s)


def test_output_and_exit_code_are_kept_apart(tmp_path: Path) -> None:
    out = run_probe(python("import sys; print('v1'); print('warn', file=sys.stderr); sys.exit(4)"), tmp_path)
    assert (out.exit_code, out.stdout, out.stderr, out.error) == (4, "v1\n", "warn\n", None)


def test_undecodable_output_is_replaced(tmp_path: Path) -> None:
    out = run_probe(python(r"import os; os.write(1, b'v\xff\r\n\x00')"), tmp_path)
    assert out.stdout == "v\ufffd\r\n\x00"
    assert out.error is None


def test_environment_folder_and_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGML_FAKE", "x")
    script = "import os, sys; print('GGML_FAKE' in os.environ, os.getcwd(), repr(sys.stdin.read()))"
    out = run_probe(python(script), tmp_path / "new")
    assert out.stdout == f"False {(tmp_path / 'new').resolve()} ''\n"


def test_a_hang_is_cut_with_what_it_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    start, mark = [0.0], tmp_path / "said"
    # The time is over once it has spoken, and not before.
    monkeypatch.setattr(module, "now_s", lambda: start.pop() if start else 9.0 * mark.exists())
    out = run_probe(Probe("version", ("sh", "-c", "echo before; : > said; sleep 600"), 1.0), tmp_path)
    assert (out.exit_code, out.stdout, out.error) == (None, "before\n", "not finished within 1 s")


def test_closed_pipes_do_not_hide_a_hang(tmp_path: Path) -> None:
    out = run_probe(python("import os, time; os.close(1); os.close(2); time.sleep(600)", 0.5), tmp_path)
    assert out.error == "not finished within 0.5 s"


def test_a_child_holding_the_pipes_is_not_waited_for_and_killed(tmp_path: Path) -> None:
    script = "import subprocess; print(subprocess.Popen(['sleep', '600']).pid)"
    out = run_probe(python(script), tmp_path)
    assert (out.exit_code, out.error) == (0, None)
    pid = int(out.stdout)
    assert is_dead(pid)


@pytest.mark.parametrize("stream", [1, 2])
def test_endless_output_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: int) -> None:
    monkeypatch.setattr(module, "MAX_OUTPUT_BYTES", 1000)
    out = run_probe(python(f"import os\nwhile True: os.write({stream}, b'x' * 100)"), tmp_path)
    assert out.error == "printed more than 1000 bytes"
    assert out.exit_code is None
    assert out.stdout + out.stderr == "x" * 1000


def test_what_cannot_run_says_so(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text")
    assert run_probe(Probe("p", ("no-such-engine-anywhere",)), tmp_path).error == "no-such-engine-anywhere: not found"
    assert run_probe(Probe("p", (str(plain),)), tmp_path).error == f"{plain}: may not be executed"
    assert run_probe(Probe("p", ()), tmp_path).error.startswith("an empty command")
    assert run_probe(Probe("p", ("no-such-engine-anywhere",)), tmp_path).exit_code is None

"""``specmatrix --help`` stays light, and user errors are words, not tracebacks."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("pandas", "matplotlib", "scipy", "numpy", "httpx", "pyarrow", "jinja2", "xllamacpp", "mlx", "mlx_lm", "gguf")


def python(code, *argv, cwd=None):
    return subprocess.run([sys.executable, "-c", code, *argv], capture_output=True, text=True, cwd=cwd, check=False)


def test_help_imports_nothing_heavy():
    code = (
        "import sys\n"
        "from orchestrator.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = python(code, "--help")
    assert "rerun" in done.stdout
    assert done.stderr.strip() == "[]"


def run_cli(*argv, cwd):
    return python("from orchestrator.cli import main; main()", *argv, cwd=cwd)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("check",), "matrix.yaml"),
        (("run", "--matrix", "nowhere.yaml"), "nowhere.yaml"),
        (("status",), "specmatrix run"),
        (("report", "--run", "nowhere"), "nowhere"),
        (("show", "a/b"), "specmatrix run"),
    ],
)
def test_user_errors_end_with_two_and_no_traceback(argv, said, tmp_path):
    done = run_cli(*argv, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_init_writes_a_matrix_that_loads_and_never_overwrites(tmp_path):
    assert run_cli("init", cwd=tmp_path).returncode == 0
    written = (tmp_path / "matrix.yaml").read_text(encoding="utf-8")
    assert "version: 1" in written
    again = run_cli("init", cwd=tmp_path)
    assert again.returncode == 2
    assert (tmp_path / "matrix.yaml").read_text(encoding="utf-8") == written


def test_a_wrong_matrix_lists_every_fault(tmp_path):
    (tmp_path / "matrix.yaml").write_text("version: 1\nname: x\nengins: {}\nmodels: 3\n", encoding="utf-8")
    done = run_cli("check", cwd=tmp_path)
    assert done.returncode == 2
    assert "engins" in done.stderr
    assert "models" in done.stderr
    assert "matrix.yaml:3" in done.stderr


def test_rerun_wants_cells_or_failed(tmp_path):
    done = run_cli("rerun", cwd=tmp_path)
    assert done.returncode == 2
    assert "--failed" in done.stderr

"""The whole program on a matrix full of faults, through the command line, on real engines where the fault allows it.

Each cell gets its own status and reason, the others run on, and ``rerun`` of a repaired cell turns it green while the
others keep their attempts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import Index

pytest.importorskip("xllamacpp") if not os.environ.get("SPECMATRIX_REQUIRE_ENGINES") else None
pytestmark = pytest.mark.engine

FAKE = Path(__file__).resolve().parent.parent / "fake_engines" / "faulty_llama_server.py"
MATRIX = """\
version: 1
name: faulty
engines:
  real: {{adapter: llama_cpp_embedded, options: {{threads: 1, context: 512}}}}
  wrong-pin: {{adapter: llama_cpp_embedded, pin: {{xllamacpp: 1.0.0}}, options: {{threads: 1, context: 512}}}}
  dead: {{adapter: llama_cpp, binary: {folder}/dead_port-server}}
  hanging: {{adapter: llama_cpp, binary: {folder}/hang-server}}
  absent: {{adapter: llama_cpp, binary: {folder}/no-such-server}}
  mlx: {{adapter: mlx_lm}}
models:
  tiny:
    real: {{target: "demo:tiny-target-f16.gguf", drafts: {{good: "demo:tiny-draft-f16.gguf", bad: "{bad}", gone: gone.gguf}}}}
    wrong-pin: {{target: "demo:tiny-target-f16.gguf"}}
    dead: {{target: "demo:tiny-target-f16.gguf"}}
    hanging: {{target: "demo:tiny-target-f16.gguf"}}
    absent: {{target: "demo:tiny-target-f16.gguf"}}
    mlx: {{target: "demo:tiny-target-f16", drafts: {{bad: "demo:tiny-incompatible-f16"}}}}
methods:
  draft: {{method: draft, draft: good, n_max: 4}}
  other-vocabulary: {{method: draft, draft: bad, n_max: 4}}
  missing-file: {{method: draft, draft: gone, n_max: 4}}
  silent: {{method: draft, draft: good, n_max: 4, options: {{p_min: 1.0}}}}
sampling:
  greedy: {{temperature: 0, top_k: 0, top_p: 1, min_p: 0, repeat_penalty: 1, presence_penalty: 0, frequency_penalty: 0, seed: 7}}
workloads:
  w: {{prompts: demo-short, max_tokens: 16, eos: mask}}
run: {{sessions: 2, trials: 2, warmup: 1, twin: false, timeout: {timeout}}}
matrix:
  axes: {{engine: [real], model: [tiny], method: [draft, other-vocabulary, missing-file, silent], sampling: [greedy], workload: [w]}}
  include:
    - {{engine: [wrong-pin, dead, hanging, absent], model: tiny, method: none, sampling: greedy, workload: w}}
    - {{engine: mlx, model: tiny, method: other-vocabulary, sampling: greedy, workload: w}}
"""


def specmatrix(folder, *argv):
    code = "from orchestrator.cli import main; main()"
    return subprocess.run([sys.executable, "-c", code, *argv], cwd=folder, capture_output=True, text=True, check=False)


def cells(folder):
    (run,) = (path.parent for path in (folder / "reports").glob("*/run.json"))
    index = Index.build(RunDirectory.open(run).records())
    return run, index.cells


PATIENT = "{silence: 2min, total: 5min, startup: 2min}"
SHORT = "{silence: 2, total: 4, startup: 10}"


def write_matrix(folder, bad="demo:tiny-draft-f16.gguf", timeout=PATIENT):
    for fault in ("dead_port", "hang"):
        script = folder / f"{fault}-server"
        script.write_text(
            f"#!{sys.executable}\nimport runpy, sys\nsys.argv.insert(1, {fault!r})\n"
            f"runpy.run_path({str(FAKE)!r}, run_name='__main__')\n",
            encoding="utf-8",
        )
        script.chmod(0o755)
    (folder / "matrix.yaml").write_text(MATRIX.format(folder=folder, bad=bad, timeout=timeout), encoding="utf-8")


def statuses(found):
    return {name.split("/none/")[0]: state.status.value for name, state in found.items()}


def test_a_dead_port_and_a_hanging_engine_time_out_and_the_rest_is_told(tmp_path):
    write_matrix(tmp_path, timeout=SHORT)
    fakes = ("dead/*", "hanging/*", "absent/*", "wrong-pin/*")
    done = specmatrix(tmp_path, "run", *(part for one in fakes for part in ("--only", one)))
    assert done.returncode == 1, done.stdout + done.stderr
    run, found = cells(tmp_path)
    told = {name: state for name, state in found.items() if name.split("/")[0] not in ("real", "mlx")}
    assert statuses(told) == {
        "wrong-pin/tiny": "unavailable",
        "dead/tiny": "timeout",
        "hanging/tiny": "timeout",
        "absent/tiny": "unavailable",
    }
    assert "pinned 1.0.0" in found["wrong-pin/tiny/none/greedy/w"].reason
    assert "not ready" in found["dead/tiny/none/greedy/w"].reason
    assert "silent" in found["hanging/tiny/none/greedy/w"].reason
    assert "no-such-server" in found["absent/tiny/none/greedy/w"].reason
    page = (run / "report.html").read_text(encoding="utf-8")
    for name in told:
        assert name in page
    assert "specmatrix rerun dead/tiny/none/greedy/w" in page
    shown = specmatrix(tmp_path, "show", "hanging/tiny/none/greedy/w")
    assert "pretending to start" in shown.stdout
    named = specmatrix(tmp_path, "run", "--only", "absent/tiny/none/greedy/w")
    assert named.returncode == 1  # named explicitly, so nothing but a measurement will do


REAL = ("--only", "real/*", "--only", "mlx/*")


def test_real_engines_each_fault_its_own_status_and_rerun_turns_the_report_green(tmp_path):
    write_matrix(tmp_path, "demo:tiny-incompatible-f16.gguf")
    done = specmatrix(tmp_path, "run", *REAL)
    assert done.returncode == 1, done.stdout + done.stderr
    _, found = cells(tmp_path)
    said = {name: state.status.value for name, state in found.items() if name.split("/")[0] in ("real", "mlx")}
    assert said == {
        "real/tiny/none/greedy/w": "ok",
        "real/tiny/draft/greedy/w": "ok",
        "real/tiny/other-vocabulary/greedy/w": "unsupported",
        "real/tiny/missing-file/greedy/w": "unavailable",
        "real/tiny/silent/greedy/w": "not_engaged",
        "mlx/tiny/none/greedy/w": "ok",
        "mlx/tiny/other-vocabulary/greedy/w": "unsupported",
    }, done.stdout
    assert "vocab" in found["real/tiny/other-vocabulary/greedy/w"].reason
    assert "proposed nothing" in found["real/tiny/silent/greedy/w"].reason
    assert "gone.gguf" in found["real/tiny/missing-file/greedy/w"].reason

    write_matrix(tmp_path)
    again = specmatrix(tmp_path, "rerun", "real/tiny/other-vocabulary/greedy/w")
    assert again.returncode == 0, again.stdout + again.stderr
    run, repaired = cells(tmp_path)
    assert repaired["real/tiny/other-vocabulary/greedy/w"].status.value == "ok"
    assert repaired["real/tiny/other-vocabulary/greedy/w"].attempt == 2
    assert repaired["real/tiny/none/greedy/w"].attempt == 2
    assert repaired["real/tiny/draft/greedy/w"].attempt == 1
    assert repaired["real/tiny/draft/greedy/w"].trials == found["real/tiny/draft/greedy/w"].trials
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "specmatrix rerun real/tiny/other-vocabulary/greedy/w" not in page
    summary = json.loads((run / "summary.json").read_text(encoding="utf-8"))
    (row,) = [cell for cell in summary["cells"] if cell["id"] == "real/tiny/other-vocabulary/greedy/w"]
    assert row["status"] == "ok"


STAYS = """\
import time
from orchestrator.cli import main
from orchestrator.cli.progress import ProgressView
shown = ProgressView._trial
def stay(view, event):
    shown(view, event)
    while event.trial == 1:
        time.sleep(0.02)
ProgressView._trial = stay
main()
"""
"""The program, which does not go on after the first measured trial: the signal meets it there, however late it comes."""


def test_a_run_that_is_interrupted_by_a_signal_ends_with_130_and_goes_on(tmp_path):
    write_matrix(tmp_path)
    argv = [sys.executable, "-c", STAYS, "run", "-v", "--only", "real/*/draft/*"]
    with subprocess.Popen(argv, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            if "measured 1" in line:
                process.send_signal(2)
                break
        rest = process.stdout.read()
    assert process.returncode == 130, rest
    assert "goes on from here" in rest
    done = specmatrix(tmp_path, "run", "--only", "real/*/draft/*")
    assert done.returncode == 0, done.stdout + done.stderr
    _, found = cells(tmp_path)
    assert found["real/tiny/draft/greedy/w"].status.value == "ok"
    assert found["real/tiny/draft/greedy/w"].sets_done == 2

"""The matrix that newcomers get: the same in the repository and from `init`, valid, and small."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from pydantic import BaseModel

from orchestrator import registry
from orchestrator.matrix.expand import expand
from orchestrator.matrix.load import load_matrix
from orchestrator.matrix.template import SCHEMA, TEMPLATE, template_text
from orchestrator.matrix.types import RunSettings
from orchestrator.schema.cell import EosPolicy
from orchestrator.workloads.load import known_names, load_prompts

ROOT = Path(__file__).parents[3]

CELLS = """
llama.cpp/tiny/none/greedy/short llama.cpp/tiny/draft-k4/greedy/short llama.cpp/tiny/ngram/greedy/short
llama.cpp/tiny/none/greedy/short~twin
llama.cpp/tiny/none/t0.8/short llama.cpp/tiny/draft-k4/t0.8/short llama.cpp/tiny/ngram/t0.8/short
llama.cpp/tiny/none/t0.8/short~twin
mlx-lm/tiny/none/greedy/short mlx-lm/tiny/draft-k4/greedy/short mlx-lm/tiny/none/greedy/short~twin
mlx-lm/tiny/none/t0.8/short mlx-lm/tiny/draft-k4/t0.8/short mlx-lm/tiny/none/t0.8/short~twin
llama.cpp/tiny-mtp/none/greedy/short llama.cpp/tiny-mtp/mtp/greedy/short llama.cpp/tiny-mtp/none/greedy/short~twin
llama.cpp/tiny-mtp/none/t0.8/short llama.cpp/tiny-mtp/mtp/t0.8/short llama.cpp/tiny-mtp/none/t0.8/short~twin
llama.cpp/smollm2/none/greedy/tasks llama.cpp/smollm2/draft-k2/greedy/tasks llama.cpp/smollm2/ngram/greedy/tasks
llama.cpp/smollm2/none/greedy/tasks~twin
mlx-vlm/tiny-mtp/none/greedy/short mlx-vlm/tiny-mtp/mtp/greedy/short mlx-vlm/tiny-mtp/none/greedy/short~twin
omlx/qwen3.5-4b/none/greedy/natural omlx/qwen3.5-4b/mtp/greedy/natural omlx/qwen3.5-4b/none/greedy/natural~twin
mtplx/qwen3.5-4b/none/greedy/natural mtplx/qwen3.5-4b/mtp/greedy/natural mtplx/qwen3.5-4b/none/greedy/natural~twin
ds4/deepseek-v4-flash/none/greedy/natural ds4/deepseek-v4-flash/mtp/greedy/natural
ds4/deepseek-v4-flash/none/greedy/natural~twin
slipstream/qwen3.8-flash-next/none/greedy/natural slipstream/qwen3.8-flash-next/mtp/greedy/natural
slipstream/qwen3.8-flash-next/none/greedy/natural~twin
"""


def test_the_repositorys_matrix_and_the_template_are_the_same_bytes() -> None:
    assert (ROOT / "matrix.yaml").read_bytes() == TEMPLATE.read_bytes()


def test_its_first_line_names_a_schema_that_is_there() -> None:
    first = template_text().split("\n", 1)[0]
    assert first == "# yaml-language-server: $schema=orchestrator/matrix/matrix.schema.json"
    assert (ROOT / "orchestrator/matrix/matrix.schema.json").samefile(SCHEMA)


def test_elsewhere_it_names_the_installed_schema_and_is_otherwise_the_same() -> None:
    text = template_text(SCHEMA)
    assert text.split("\n", 1)[0] == f"# yaml-language-server: $schema={SCHEMA}"
    assert text.split("\n", 1)[1] == template_text().split("\n", 1)[1]


def test_it_loads_with_the_real_adapters_and_comes_to_these_cells() -> None:
    matrix = load_matrix(TEMPLATE, registry.adapters(), known_names())
    expansion = expand(matrix, str)
    assert [cell.id for cell in expansion.cells] == CELLS.split()
    assert expansion.not_formed == ()
    assert dict(expansion.excluded) == {
        f"mlx-lm/tiny/ngram/{sampling}/short": "MLX-LM has no n-gram drafter" for sampling in ("greedy", "t0.8")
    }
    assert matrix.run == RunSettings("demo", 4, 3, 1, "abba", 7, "cold", True, 120.0, 1800.0, 300.0)
    assert {name: engine.pin for name, engine in matrix.engines.items()} == {
        "llama.cpp": {"xllamacpp": "2026.10.11549"},
        "mlx-lm": {"mlx-lm": "0.32.2", "mlx": "0.32.4"},
        "mlx-vlm": {"mlx-vlm": "0.7.10", "mlx": "0.32.4"},
        "omlx": {},
        "ds4": {},
        "slipstream": {},
        "mtplx": {"version": "2.12.2"},
    }
    assert matrix.workloads["short"].eos is EosPolicy.MASK
    assert len(load_prompts(matrix.workloads["short"].prompts)) >= matrix.run.trials
    unwritten = {path.split(".")[-1] for path in matrix.defaults if path.startswith("sampling.")}
    assert unwritten == {"xtc_probability", "xtc_threshold"}  # the one rare sampler; the rest is written out


def test_its_commented_examples_are_valid_too(tmp_path: Path) -> None:
    lines = template_text().split("\n")
    lively = [
        line.replace("# ", "", 1)
        if line.lstrip().startswith("#") and line.strip("# ")[:4] not in {"yaml", "What", "mode", "For "}
        else line
        for line in lines
    ]
    path = tmp_path / "matrix.yaml"
    path.write_text("\n".join(lively), encoding="utf-8")

    class Anything(BaseModel):
        threads: int = 1
        context: int = 1

    free = SimpleNamespace(engine_options=Anything, method_options={})
    matrix = load_matrix(path, dict.fromkeys(registry.adapters(), free))
    assert matrix.engines["llama-server"].pin == {"build": "11434"}
    assert matrix.host.reserve[0].bytes == 8 * 2**30
    assert set(matrix.workloads) == {"short", "tasks", "natural", "mine"}
    assert {"tiny", "tiny-mtp", "qwen3-32b"} < set(matrix.models)


def test_it_is_small() -> None:
    lines = template_text().split("\n")
    assert len(lines) <= 100
    assert max(map(len, lines)) <= 130


def test_the_package_is_light_to_import() -> None:
    code = (
        "import sys, orchestrator.matrix.load, orchestrator.matrix.expand, orchestrator.matrix.select;"
        "heavy = {'numpy', 'pandas', 'scipy', 'matplotlib', 'httpx', 'rich', 'typer', 'jsonschema', 'adapters',"
        " 'orchestrator.registry'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == "[]\n"

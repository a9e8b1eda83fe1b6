"""llama-cpp-python through a worker of ours: no draft, or the package's own prompt lookup.

Never ``llama_cpp.server``: it tells no token ids and keeps a prompt cache. The worker drives ``Llama.generate``, the
loop beneath every completion of the package.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel

from adapters.llama_cpp_python import support
from adapters.llama_cpp_python.conditions import all_conditions
from adapters.llama_cpp_python.memory import LcppMemory
from adapters.llama_cpp_python.observations import baseline, common, problems, speculative, word_of_end
from adapters.llama_cpp_python.protocol import STEP, Probed, find_ready, read_done
from adapters.llama_cpp_python.rounds import read_rounds
from adapters.llama_cpp_python.support import LookupOptions, NoOptions, PythonOptions, engine_options, lookup_options
from adapters.shared.chat_template import gguf_template
from adapters.shared.token_texts import gguf_texts
from orchestrator.schema.adapter import (
    Adapter,
    Arrival,
    Arrivals,
    Claim,
    Condition,
    EngineIdentity,
    Launch,
    LaunchContext,
    LineReady,
    ParsedTrial,
    Probe,
    ProbeOutput,
    Refusal,
    Shape,
    Step,
    TrialSpec,
    Verified,
    WorkerStep,
)
from orchestrator.schema.capture import SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell, EngineConfig, MethodKind
from orchestrator.schema.chat_template import ChatTemplate
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Observation
from orchestrator.schema.status import Status

WORKER = Path(__file__).resolve().parents[1] / "workers" / "llama_cpp_python_worker.py"
CONFIG_FILE = "llama_cpp_python_worker.json"
ISOLATED = ("-I", "-X", "utf8")
"""No user site, no ``PYTHON*`` variables, no folder of ours on the path: the engine's own environment alone."""
PROBE_CODE = (
    "import json, platform, llama_cpp; "
    "print(json.dumps({'llama_cpp_python': llama_cpp.__version__, 'python': platform.python_version(), "
    "'gpu_offload': bool(llama_cpp.llama_supports_gpu_offload())}))"
)


class LlamaCppPython(LcppMemory):
    """The adapter; see :class:`orchestrator.schema.adapter.Adapter`."""

    name = "llama_cpp_python"
    title = "llama-cpp-python (in-process worker)"
    shape = Shape.WORKER
    verified = Verified.REAL_RUN
    install_hint = (
        "pip install 'specmatrix[llama-cpp-python]'  (it compiles llama.cpp: a compiler, cmake, some minutes)"
    )
    engine_options: type[BaseModel] = PythonOptions
    method_options: Mapping[MethodKind, type[BaseModel]] = {
        MethodKind.NONE: NoOptions,
        MethodKind.NGRAM: LookupOptions,
    }
    always_drafts: frozenset[MethodKind] = frozenset()

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """One import of the engine by its own interpreter."""
        return (Probe("import", (_python(config), *ISOLATED, "-c", PROBE_CODE)),)

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """The package's version, which pins the llama.cpp inside it, or why there is no engine."""
        output = outputs.get("import")
        lines = output.stdout.splitlines() if output is not None else []
        try:
            found = Probed.model_validate_json(lines[-1] if lines else "")
        except ValueError:
            reason = f"{_python(config)} cannot import llama_cpp ({_last_words(output)}); {self.install_hint}"
            return EngineIdentity(unavailable=reason)
        return EngineIdentity(
            facts={"llama-cpp-python": found.llama_cpp_python, "python": found.python},
            version=found.llama_cpp_python,
            build=f"its own llama.cpp, Python {found.python}",
            backend="gpu offload" if found.gpu_offload else "cpu",
            capabilities=frozenset({MethodKind.NONE.value, MethodKind.NGRAM.value}),
        )

    def supports(self, cell: Cell, identity: EngineIdentity) -> Refusal | None:
        """Methods, samplers and models that this engine cannot measure rightly; reads the GGUF header."""
        return support.supports(cell, identity)

    def exactness(self, cell: Cell, identity: EngineIdentity) -> Claim:
        """The acceptance rule claimed for the cell."""
        return support.claim(cell, identity)

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The worker, by the engine's own interpreter, with its settings in a file."""
        options = engine_options(cell)
        lookup = None
        if cell.method.kind is MethodKind.NGRAM:
            longest = lookup_options(cell.method).max_ngram_size
            lookup = {"max_ngram_size": longest, "num_pred_tokens": cell.method.n_max}
        config = {
            "model": cell.model.target,
            "n_ctx": options.context,
            "n_batch": options.batch,
            "n_ubatch": options.ubatch,
            "threads": options.threads,
            "gpu_layers": options.gpu_layers,
            "flash_attention": options.flash_attention,
            "mmap": options.mmap,
            "cache_type_k": options.cache_type_k,
            "cache_type_v": options.cache_type_v,
            "lookup": lookup,
        }
        argv = (_python(cell.engine), *ISOLATED, str(WORKER), str(context.folder.absolute() / CONFIG_FILE))
        text = json.dumps(config, ensure_ascii=False, indent=1, sort_keys=True) + "\n"
        return Launch(argv, {}, LineReady(), files={CONFIG_FILE: text})

    def ready_steps(self, cell: Cell) -> tuple[Step, ...]:  # noqa: ARG002
        """None: the ready line tells all."""
        return ()

    def check_ready(self, cell: Cell, ready: TrialCapture, stdout: str, stderr: str) -> Refusal | None:  # noqa: ARG002
        """The drafter must be in the engine exactly where the cell asks for one."""
        found = find_ready(stdout)
        if found is None:
            return Refusal(Status.FAILED, "the worker's ready line is missing or cannot be read", "see stderr.log")
        wanted = cell.method.kind is MethodKind.NGRAM
        if wanted and not found.drafter_loaded:
            return Refusal(Status.NOT_ENGAGED, "the engine has no drafter, and the cell asks for one")
        if found.drafter_loaded and not wanted:
            return Refusal(Status.CONTAMINATED, "the engine has a drafter in a cell without one")
        return None

    def trial_steps(self, cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
        """One request with every setting stated."""
        asked = cell.sampling
        message = {
            "op": "generate",
            "trial": trial.index,
            "prompt": trial.prompt,
            "max_tokens": cell.workload.max_tokens,
            "sampling": {
                "temperature": asked.temperature,
                "top_k": asked.top_k,
                "top_p": asked.top_p,
                "min_p": asked.min_p,
                "repeat_penalty": asked.repeat_penalty,
                "presence_penalty": asked.presence_penalty,
                "frequency_penalty": asked.frequency_penalty,
                "seed": trial.seed,
            },
            "eos": cell.workload.eos.value,
        }
        return (WorkerStep(STEP, message),)

    def arrivals(self, cell: Cell, capture: TrialCapture) -> Arrivals | None:  # noqa: ARG002
        """Tokens in time by the worker's stamps; those sampled from one pass are a burst."""
        try:
            done = read_done(capture)
            read_rounds(done)
        except CaptureError:
            return None
        came = tuple(Arrival(t_s, (token,), f"p{number}") for token, t_s, number in done.tokens)
        return Arrivals(done.t0, came, done.t1, "engine")

    def parse_trial(self, cell: Cell, capture: TrialCapture) -> ParsedTrial:
        """Everything the worker says of one trial.

        Raises:
            CaptureError: the answer is incomplete, cannot be read, or is none that the package can give.
        """
        done = read_done(capture)
        rounds = read_rounds(done)
        speculates = cell.method.kind is not MethodKind.NONE
        own = speculative(cell, done, rounds) if speculates else baseline(done, rounds)
        found = problems(cell, done)
        if done.trial != capture.index:
            found.append(f"the worker answered trial {done.trial}")
        return ParsedTrial((*common(done), *own), done.ids, done.text, word_of_end(done), tuple(found))

    def parse_session(self, cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:  # noqa: ARG002
        """Nothing: the worker says all it knows trial by trial."""
        return ()

    def chat_template(self, cell: Cell) -> ChatTemplate | None:
        """See :func:`orchestrator.schema.adapter.chat_template`."""
        return gguf_template(cell.model.target)

    def token_texts(self, cell: Cell, ids: tuple[int, ...]) -> Mapping[int, str]:
        """See :func:`orchestrator.schema.adapter.token_texts`."""
        return gguf_texts(cell.model.target, ids)

    def conditions(self, cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
        """What was asked and what the worker passed on; empty while the answer is incomplete."""
        try:
            return all_conditions(cell, capture.steps[STEP].body, read_done(capture))
        except (CaptureError, KeyError):
            return ()


def _python(config: EngineConfig) -> str:
    return config.python or sys.executable


def _last_words(output: ProbeOutput | None) -> str:
    if output is None:
        return "not probed"
    if output.error is not None:
        return output.error
    lines = [line for line in output.stderr.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit status {output.exit_code}"


ADAPTER: Adapter = LlamaCppPython()

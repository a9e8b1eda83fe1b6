"""llama.cpp's server inside the ``xllamacpp`` wheel, started by a worker of ours and driven over HTTP.

The wheel carries llama.cpp without a build number, so the pin is the package's version. Its figures are another
engine path than a ``llama-server`` binary: another compiler, other instruction sets, another process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from adapters.llama_cpp.base import TRACE_ENV, LlamaBase
from adapters.llama_cpp.drafters import drafters, head_path, ngram_settings, spec_types
from adapters.llama_cpp.options import draft_options, engine_options, speculative_options
from adapters.llama_cpp.support import SPEC_CAPABILITY
from orchestrator.schema.adapter import (
    Adapter,
    EngineIdentity,
    Launch,
    LaunchContext,
    LineReady,
    Probe,
    ProbeOutput,
)
from orchestrator.schema.cell import Cell, EngineConfig

WORKER = Path(__file__).resolve().parents[1] / "workers" / "llama_embedded.py"
CONFIG_FILE = "worker.json"

_PROBE = """
import json, platform, sys
import xllamacpp as x
kinds = [n.removeprefix("COMMON_SPECULATIVE_TYPE_").lower().replace("_", "-")
         for n in dir(x.common_speculative_type) if n.startswith("COMMON_SPECULATIVE_TYPE_")]
sys.stdout.write(json.dumps({"xllamacpp": x.__version__, "python": platform.python_version(), "build": x.BUILD_INFO,
                             "kinds": kinds, "devices": [d["name"] for d in x.get_device_info()],
                             "memory": [d.get("memory_total") for d in x.get_device_info()]}) + "\\n")
"""


class LlamaEmbedded(LlamaBase):
    """The server of the ``xllamacpp`` wheel in an interpreter given by path, or in our own."""

    name: str = "llama_cpp_embedded"
    title: str = "llama.cpp (embedded, xllamacpp)"
    install_hint: str = "pip install 'specmatrix[llama-cpp]'"

    def probe_commands(self, config: EngineConfig) -> tuple[Probe, ...]:
        """Asks the interpreter for the wheel's version, drafters and devices."""
        return (Probe("wheel", (_python(config), "-c", _PROBE)),)

    def identify(self, config: EngineConfig, outputs: Mapping[str, ProbeOutput]) -> EngineIdentity:
        """The wheel's version; llama.cpp's own build number is not in it."""
        said = outputs.get("wheel")
        if said is None or said.error is not None:
            why = said.error if said is not None and said.error else "it was not probed"
            return EngineIdentity(unavailable=f"{_python(config)}: {why}")
        answer = _answer(said.stdout)
        version = answer.get("xllamacpp")
        if said.exit_code != 0 or not isinstance(version, str):
            last = [line for line in said.stderr.splitlines() if line.strip()][-1:] or ["it printed nothing"]
            return EngineIdentity(unavailable=f"{_python(config)} cannot load xllamacpp: {last[0].strip()}")
        facts = {"xllamacpp": version, "python": str(answer.get("python", "unknown"))}
        kinds, devices = answer.get("kinds"), answer.get("devices")
        known = {SPEC_CAPABILITY + str(kind) for kind in kinds} if isinstance(kinds, list) else set()
        backend = ",".join(map(str, devices)) if isinstance(devices, list) else None
        return EngineIdentity(
            facts, version, backend=backend, capabilities=frozenset(known), gpu_limit_bytes=_gpu_limit(answer)
        )

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The worker's command; its settings are a file in the session's folder."""
        argv = (_python(cell.engine), "-u", str(WORKER), str(context.folder / CONFIG_FILE))
        text = json.dumps(worker_settings(cell, context.port), indent=1, sort_keys=True, ensure_ascii=False)
        return Launch(argv, dict(TRACE_ENV), LineReady(), files={CONFIG_FILE: text + "\n"})


def worker_settings(cell: Cell, port: int) -> dict[str, Any]:
    """What the worker is told, under llama.cpp's own names where it has one.

    Args:
        cell: the resolved cell.
        port: where the server shall listen.
    """
    options, method = engine_options(cell), cell.method
    settings: dict[str, Any] = {
        "model": cell.model.target,
        "port": port,
        "n_ctx": options.context,
        "n_batch": options.batch,
        "n_ubatch": options.ubatch,
        "threads": options.threads,
        "gpu_layers": options.gpu_layers,
        "flash_attention": options.flash_attention,
        "cache_type_k": options.cache_type_k,
        "cache_type_v": options.cache_type_v,
        "spec_type": spec_types(method),
    }
    if not options.mmap:
        settings["mmap"] = False
    for drafter in drafters(method):
        if drafter.ngram is not None:
            settings.setdefault("ngrams", {})[drafter.name] = ngram_settings(drafter)
        else:
            draft = draft_options(method)
            settings["draft"] = {
                "path": head_path(method, cell.draft_path, cell.model.mtp),
                "n_max": drafter.length,
                "n_min": draft.n_min,
                "p_min": draft.p_min,
                "probabilistic": draft.acceptance == "probabilistic",
            }
    wanted = speculative_options(method)
    if wanted is not None and wanted.synthetic:
        settings["synthetic"] = {"length": wanted.synth_len, "rates": wanted.synth_rates}
    return settings


def _python(config: EngineConfig) -> str:
    return config.python or sys.executable


def _gpu_limit(answer: Mapping[str, object]) -> int | None:
    """What Metal recommends as the most to work with: the total of its device."""
    names, sizes = answer.get("devices"), answer.get("memory")
    if not isinstance(names, list) or not isinstance(sizes, list):
        return None
    found = [size for name, size in zip(names, sizes, strict=False) if str(name).startswith(("MTL", "Metal"))]
    return next((size for size in found if isinstance(size, int) and size > 0), None)


def _answer(text: str) -> dict[str, Any]:
    for line in reversed(text.splitlines()):
        try:
            found = json.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            return found
    return {}


ADAPTER: Adapter = LlamaEmbedded()

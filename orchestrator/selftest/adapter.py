"""The embedded llama.cpp behind the corrupting proxy: the method's name says the fault."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

from adapters.llama_cpp.embedded import LlamaEmbedded
from orchestrator.exactness.coverage import Fault
from orchestrator.schema.adapter import Launch, LaunchContext, LineReady
from orchestrator.schema.cell import Cell, Method, MethodKind

PROXY = Path(__file__).resolve().parent / "proxy.py"
CONFIG_FILE = "selftest.json"
DRAFT = "small"
DRAFT_LENGTH = 4


def method_of(fault: Fault) -> Method:
    """The method of a cell that suffers this fault."""
    return Method(fault.name.lower(), MethodKind.DRAFT, DRAFT_LENGTH, DRAFT)


class Proxied(LlamaEmbedded):
    """The real engine; a speculative cell talks to it through the proxy, its baseline directly."""

    name: str = "selftest"
    title: str = "llama.cpp (embedded) behind the self-test's proxy"

    def launch(self, cell: Cell, context: LaunchContext) -> Launch:
        """The proxy's command, with the engine's own inside its settings."""
        if cell.method.kind is MethodKind.NONE:
            return super().launch(cell, context)
        dropped = cell.method.name == Fault.DROPPED_DRAFTER.name.lower()
        real = super().launch(replace(cell, method=Method("none", MethodKind.NONE)) if dropped else cell, context)
        settings = json.dumps({"argv": list(real.argv), "fault": cell.method.name}, indent=1)
        argv = (sys.executable, "-u", str(PROXY), str(context.folder / CONFIG_FILE))
        return Launch(argv, real.env, LineReady(), {**real.files, CONFIG_FILE: settings + "\n"}, real.keep_env)


ADAPTER = Proxied()

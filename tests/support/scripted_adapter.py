"""An adapter for ``tests/fake_engines/scripted_worker.py``: the port with an engine that fails on demand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from orchestrator.schema.adapter import (
    Arrival,
    Arrivals,
    Claim,
    EngineIdentity,
    Launch,
    LineReady,
    ParsedTrial,
    Rule,
    Shape,
    Verified,
    WorkerStep,
)
from orchestrator.schema.cell import MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence, absent, observed

SCRIPT = Path(__file__).resolve().parent.parent / "fake_engines" / "scripted_worker.py"


class Options(BaseModel):
    model_config = ConfigDict(extra="forbid")


class MethodOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")
    fault: str = "none"
    fault_trial: int = 1


class ScriptedAdapter:
    """``faults`` maps a method name to a fault; it may be changed between runs, as a user repairs a cell.

    ``pace`` gives the seconds of a pass by cell id and how often the cell was launched before, for exact times; ``slow``
    names a trial of each session and how many times longer it takes. ``remembers`` is a cell's drafter with a memory.
    """

    name = "scripted"
    title = "scripted fake"
    shape = Shape.WORKER
    verified = Verified.SOURCE
    install_hint = "nothing to install"
    engine_options = Options
    method_options = {MethodKind.NONE: MethodOptions, MethodKind.DRAFT: MethodOptions, MethodKind.NGRAM: MethodOptions}
    always_drafts = frozenset({MethodKind.DRAFT})

    def __init__(self):
        self.faults = {}
        self.version = "1"
        self.launched = []
        self.pace = None
        self.slow = None
        self.remembers = None

    def probe_commands(self, config):
        return ()

    def identify(self, config, outputs):
        return EngineIdentity(facts={"scripted": self.version}, version=self.version)

    def keeps_state(self, cell):
        return cell.id == self.remembers

    def supports(self, cell, identity):
        return None

    def exactness(self, cell, identity):
        return Claim(Rule.GREEDY_MATCH, True, "the test")

    def launch(self, cell, context):
        self.launched.append(cell.id)
        config = {
            "fault": self.faults.get(cell.id, self.faults.get(cell.method.name, "none")),
            "fault_trial": cell.method.options.get("fault_trial", 1),
            "drafts": cell.method.kind is not MethodKind.NONE,
            "slow": self.slow,
            "pace_s": self.pace(cell.id, self.launched.count(cell.id) - 1) if self.pace is not None else 0.001,
        }
        return Launch(
            (sys.executable, str(SCRIPT), "config.json"), {}, LineReady(), {"config.json": json.dumps(config)}
        )

    def ready_steps(self, cell):
        return ()

    def check_ready(self, cell, ready, stdout, stderr):
        return None

    def trial_steps(self, cell, trial):
        message = {"trial": trial.index, "max_tokens": cell.workload.max_tokens, "seed": trial.seed}
        return (WorkerStep("request", message),)

    def _answer(self, capture):
        step = capture.step("request")
        if step is None:
            raise CaptureError("no complete request")
        answer = json.loads(step.events[-1].data)
        if "tokens" not in answer:
            raise CaptureError("the answer has no tokens")
        return answer

    def arrivals(self, cell, capture):
        answer = self._answer(capture)
        tokens = tuple(Arrival(t, (token,), str(key)) for token, t, key in answer["tokens"])
        return Arrivals(answer["t0"], tokens, answer["t1"], "engine")

    def parse_trial(self, cell, capture):
        answer = self._answer(capture)
        ids = tuple(token for token, _, _ in answer["tokens"])
        speculative = cell.method.kind is not MethodKind.NONE
        drafted = (
            observed("drafted_tokens", answer["drafted"], "events:request/drafted")
            if speculative or answer["drafted"]
            else absent("drafted_tokens", Absence.NOT_APPLICABLE, "no drafter")
        )
        found = (
            observed("output_tokens", len(ids), "events:request/tokens"),
            observed("cached_tokens", answer["cached"], "events:request/cached"),
            drafted,
        )
        return ParsedTrial(found, ids, "text", "length")

    def parse_session(self, cell, capture):
        return ()

    def conditions(self, cell, capture):
        return ()

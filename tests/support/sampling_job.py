"""A matrix above temperature 0 on a fake engine that samples: one baseline, an exact drafter and a lenient one."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

from scripted_adapter import ScriptedAdapter
from scripted_job import SETTINGS

from orchestrator.exactness.distribution import Preset
from orchestrator.matrix.types import Block, CheckSettings, Expansion, HostSettings, Matrix
from orchestrator.runner.execute import Job
from orchestrator.runner.survey import Survey, survey_cells, survey_engines
from orchestrator.schema.adapter import Claim, Launch, LineReady, Rule, WorkerStep
from orchestrator.schema.cell import (
    Cell,
    CheckCell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
)
from orchestrator.schema.judged import Judged

SCRIPT = Path(__file__).resolve().parent.parent / "fake_engines" / "sampling_worker.py"
SMALL = {"screen": Preset("screen", 400, 1, 0.5)}
LARGER = {"screen": Preset("screen", 600, 1, 0.5)}
"""The sizes of these tests: a coarse control, for which so few generations are enough."""
GOOD, BAD = "fake/m/good/t1/w~check", "fake/m/bad/t1/w~check"


class SamplingAdapter(ScriptedAdapter):
    """``rules`` maps a method name to an acceptance rule, ``crash_at`` to the request at which its engine dies.

    ``sharp_launch`` is the number of a launch, from 1, whose engine samples at another temperature than asked.
    """

    def __init__(self):
        super().__init__()
        self.rules = {"none": "none", "good": "sample_match", "bad": "greedy_accept"}
        self.crash_at = {}
        self.sharp_launch = 0

    def exactness(self, cell, identity):
        rule = Rule.NONE if cell.method.kind is MethodKind.NONE else Rule.SAMPLE_MATCH
        return Claim(rule, True, "the test")

    def launch(self, cell, context):
        self.launched.append(cell.method.name)
        config = {
            "rule": self.rules[cell.method.name],
            "sharp": len(self.launched) == self.sharp_launch,
            "crash_at": self.crash_at.get(cell.method.name, -1),
        }
        files = {"config.json": json.dumps(config)}
        return Launch((sys.executable, str(SCRIPT), "config.json"), {}, LineReady(), files)

    def trial_steps(self, cell, trial):
        message = {
            "trial": trial.index,
            "prompt": trial.prompt,
            "max_tokens": cell.workload.max_tokens,
            "temperature": cell.sampling.temperature,
            "seed": trial.seed,
        }
        return (WorkerStep("request", message),)


class TellingAdapter(SamplingAdapter):
    """Its engine tells judged places; ``asked`` lists the cells that were asked, ``unjudged`` is why not to ask."""

    def __init__(self):
        super().__init__()
        self.unjudged = ""
        self.asked = []

    def why_unjudged(self, cell):
        return self.unjudged

    def judged_steps(self, cell, trial):
        self.asked.append(cell.method.name)
        (step,) = self.trial_steps(cell, trial)
        return (dataclasses.replace(step, message={**step.message, "judge": True}),)

    def parse_judged(self, cell, capture):
        return tuple(Judged(*row) for row in self._answer(capture)["judged"])


def make_sampling_job(adapter, folder: Path, selected=(GOOD, BAD), *, again=False) -> Job:
    model_file = folder / "model.bin"
    model_file.write_bytes(b"weights")
    (folder / "prompts.txt").write_text(
        "The first of two prompts\nAnd here is the other one of them\n", encoding="utf-8"
    )
    engine = EngineConfig("fake", "scripted")
    base = Cell(
        engine,
        ModelConfig("m", str(model_file), drafts={"d": str(model_file)}),
        Method("none", MethodKind.NONE),
        Sampling("t1", 1.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0),
        Workload("w", str(folder / "prompts.txt"), 12, EosPolicy.MASK),
    )
    cells = tuple(dataclasses.replace(base, method=Method(name, MethodKind.DRAFT, 3, "d")) for name in ("good", "bad"))
    checks = tuple(CheckCell(cell, base, "screen") for cell in cells)
    expansion = Expansion((Block(base.block_id, base, cells, None),), (), (), checks)
    adapters = {"scripted": adapter}
    engines = survey_engines([engine], adapters, folder)
    matrix = Matrix(
        name="sampling",
        path=folder / "matrix.yaml",
        text="version: 1",
        engines={"fake": engine},
        models={},
        methods={},
        sampling={},
        workloads={},
        run=SETTINGS,
        host=HostSettings((), "everyday"),
        axes=None,
        exclude=(),
        include=(),
        checks=CheckSettings(True, distribution="screen"),
        language="en",
    )
    fates = survey_cells(expansion.cells, engines, adapters, SETTINGS, folder)
    return Job(matrix, expansion, Survey(engines, fates), adapters, frozenset(selected), again)

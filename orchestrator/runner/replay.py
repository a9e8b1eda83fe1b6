"""One untimed session of a block's baseline that ranks given texts: near-ties, jitter and cross-scoring.

Nothing here is a measurement, so nothing is stamped for comparison or pooled; each text that was ranked is in the
journal as soon as it is, and an interrupted replay goes on with those that are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.clock import now_s, utc_now
from orchestrator.exactness.replays import Want, wanted
from orchestrator.process.errors import LaunchError
from orchestrator.process.ports import free_port
from orchestrator.process.spawn import EngineProcess
from orchestrator.runner.channel import Channel
from orchestrator.runner.events import Said
from orchestrator.runner.framing import frame_of
from orchestrator.runner.gates import judge_exchange
from orchestrator.schema.adapter import HttpStep, LaunchContext, LogStep, WorkerStep
from orchestrator.schema.capture import READY_TRIAL, TrialCapture, step_lines
from orchestrator.schema.errors import CaptureError, EngineRefusal
from orchestrator.schema.record import ReplayRecord
from orchestrator.schema.replay import Purpose, Ranked, Replayer, ReplaySpec
from orchestrator.schema.status import Status
from orchestrator.store.index import Index
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.matrix.types import Block
    from orchestrator.runner.events import Listener
    from orchestrator.runner.execute import Job
    from orchestrator.schema.adapter import Adapter, Step
    from orchestrator.schema.cell import Cell
    from orchestrator.store.directory import RunDirectory


def replay_blocks(job: Job, directory: RunDirectory, listen: Listener) -> None:
    """Makes every replay that the run's answers call for and that is not in the journal yet."""
    checks = job.matrix.checks
    for block in job.expansion.blocks:
        adapter = job.adapters[block.baseline.engine.adapter]
        fate = job.survey.fates[block.baseline.id]
        if not isinstance(adapter, Replayer) or fate.refusal is not None:
            continue
        index = Index.build(directory.records())
        wants = wanted(
            index,
            block.id,
            adjudicate=checks.greedy_identity,
            scoring=checks.cross_scoring,
            scoring_width=adapter.scoring_width,
            cells=frozenset(cell.id for cell in block.cells if cell.id in job.selected),
        )
        current = index.cells.get(block.baseline.id)
        if not wants or current is None or current.fingerprint != fate.fingerprint:
            continue
        listen(Said(_announced(block, wants)))
        for attempt in sorted({want.attempt for want in wants}):
            mine = [want for want in wants if want.attempt == attempt]
            folder = directory.replay_folder(block.baseline.id, fate.fingerprint, attempt)
            session = _Session(job, directory, block.baseline, adapter, fate.fingerprint, folder)
            session.run(mine)


def _announced(block: Block, wants: Sequence[Want]) -> str:
    counts = {purpose: sum(want.purpose is purpose for want in wants) for purpose in Purpose}
    said = [
        f"{counts[Purpose.DIVERGENCE]} differences" if counts[Purpose.DIVERGENCE] else "",
        f"{counts[Purpose.SCORING]} texts to score" if counts[Purpose.SCORING] else "",
    ]
    tokens = sum(len(want.places) for want in wants)
    return f"{block.id}: replay on the baseline, untimed: {', '.join(filter(None, said))}; {tokens} places"


class _Stopped(Exception):  # noqa: N818  (the session is over; the reason is a record)
    def __init__(self, status: Status, reason: str) -> None:
        self.status, self.reason = status, reason
        super().__init__(reason)


@dataclass(slots=True)
class _Session:
    """One baseline process and the texts it ranks."""

    job: Job
    directory: RunDirectory
    cell: Cell
    adapter: Adapter
    fingerprint: str
    folder: Path

    def run(self, wants: Sequence[Want]) -> None:
        """Ranks the texts; when the engine does not come up or dies, each that is left says so."""
        left = list(wants)
        try:
            self._start(left)
        except LaunchError as err:
            self._give_up(left, Status.TIMEOUT if err.timed_out else Status.FAILED, err.what)
        except EngineRefusal as err:
            self._give_up(left, Status(err.status), err.reason)
        except _Stopped as err:
            self._give_up(left, err.status, err.reason)

    def _start(self, left: list[Want]) -> None:
        port = free_port()
        launch = self.adapter.launch(self.cell, LaunchContext(port, self.folder.resolve()))
        with EngineProcess.start(launch, self.folder) as process:
            try:
                channel = Channel(process, launch, port, self.job.matrix.run)
                channel.wait_ready()
                ready = self._exchange(channel, READY_TRIAL, self.adapter.ready_steps(self.cell))
                bad = judge_exchange(ready)
                if bad.status is not Status.OK:
                    raise _Stopped(bad.status, bad.reason)
                refusal = self.adapter.check_ready(self.cell, ready, process.stdout, process.stderr)
                if refusal is not None:
                    raise _Stopped(refusal.status, refusal.reason)
                number = 0
                while left:
                    self._rank(channel, number, left[0])
                    left.pop(0)
                    number += 1
                    if process.poll() is not None:
                        raise _Stopped(Status.FAILED, f"the baseline ended during a replay ({process.exit_text})")
            finally:
                process.stop()

    def _rank(self, channel: Channel, number: int, want: Want) -> None:
        started = now_s()
        ranked, status, reason = self._ranked(channel, number, want)
        self._write(want, ranked, status, reason, now_s() - started)

    def _ranked(self, channel: Channel, number: int, want: Want) -> tuple[tuple[Ranked, ...], Status, str]:
        if not isinstance(self.adapter, Replayer):
            raise TypeError(f"{self.adapter.name} offers no replays")
        prompt = next((p for p in load_prompts(*self.cell.workload.source) if p.id == want.prompt_id), None)
        if prompt is None:
            return (), Status.FAILED, f"the workload has no prompt {want.prompt_id} any more"
        text = frame_of(self.cell, self.adapter)(prompt).text
        spec = ReplaySpec(number, text, want.ids, want.places, want.width, want.full)
        try:
            steps = self.adapter.replay_steps(self.cell, spec)
        except ValueError as err:
            return (), Status.UNSUPPORTED, str(err)
        capture = self._exchange(channel, number, steps)
        bad = judge_exchange(capture)
        if bad.status is not Status.OK:
            return (), bad.status, bad.reason
        try:
            return self.adapter.parse_replay(self.cell, spec, capture), Status.OK, ""
        except CaptureError as err:
            return (), Status.UNPARSED, str(err)

    def _exchange(self, channel: Channel, number: int, steps: Sequence[Step]) -> TrialCapture:
        made = {}
        with (self.folder / "events.jsonl").open("a", encoding="utf-8") as file:
            for step in steps:
                if isinstance(step, LogStep):
                    continue  # nothing of a replay is read from a log
                if not isinstance(step, HttpStep | WorkerStep):
                    raise TypeError(f"{type(step).__name__} is no step of a replay")
                made[step.name] = channel.make(step)
                file.writelines(step_lines(number, made[step.name]))
                if made[step.name].error is not None:
                    break
        return TrialCapture(number, made, "", complete=True)

    def _give_up(self, left: Sequence[Want], status: Status, reason: str) -> None:
        for want in left:
            self._write(want, (), status, reason, 0.0)

    def _write(self, want: Want, ranked: tuple[Ranked, ...], status: Status, reason: str, seconds: float) -> None:
        self.directory.append(
            ReplayRecord(
                want.block,
                want.attempt,
                self.cell.id,
                self.fingerprint,
                want.purpose,
                want.about,
                want.prompt_id,
                want.ids,
                want.places,
                want.width,
                want.full,
                ranked,
                status,
                reason,
                seconds,
                self.folder.relative_to(self.directory.path).as_posix(),
                utc_now(),
            )
        )

"""One arm of a distribution check: an engine process that makes many short generations, nothing of them timed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.exactness.draft_directed import NOT_TOLD
from orchestrator.process.ports import free_port
from orchestrator.process.spawn import EngineProcess
from orchestrator.runner.channel import Channel
from orchestrator.runner.gates import judge_exchange, judge_trial
from orchestrator.schema.adapter import (
    CommandStep,
    EachStep,
    HttpStep,
    JudgesDrafts,
    LaunchContext,
    LogStep,
    TrialSpec,
    WorkerStep,
)
from orchestrator.schema.capture import READY_TRIAL, TrialCapture, log_line, step_lines
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.judged import flattened
from orchestrator.schema.record import Phase
from orchestrator.schema.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.matrix.types import RunSettings
    from orchestrator.schema.adapter import Adapter, Step
    from orchestrator.schema.cell import Cell


class ArmStopped(Exception):  # noqa: N818  (the arm is over; the reason becomes a record)
    """The arm cannot go on, with the status that the check gets."""

    def __init__(self, status: Status, reason: str, remedy: str = "") -> None:
        self.status, self.reason, self.remedy = status, reason, remedy
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Generated:
    """One batch: token ids by generation, and what tells of speculation (see ``CheckRecord``)."""

    tokens: tuple[tuple[int, ...], ...]
    first_burst: int
    in_bursts: int
    drafted: int | None
    judged: tuple[tuple[float, ...], ...] = ()
    unjudged: str = ""


def seed_of(base: int, attempt: int, arm: str, context: str, index: int) -> int:
    """The seed of one generation: another one for each arm, context and attempt."""
    digest = hashlib.sha256(f"check/{base}/{attempt}/{arm}/{context}/{index}".encode()).digest()
    return int.from_bytes(digest[:4], "big") & 0x7FFFFFFF


class Arm:
    """A running engine.

    The first generation of a batch is observed and written down in full, the others are asked for their tokens alone:
    thousands of them would be gigabytes of counters and logs that nobody reads.
    """

    def __init__(self, cell: Cell, adapter: Adapter, process: EngineProcess, channel: Channel, folder: Path) -> None:
        self.cell, self.adapter = cell, adapter
        self._process, self._channel, self._folder = process, channel, folder
        self._number = 0

    def check_ready(self) -> None:
        """Refuses an engine that is not the cell's.

        Raises:
            ArmStopped: with the status and the reason.
        """
        ready = self._exchange(READY_TRIAL, self.adapter.ready_steps(self.cell), whole=True)
        bad = judge_exchange(ready)
        if bad.status is not Status.OK:
            raise ArmStopped(bad.status, bad.reason)
        refusal = self.adapter.check_ready(self.cell, ready, self._process.stdout, self._process.stderr)
        if refusal is not None:
            raise ArmStopped(refusal.status, refusal.reason, refusal.remedy)

    def batch(self, context: str, text: str, seeds: Sequence[int], *, judge: bool = False) -> Generated:
        """One generation per seed; with ``judge`` also what the engine thought of its judged places, where it tells.

        Raises:
            ArmStopped: a request failed, was answered from a cache, or cannot be read; nothing of the batch counts.
        """
        teller, unjudged = self._teller() if judge else (None, "")
        judged: list[tuple[float, ...]] = []
        tokens: list[tuple[int, ...]] = []
        first_burst = in_bursts = 0
        drafted: int | None = None
        for place, seed in enumerate(seeds):
            spec = TrialSpec(self._number, Phase.MEASURED.value, context, text, seed)
            ask = self.adapter.trial_steps if teller is None else teller.judged_steps
            capture = self._exchange(spec.index, ask(self.cell, spec), whole=place == 0)
            self._number += 1
            bad = judge_exchange(capture)
            if bad.status is not Status.OK:
                raise ArmStopped(bad.status, f"generation {place} after {context}: {bad.reason}")
            if place == 0:
                drafted = self._drafted(capture)
            arrivals = self.adapter.arrivals(self.cell, capture)
            if arrivals is None or not arrivals.tokens:
                raise ArmStopped(Status.UNPARSED, f"generation {place} after {context}: no token ids in the answer")
            tokens.append(tuple(token for arrival in arrivals.tokens for token in arrival.ids))
            keys = [arrival.burst for arrival in arrivals.tokens for _ in arrival.ids]
            first_burst = max(first_burst, keys.count(keys[0]))
            in_bursts += len(keys) - len(set(keys))
            if teller is not None:
                judged.append(self._judged(teller, capture))
        return Generated(tuple(tokens), first_burst, in_bursts, drafted, tuple(judged), unjudged)

    def _teller(self) -> tuple[JudgesDrafts | None, str]:
        """The adapter, where it tells judged places of this cell; else why not."""
        if not isinstance(self.adapter, JudgesDrafts):
            return None, NOT_TOLD
        why = self.adapter.why_unjudged(self.cell)
        return (None, why) if why else (self.adapter, "")

    def _judged(self, teller: JudgesDrafts, capture: TrialCapture) -> tuple[float, ...]:
        try:
            return flattened(teller.parse_judged(self.cell, capture))
        except CaptureError as err:
            raise ArmStopped(Status.UNPARSED, str(err)) from err

    def _drafted(self, capture: TrialCapture) -> int | None:
        try:
            parsed = self.adapter.parse_trial(self.cell, capture)
        except CaptureError as err:
            raise ArmStopped(Status.UNPARSED, str(err)) from err
        judged = judge_trial(self.cell, parsed.observations)
        if judged.status is not Status.OK:
            raise ArmStopped(judged.status, judged.reason)
        values = {item.metric: item.value for item in parsed.observations}
        drafted = values.get("drafted_tokens")
        return drafted if isinstance(drafted, int) else None

    def _exchange(self, number: int, steps: Sequence[Step], *, whole: bool) -> TrialCapture:
        log_from = self._process.stderr_size()
        made = {}
        for step in steps:
            if isinstance(step, LogStep):
                if whole:
                    self._process.wait_for_log(step.pattern, log_from, step.timeout_s)
                continue
            if not whole and not _asks(step):
                continue
            made[step.name] = self._channel.make(step)
            if made[step.name].error is not None:
                break
        if not whole:
            return TrialCapture(number, made, "", complete=True)
        log_to = self._process.stderr_size()
        with (self._folder / "events.jsonl").open("a", encoding="utf-8") as file:
            for one in made.values():
                file.writelines(step_lines(number, one))
            file.write(log_line(number, log_from, log_to))
        with self._process.stderr_path.open("rb") as stderr:
            stderr.seek(log_from)
            log = stderr.read(log_to - log_from).decode("utf-8", "replace")
        return TrialCapture(number, made, log, complete=True)


def _asks(step: HttpStep | WorkerStep | CommandStep) -> bool:
    """Whether the step is the question itself; the others only read what the engine counted meanwhile."""
    return not isinstance(step, HttpStep) or step.method == "POST"


@contextmanager
def running_arm(cell: Cell, adapter: Adapter, folder: Path, settings: RunSettings) -> Iterator[Arm]:
    """The arm's engine, ready and checked; stopped at the end whatever happens.

    Raises:
        ArmStopped: the engine that came up is not the cell's.
        LaunchError: it did not come up.
        EngineRefusal: it refused.
    """
    port = free_port()
    launch = adapter.launch(cell, LaunchContext(port, folder.resolve()))
    if isinstance(launch.ready, EachStep):
        reason = "a distribution check makes thousands of answers, and this engine path loads the model for each"
        raise ArmStopped(Status.UNSUPPORTED, reason, "check this engine through its server, where it has one")
    with EngineProcess.start(launch, folder) as process:
        try:
            channel = Channel(process, launch, port, settings)
            channel.wait_ready()
            arm = Arm(cell, adapter, process, channel, folder)
            arm.check_ready()
            yield arm
        finally:
            process.stop()

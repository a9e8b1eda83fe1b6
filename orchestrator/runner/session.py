"""One session: start an engine, make its trials, stop it, and say what happened, as plain data.

This is the seam where other machines can be attached: a plan goes in, records come out, and only the caller
writes the journal.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.clock import now_s, utc_now
from orchestrator.host import pressure
from orchestrator.host.energy import EnergySampler
from orchestrator.host.memory import MemorySampler
from orchestrator.host.state import state
from orchestrator.process.errors import LaunchError
from orchestrator.process.ports import free_port
from orchestrator.process.spawn import STDERR, EngineProcess
from orchestrator.runner.channel import LOG_TAIL_LINES, Channel
from orchestrator.runner.commands import Commands
from orchestrator.runner.events import TrialDone
from orchestrator.runner.exchange import exchange
from orchestrator.runner.framing import framed_conditions
from orchestrator.runner.gates import (
    GOOD,
    Judgement,
    engagement,
    judge_exchange,
    judge_memory,
    judge_session,
    judge_trial,
)
from orchestrator.runner.grading import Graded, grade_answer, storable
from orchestrator.runner.observe import ObservedTrial, observe_trial
from orchestrator.runner.prompt_ids import common_start, ids_condition
from orchestrator.runner.warmup import settled
from orchestrator.schema.adapter import (
    EachStep,
    LaunchContext,
    TellsPromptIds,
    exit_refusal,
    keeps_state,
    session_conditions,
)
from orchestrator.schema.capture import (
    PROMPTS_TRIAL,
    READY_TRIAL,
    TrialCapture,
    read_session,
)
from orchestrator.schema.errors import CaptureError, EngineRefusal
from orchestrator.schema.observation import Observation, observed
from orchestrator.schema.record import Engagement, Phase, Place, SessionRecord, TrialRecord
from orchestrator.schema.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orchestrator.matrix.types import RunSettings
    from orchestrator.runner.events import Listener
    from orchestrator.schema.adapter import Adapter, Condition, Launch, Step, TrialSpec
    from orchestrator.schema.cell import Cell
    from orchestrator.workloads.load import Prompt


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """One session to run. ``folder`` exists, is empty and belongs to it; ``relative`` is its name in the journal."""

    cell: Cell
    place: Place
    trials: tuple[tuple[TrialSpec, Prompt], ...]
    folder: Path
    relative: str
    settings: RunSettings


@dataclass(frozen=True, slots=True)
class SessionResult:
    """The trial records in order, then the session's own."""

    trials: tuple[TrialRecord, ...]
    session: SessionRecord
    duration_s: float


def run_session(plan: SessionPlan, adapter: Adapter, listen: Listener) -> SessionResult:
    """Runs one session to its end; whatever goes wrong with the engine is a status, not an exception.

    ``KeyboardInterrupt`` passes through after the engine has been stopped.
    """
    return _Session(plan, adapter, listen).run()


class _Session:
    """The state of one running session."""

    def __init__(self, plan: SessionPlan, adapter: Adapter, listen: Listener) -> None:
        self.plan, self.adapter, self.listen = plan, adapter, listen
        self.cell, self.settings = plan.cell, plan.settings
        self.records: list[TrialRecord] = []
        self.observations: list[Observation] = []
        self.conditions: tuple[Condition, ...] = ()
        self.prompt_ids: dict[str, tuple[int, ...]] = {}
        self.energy = EnergySampler()
        self.remedy = ""
        self.exit_code: int | None = None
        self.tail: tuple[str, ...] = ()
        self.events = plan.folder / "events.jsonl"

    def run(self) -> SessionResult:
        started, started_utc, before = now_s(), utc_now(), state()
        verdict = self._measure()
        engaged = engagement(self.adapter, self.cell, self.records)
        if verdict.status is Status.OK:
            verdict = judge_session(self.cell, self.records, engaged, self.observations)
        elif verdict.status is Status.NOT_ENGAGED:
            engaged = Engagement.NOT_ENGAGED
        session = SessionRecord(
            self.plan.place,
            verdict.status,
            verdict.reason,
            self.remedy,
            engaged,
            tuple(self.observations),
            self.conditions,
            self.exit_code,
            self.plan.relative,
            self.tail,
            started_utc,
            utc_now(),
            host={"start": before, "end": state()},
        )
        return SessionResult(tuple(self.records), session, now_s() - started)

    def _measure(self) -> Judgement:
        port = free_port()
        launch = self.adapter.launch(self.cell, LaunchContext(port, self.plan.folder.resolve()))
        try:
            verdict = self._commands(launch) if isinstance(launch.ready, EachStep) else self._process(launch, port)
        except LaunchError as err:
            self.remedy = err.next_step
            return Judgement(Status.TIMEOUT if err.timed_out else Status.FAILED, err.what)
        except EngineRefusal as err:
            log = self.plan.folder / STDERR
            said = log.read_bytes().decode("utf-8", "replace") if log.exists() else ""
            return self._explained(Judgement(Status(err.status), err.reason), said)
        self._parse_session()
        return verdict

    def _process(self, launch: Launch, port: int) -> Judgement:
        with EngineProcess.start(launch, self.plan.folder) as process:
            try:
                verdict = self._converse(process, launch, port)
            finally:
                self.tail = process.log_tail(LOG_TAIL_LINES)
                self.exit_code = process.stop().exit_code
            self.tail = process.log_tail(LOG_TAIL_LINES)
        return verdict

    def _commands(self, launch: Launch) -> Judgement:
        """A session without a process of its own: each exchange starts the command and sees it to its end."""
        commands = Commands(launch, self.plan.folder, self.settings)
        self.energy.start()
        try:
            verdict = self._check_ready(commands, commands)
            if verdict.status is Status.OK:
                verdict = self._trials(commands, commands, instrumented=False)
        finally:
            self.energy.stop()
            self.observations += commands.memory()
            self.tail, self.exit_code = commands.log_tail(LOG_TAIL_LINES), commands.exit_code
        if verdict.status is Status.OK:
            self._trials(commands, commands, instrumented=True)
        return verdict

    def _explained(self, verdict: Judgement, stderr: str) -> Judgement:
        """A failure in the words of who knows the engine, with what to do, where its last output tells."""
        refusal = exit_refusal(self.adapter, self.cell, stderr)
        if refusal is None:
            return verdict
        self.remedy = refusal.remedy
        return Judgement(refusal.status, refusal.reason)

    def _converse(self, process: EngineProcess, launch: Launch, port: int) -> Judgement:
        channel = Channel(process, launch, port, self.settings)
        channel.wait_ready()
        self.observations.append(observed("load_time", now_s() - process.started_s, "process start to readiness"))
        sampler = MemorySampler(process.pid, self.plan.folder / "memory.jsonl")
        sampler.start()
        self.energy.start()
        try:
            verdict = self._check_ready(channel, process)
            if verdict.status is Status.OK:
                self._ask_ids(channel, process)
                verdict = self._trials(channel, process, instrumented=False)
            sampler.final_read()
        finally:
            self.energy.stop()
            self.observations += sampler.stop().observations
        if verdict.status is Status.OK:
            # After the memory is read, and without a say in the verdict: what is measured is measured by now.
            self._trials(channel, process, instrumented=True)
        return verdict

    def _check_ready(self, channel: Channel | Commands, process: EngineProcess | Commands) -> Judgement:
        capture = self._exchange(channel, process, READY_TRIAL, self.adapter.ready_steps(self.cell))
        verdict = judge_exchange(capture)
        if verdict.status is not Status.OK:
            return self._explained(verdict, capture.log)
        refusal = self.adapter.check_ready(self.cell, capture, process.stdout, process.stderr)
        if refusal is None:
            return GOOD
        self.remedy = refusal.remedy
        return Judgement(refusal.status, refusal.reason)

    def _ask_ids(self, channel: Channel, process: EngineProcess) -> None:
        """Asks for the measured prompts' token ids; an engine that does not tell them is measured all the same."""
        if not isinstance(self.adapter, TellsPromptIds):
            return
        texts = {one.prompt_id: one.prompt for one, _ in self.plan.trials if one.phase == Phase.MEASURED}
        steps = self.adapter.prompt_id_steps(tuple(texts.values()))
        found = self.adapter.parse_prompt_ids(self._exchange(channel, process, PROMPTS_TRIAL, steps))
        if found is not None and len(found) == len(texts):
            self.prompt_ids = dict(zip(texts, found, strict=True))

    def _trials(
        self, channel: Channel | Commands, process: EngineProcess | Commands, *, instrumented: bool
    ) -> Judgement:
        for spec, prompt in self.plan.trials:
            if (spec.phase == Phase.PHASES) != instrumented or (spec.phase == Phase.WARMUP and self._warm()):
                continue
            started_utc, before = utc_now(), pressure.moment()
            capture = self._exchange(channel, process, spec.index, self.adapter.trial_steps(self.cell, spec))
            memory = pressure.between(before, pressure.moment())
            record = self._record(spec, prompt, capture, started_utc, memory)
            self.records.append(record)
            wait = next((o.value for o in record.observations if o.metric == "e2e_latency"), None)
            line = process.log_tail(1)
            self.listen(
                TrialDone(
                    self.cell.id,
                    spec.index,
                    spec.phase,
                    record.status,
                    float(wait) if isinstance(wait, int | float) else None,
                    line[0] if line else "",
                )
            )
            if record.status in (Status.FAILED, Status.TIMEOUT, Status.UNSUPPORTED) or process.poll() is not None:
                return self._ended_early(process, record)
        return GOOD

    def _warm(self) -> bool:
        """A drafter that remembers requests gets every warm-up: a number of them that varies would vary its drafts."""
        return settled(self.records) and not keeps_state(self.adapter, self.cell)

    def _ended_early(self, process: EngineProcess | Commands, record: TrialRecord) -> Judgement:
        reason = f"trial {record.trial} ({record.phase.value}): {record.reason}"
        if process.poll() is None:
            return Judgement(record.status, reason)
        status = Status.FAILED if record.status is Status.OK else record.status
        return Judgement(status, f"{reason or 'the engine ended'}; the engine process ended ({process.exit_text})")

    def _record(
        self,
        spec: TrialSpec,
        prompt: Prompt,
        capture: TrialCapture,
        started_utc: str,
        memory: tuple[Observation, ...],
    ) -> TrialRecord:
        seen, verdict = ObservedTrial((), (), "", "error", (), ()), judge_exchange(capture)
        graded = Graded(None, "", ())
        if verdict.status is not Status.OK:
            verdict = self._explained(verdict, capture.log)
        else:
            try:
                seen = observe_trial(self.adapter, self.cell, capture)
            except CaptureError as err:
                verdict = Judgement(Status.UNPARSED, str(err))
            else:
                verdict = judge_trial(self.cell, seen.observations, spec.phase, common_start(self.prompt_ids))
                graded = grade_answer(prompt, seen.text, seen.finish_reason, seen.token_ids)
                memory = (*memory, self._energy(capture))
                if verdict.status is Status.OK:
                    wait = next((o.value for o in seen.observations if o.metric == "e2e_latency"), None)
                    verdict = judge_memory(memory, float(wait) if isinstance(wait, int | float) else None)
                if spec.phase != Phase.PHASES:
                    self.conditions = self.adapter.conditions(self.cell, capture) or self.conditions
        return TrialRecord(
            self.plan.place,
            spec.index,
            Phase(spec.phase),
            prompt.id,
            prompt.category,
            prompt.language,
            spec.seed,
            verdict.status,
            verdict.reason,
            (*seen.observations, *graded.observations, *memory),
            seen.token_ids,
            storable(seen.text),
            seen.finish_reason,
            seen.curve,
            seen.problems,
            started_utc,
            grade=graded.grade,
            degenerate=graded.degenerate,
        )

    def _energy(self, capture: TrialCapture) -> Observation:
        """Energy from the first burst to the last, by the clock that stamped them."""
        came = self.adapter.arrivals(self.cell, capture)
        tokens = came.tokens if came is not None else ()
        return self.energy.decode(tokens[0].t_s, tokens[-1].t_s) if tokens else self.energy.decode(0.0, 0.0)

    def _exchange(
        self, channel: Channel | Commands, process: EngineProcess | Commands, trial: int, steps: Sequence[Step]
    ) -> TrialCapture:
        return exchange(channel, process, trial, steps, self.events)

    def _parse_session(self) -> None:
        """Adds what the engine says only once per process; a truncated log then simply says less."""
        if not self.events.exists():
            return
        stdout = (self.plan.folder / "stdout.log").read_bytes().decode("utf-8", "replace")
        stderr = (self.plan.folder / "stderr.log").read_bytes()
        capture = read_session(self.events.read_text(encoding="utf-8"), stdout, stderr)
        self.observations += self.adapter.parse_session(self.cell, capture)
        if self.conditions:
            told = session_conditions(self.adapter, self.cell, capture)
            ids = ids_condition(self.prompt_ids, self.records)
            self.conditions = (*framed_conditions(self.conditions, self.cell, self.adapter), ids, *told)

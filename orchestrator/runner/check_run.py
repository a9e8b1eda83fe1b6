"""Runs distribution checks: chooses contexts by a pilot, generates arm by arm, stops where the looks say so.

A batch is in the journal as soon as it is made, so an interrupted check goes on with the batches that are missing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.clock import now_s, utc_now
from orchestrator.exactness.checking import TOKENS, Need, Outcome, judge_check
from orchestrator.exactness.contexts import PILOT, appraise, candidates, choose
from orchestrator.exactness.distribution import CERTIFY, SCREEN
from orchestrator.exactness.looks import BATCH
from orchestrator.process.errors import LaunchError
from orchestrator.runner.arm import ArmStopped, running_arm, seed_of
from orchestrator.runner.check_plan import PlannedCheck, plan_checks, prints_of
from orchestrator.runner.events import BatchDone, Said
from orchestrator.runner.framing import frame_of
from orchestrator.schema.cell import CHECK_SUFFIX
from orchestrator.schema.errors import EngineRefusal
from orchestrator.schema.record import CheckArm, CheckEndRecord, CheckPlanRecord, CheckRecord
from orchestrator.schema.result import Verdict
from orchestrator.schema.status import Status
from orchestrator.schema.units import seconds
from orchestrator.store.check_states import SPECULATIVE_ARMS, CheckLedger, CheckState, experiments_before
from orchestrator.store.index import Index
from orchestrator.workloads.load import load_prompts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from orchestrator.exactness.distribution import Preset
    from orchestrator.runner.arm import Arm
    from orchestrator.runner.events import Listener
    from orchestrator.runner.execute import Job
    from orchestrator.schema.adapter import Adapter
    from orchestrator.schema.cell import Cell, CheckCell
    from orchestrator.store.directory import RunDirectory

PRESETS = {one.name: one for one in (SCREEN, CERTIFY)}


def run_checks(job: Job, directory: RunDirectory, listen: Listener, presets: Mapping[str, Preset] = PRESETS) -> None:
    """Makes the selected checks that are not decided yet, block by block.

    Args:
        job: what to run.
        directory: the run, with its lock held.
        listen: who watches.
        presets: sizes by name; smaller ones are for tests, and what was compared is in each verdict's words.
    """
    if not job.expansion.checks:
        return
    for planned in planned_checks(job, directory):
        _Block(job, directory, planned, listen, presets[planned.preset]).run()


def planned_checks(job: Job, directory: RunDirectory) -> tuple[PlannedCheck, ...]:
    """What :func:`run_checks` would make."""
    index = Index.build(directory.records())
    ledger = _ledger(directory)
    blocks = {check.block_id for check in job.expansion.checks}
    return plan_checks(
        job.expansion.checks,
        job.survey.fates,
        index.checks,
        {block: ledger.last_attempt(block) for block in blocks},
        selected=job.selected,
        again=job.again,
    )


def _ledger(directory: RunDirectory) -> CheckLedger:
    records = directory.records()
    return CheckLedger.read(one for one in records if isinstance(one, CheckPlanRecord | CheckRecord | CheckEndRecord))


@dataclass(slots=True)
class _Block:
    """One attempt of a block's checks."""

    job: Job
    directory: RunDirectory
    planned: PlannedCheck
    listen: Listener
    preset: Preset

    def run(self) -> None:
        """Shared arms first, then each check; what goes wrong with an arm ends the checks that need it."""
        planned, open_checks = self.planned, list(self.planned.checks)
        try:
            plan = self._plan()
            self._fill(planned.baseline, CheckArm.OFF, plan)
            self._fill(planned.baseline, CheckArm.OFF_AGAIN, plan)
        except (ArmStopped, LaunchError, EngineRefusal) as err:
            for check in open_checks:
                self._end(check, *_trouble(err))
            return
        waiting = []
        for check in open_checks:
            try:
                outcome = self._speculate(check, plan)
            except (ArmStopped, LaunchError, EngineRefusal) as err:
                self._end(check, *_trouble(err))
                continue
            if outcome.need is None:
                self._decide(check)
            else:
                waiting.append(check)
        if waiting:
            self._finish(waiting, plan)

    def _finish(self, waiting: list[CheckCell], plan: CheckPlanRecord) -> None:
        try:
            self._fill(self.planned.baseline, CheckArm.CONTROL, plan)
        except (ArmStopped, LaunchError, EngineRefusal) as err:
            for check in waiting:
                self._end(check, *_trouble(err))
            return
        for check in waiting:
            self._decide(check)

    def _plan(self) -> CheckPlanRecord:
        """The attempt's contexts, as recorded or chosen now."""
        planned = self.planned
        key = (planned.block, planned.base, planned.attempt)
        known = _ledger(self.directory).plans.get(key)
        if known is not None:
            return known
        preset = self.preset
        frame = frame_of(planned.baseline, self._adapter(planned.baseline))
        prompts = [frame(one) for one in load_prompts(*planned.baseline.workload.source)]
        tried = candidates([(prompt.id, prompt.text) for prompt in prompts])
        texts = {context: text for context, (_, text) in tried.items()}
        self.listen(Said(f"{planned.block}: check: {len(texts)} candidate contexts, {PILOT} generations each"))
        self._generate(planned.baseline, planned.base, CheckArm.PILOT, texts, PILOT)
        made = _ledger(self.directory).arms(planned.baseline.id, planned.base, planned.attempt)[CheckArm.PILOT]
        found = [
            appraise(
                context,
                tried[context][0],
                [one for batch in batches for one in batch.tokens],
                factor=preset.control_factor,
                skip=1,
            )
            for context, batches in made.items()
        ]
        choice = choose(found, preset.contexts)
        why = dict(choice.why) | ({"": choice.warning} if choice.warning else {})
        record = CheckPlanRecord(
            planned.block,
            planned.base,
            planned.attempt,
            planned.preset,
            {context: texts[context] for context in choice.chosen},
            preset.per_arm,
            TOKENS,
            why,
            utc_now(),
        )
        self.directory.append(record)
        for context in choice.chosen:
            self.listen(Said(f"  context {context}: {choice.why[context]}"))
        if choice.warning:
            self.listen(Said(f"  {choice.warning}"))
        return record

    def _fill(self, cell: Cell, arm: CheckArm, plan: CheckPlanRecord) -> None:
        self._generate(cell, self.planned.base, arm, plan.contexts, plan.per_arm)

    def _speculate(self, check: CheckCell, plan: CheckPlanRecord) -> Outcome:
        """The check's own arms in one process, as far as the looks ask for them."""
        outcome, own = self._outcome(check), prints_of(check, self.job.survey.fates).own
        if outcome.need is None or not _speculative(outcome.need):
            return outcome
        folder = self._folder(check.cell, own, CheckArm.ON)
        cell = _short(check.cell)
        with running_arm(cell, self._adapter(cell), folder, self.job.matrix.run) as arm:
            while outcome.need is not None and _speculative(outcome.need):
                need = outcome.need
                self._batches(arm, check.cell, own, need.arm, plan.contexts, need.size, folder)
                outcome = self._outcome(check)
        return outcome

    def _generate(self, cell: Cell, print_: str, arm: CheckArm, texts: Mapping[str, str], size: int) -> None:
        """Makes what is missing of an arm without speculation, in one process."""
        done = _ledger(self.directory).arms(cell.id, print_, self.planned.attempt).get(arm, {})
        if all(sum(len(one.tokens) for one in done.get(context, ())) >= size for context in texts):
            return
        folder = self._folder(cell, print_, arm)
        factor = self.preset.control_factor if arm is CheckArm.CONTROL else 1.0
        short = _short(cell, factor)
        with running_arm(short, self._adapter(cell), folder, self.job.matrix.run) as running:
            self._batches(running, cell, print_, arm, texts, size, folder)

    def _batches(
        self, running: Arm, cell: Cell, print_: str, arm: CheckArm, texts: Mapping[str, str], size: int, folder: Path
    ) -> None:
        """Batches of every context in turn until each has ``size`` generations; none in the journal is repeated."""
        begun, made = now_s(), 0
        done = _ledger(self.directory).arms(cell.id, print_, self.planned.attempt).get(arm, {})
        wanted = sum(max(0, size - BATCH * len(done.get(context, ()))) for context in texts)
        for batch in range(-(-size // BATCH)):
            for context, text in texts.items():
                if batch < len(done.get(context, ())):
                    continue
                indices = range(batch * BATCH, min(size, (batch + 1) * BATCH))
                seeds = tuple(self._seed(cell, arm, context, index) for index in indices)
                started = utc_now()
                found = running.batch(context, text, seeds, judge=arm is CheckArm.ON)
                made += len(seeds)
                self.directory.append(
                    CheckRecord(
                        self.planned.block,
                        cell.id,
                        print_,
                        self.planned.attempt,
                        arm,
                        context,
                        batch,
                        seeds,
                        found.tokens,
                        running.cell.sampling.temperature,
                        found.first_burst,
                        found.in_bursts,
                        found.drafted,
                        folder.relative_to(self.directory.path).as_posix(),
                        started,
                        utc_now(),
                        judged=found.judged,
                        unjudged=found.unjudged,
                    )
                )
                self.listen(BatchDone(cell.id + CHECK_SUFFIX, arm.value, made, wanted, now_s() - begun))
        if made:
            took = seconds(now_s() - begun)
            self.listen(Said(f"  {cell.id}{CHECK_SUFFIX}: {arm.value}: {made} generations in {took}"))

    def _seed(self, cell: Cell, arm: CheckArm, context: str, index: int) -> int:
        """Arms are independent, but for the coupled one, which repeats the seeds of ``off``; cells have their own."""
        name = CheckArm.OFF.value if arm is CheckArm.COUPLED else arm.value
        name = f"{name}/{cell.id}" if arm is CheckArm.ON else name
        return seed_of(cell.sampling.seed, self.planned.attempt, name, context, index)

    def _outcome(self, check: CheckCell, *, with_earlier: bool = False) -> Outcome:
        """The check by what the journal holds now, whatever attempt the index would show for it.

        Earlier experiments say nothing of what is still needed, but have a say in the verdict.
        """
        ledger, prints = _ledger(self.directory), prints_of(check, self.job.survey.fates)
        attempt, planned = self.planned.attempt, self.planned
        state = CheckState(
            check.id,
            check.cell.id,
            check.baseline.id,
            planned.block,
            planned.preset,
            prints.own,
            prints.base,
            Status.ABORTED,
            "",
            "",
            attempt,
            ledger.plans.get((planned.block, prints.base, attempt)),
            ledger.arms(check.baseline.id, prints.base, attempt) | ledger.arms(check.cell.id, prints.own, attempt),
            (),
        )
        if with_earlier:
            state = replace(state, before=experiments_before(ledger, state))
        return judge_check(state, self.job.survey.fates[check.cell.id].claim)

    def _decide(self, check: CheckCell) -> None:
        outcome = self._outcome(check, with_earlier=True)
        result = outcome.results[0]
        self.listen(Said(f"{check.id}: {result.verdict.value}: {result.evidence}"))
        for beside in outcome.results[1:]:
            if beside.verdict is not Verdict.NOT_APPLICABLE:
                self.listen(Said(f"  {beside.check}: {beside.verdict.value}: {beside.evidence}"))
        self._end(check, Status.OK, f"{len(outcome.looks)} looks at the speculative arm", "")

    def _end(self, check: CheckCell, status: Status, reason: str, remedy: str) -> None:
        if status is not Status.OK:
            self.listen(Said(f"{check.id}: {status.value}: {reason}"))
        own = prints_of(check, self.job.survey.fates).own
        self.directory.append(
            CheckEndRecord(
                self.planned.block, check.cell.id, own, self.planned.attempt, status, reason, remedy, utc_now()
            )
        )

    def _folder(self, cell: Cell, print_: str, arm: CheckArm) -> Path:
        return self.directory.check_folder(cell.id, print_, self.planned.attempt, arm.value)

    def _adapter(self, cell: Cell) -> Adapter:
        return self.job.adapters[cell.engine.adapter]


def _speculative(need: Need) -> bool:
    return need.arm in SPECULATIVE_ARMS


def _short(cell: Cell, factor: float = 1.0) -> Cell:
    """The cell with cold prompts and answers as short as the check compares, at a part of its temperature."""
    return replace(
        cell,
        workload=replace(cell.workload, max_tokens=TOKENS, cache="cold"),
        sampling=replace(cell.sampling, temperature=cell.sampling.temperature * factor),
    )


def _trouble(err: Exception) -> tuple[Status, str, str]:
    if isinstance(err, ArmStopped):
        return err.status, err.reason, err.remedy
    if isinstance(err, LaunchError):
        return (Status.TIMEOUT if err.timed_out else Status.FAILED), err.what, err.next_step
    if isinstance(err, EngineRefusal):
        return Status(err.status), err.reason, ""
    raise TypeError(f"{type(err).__name__} ends no check")

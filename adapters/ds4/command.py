"""The path through the command ``ds4``: one process an answer, its rates and its lines on speculation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from adapters.ds4.beginning import Beginning, Told, beginning
from adapters.ds4.dspark import dspark_totals
from adapters.ds4.identity import binary_of, home_of
from adapters.ds4.observations import baseline, engine_times, nothing_drafted, speculative
from adapters.ds4.options import INSTEAD_OF_SEED_0, MAY, SEPTEMBER, Ds4Mtp, Ds4Options, engine_options, mtp_options
from adapters.ds4.rounds import Spoken, embedded_cycles, support_cycles
from adapters.ds4.run import GENERATE, PROMPT, TOKENS, Run, read_run
from adapters.ds4.tokens import Answer, arrivals, read_answer, read_dump
from orchestrator.schema.adapter import (
    FOLDER,
    Arrivals,
    CommandStep,
    EachStep,
    Launch,
    ParsedTrial,
    TrialSpec,
    command_folder,
)
from orchestrator.schema.capture import READY_TRIAL, SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.metrics import Clock
from orchestrator.schema.observation import Absence, Observation, absent, observed

PROMPT_FILE = "prompt.txt"
NO_SYSTEM = ("--system", "")
"""No system prompt: the server adds none either."""
COUNT_SOURCE = "tokens of --dump-tokens"
INFERRED = "inferred: ds4 prints text and no ids; its own tokenizer took the text apart afterwards"
SPEAKS: Mapping[str, str] = {
    "DS4_TOKEN_TIMING": "1",
    "DS4_MTP_TIMING": "1",
    "DS4_MTP_SPEC_LOG": "1",
    "DS4_DSPARK_STATS": "1",
}
"""Lines on what is done, set in every arm so that their cost is equal."""


@dataclass(frozen=True, slots=True)
class _Read:
    """One answer as it was read: ``prompt`` is its tokens and where they are told, where they are."""

    run: Run
    answer: Answer
    prompt: tuple[int, str] | None
    begun: Beginning


def flags(cell: Cell) -> list[str]:
    """The options that both paths give to the engine: model, context and drafter."""
    options = engine_options(cell)
    argv = ["--model", cell.model.target, "--ctx", str(options.context)]
    if options.backend is not None:
        argv += ["--backend", options.backend]
    if options.threads is not None:
        argv += ["--threads", str(options.threads)]
    argv += [flag for flag, on in (("--quality", options.quality), ("--warm-weights", options.warm_weights)) if on]
    if cell.method.kind is MethodKind.MTP:
        argv += _drafter(cell, options, mtp_options(cell.method))
    return argv


def environment(cell: Cell) -> dict[str, str]:
    """Every line on what it does, and the exact verifier where that is asked for."""
    strict = cell.method.kind is MethodKind.MTP and mtp_options(cell.method).strict
    return {**SPEAKS, **({"DS4_MTP_STRICT": "1"} if strict else {})}


def launch(cell: Cell) -> Launch:
    """The command without its question. It runs where it lies: Metal's shaders are read from there."""
    home = home_of(cell.engine)
    argv = (binary_of(cell.engine), *flags(cell), "--nothink")
    return Launch(tuple(argv), environment(cell), EachStep(), cwd=str(home) if home is not None else None)


def trial_steps(cell: Cell, trial: TrialSpec) -> tuple[CommandStep, ...]:
    """The answer, then what its text and (September 2026) the prompt are in tokens, for which no model is loaded."""
    asked, options = cell.sampling, engine_options(cell)
    folder = f"{FOLDER}/{command_folder(trial.index, GENERATE)}"
    prompt = f"{folder}/{PROMPT_FILE}"
    generate = (
        *NO_SYSTEM, "--prompt-file", prompt, "--tokens", str(cell.workload.max_tokens),
        "--seed", str(trial.seed or INSTEAD_OF_SEED_0),
        "--temp", f"{asked.temperature:g}", "--top-p", f"{asked.top_p:g}", "--min-p", f"{asked.min_p:g}",
    )  # fmt: skip
    raw = () if options.generation == MAY else ("--raw-prompt",)
    steps = [
        CommandStep(GENERATE, generate, {PROMPT_FILE: trial.prompt}),
        CommandStep(TOKENS, ("--dump-tokens", *raw, "--prompt-file", f"{folder}/stdout.log")),
    ]
    if options.generation == SEPTEMBER:
        # From here on --dump-tokens without --raw-prompt tells the whole prompt, chat template included.
        steps.append(CommandStep(PROMPT, ("--dump-tokens", *NO_SYSTEM, "--prompt-file", prompt)))
    return tuple(steps)


def arrivals_of(cell: Cell, capture: TrialCapture) -> Arrivals | None:
    """Tokens in time, from when the prompt is read; ``None`` while the capture is incomplete or unreadable."""
    try:
        read = _read(cell, capture)
    except CaptureError:
        return None
    run, answer = read.run, read.answer
    came = arrivals(run.pieces, answer.tokens) if answer.tokens else ()
    # The last piece ends the answer; ds4 then gives back its memory, for which nobody waits.
    return Arrivals(read.begun.t_s, came, run.pieces[-1].t_s if run.pieces else run.done_s, "inferred")


def parse_trial(cell: Cell, capture: TrialCapture) -> ParsedTrial:
    """Everything that one run says.

    Raises:
        CaptureError: it is incomplete or cannot be read.
    """
    read = _read(cell, capture)
    run, answer, prompt = read.run, read.answer, read.prompt
    tokens, limit = len(answer.tokens), cell.workload.max_tokens
    if tokens == 0:
        raise CaptureError("the answer has no token")
    said = _spoken(cell, run)
    finish = "length" if tokens >= limit else "eos"
    newline = "; the newline at its end is taken for ds4's own" if answer.own_newline else ""
    observations: list[Observation] = [
        observed("output_tokens", tokens, COUNT_SOURCE, clock=Clock.DERIVED, note=INFERRED + newline),
        observed(
            "finish_reason", finish, f"{COUNT_SOURCE} against the limit (inferred)", note="inferred from the count"
        ),
        observed("cached_tokens", 0, "a process of its own", clock=Clock.DERIVED, note="0 by construction"),
        *_prompt(prompt),
        *engine_times(cell, run.speed, tokens, prompt[0] if prompt is not None else None),
    ]
    if cell.method.kind is MethodKind.NONE:
        observations += _plain(said)
    elif said is None:
        observations += nothing_drafted("ds4 was told to print a line for every cycle with a draft, and printed none")
    else:
        observations += speculative(said, tokens, COUNT_SOURCE, at_end_of_text=finish == "eos")
    ids = tuple(token.id for token in answer.tokens)
    return ParsedTrial(tuple(observations), ids, answer.text, finish, tuple(_problems(said, tokens)))


def parse_session(cell: Cell, capture: SessionCapture) -> tuple[Observation, ...]:
    """Loading, which is told apart from the answers: the median of the session's processes."""
    seconds, sure = [], True
    for index, trial in capture.trials.items():
        if index == READY_TRIAL:
            continue
        try:
            read = _read(cell, trial)
        except CaptureError:
            continue
        seconds.append(read.begun.t_s - read.run.started_s)
        sure = sure and read.begun.told is not Told.BEFORE
    if not seconds:
        return ()
    note = f"the median of {len(seconds)} processes, one an answer; later ones find the weights in memory"
    until = "the beginning of prefill" if sure else "last line before prefill"
    source, definition = f"events:{GENERATE}/{until}", f"ds4:start to {until}"
    return (observed("load_time", median(seconds), source, definition=definition, note=note),)


def began(cell: Cell, capture: TrialCapture) -> Beginning | None:
    """When the prompt of one answer began to be read, and by what that is known; ``None`` where it cannot be told."""
    try:
        return _read(cell, capture).begun
    except CaptureError:
        return None


def _drafter(cell: Cell, options: Ds4Options, method: Ds4Mtp) -> list[str]:
    module = [cell.model.mtp] if cell.model.mtp is not None else []
    takes_file = "--mtp" if options.generation == MAY else "--mtp-model"
    argv: list[str] = []
    if method.drafter == "embedded":
        argv += ["--mtp", "--mtp-timing"]
    else:
        argv += [takes_file, *module] if module else []
    if method.drafter == "support":
        argv += ["--mtp-draft", str(cell.method.n_max or 0)]
        argv += ["--mtp-margin", f"{method.margin:g}"] if method.margin is not None else []
    if method.drafter == "dspark":
        argv += ["--dspark"]
        argv += ["--dspark-confidence", f"{method.confidence:g}"] if method.confidence is not None else []
    return argv + (["--mtp-exact-sampling"] if method.exact_sampling else [])


def _read(cell: Cell, capture: TrialCapture) -> _Read:
    """The run, its answer and when it began; an answer whose split contradicts ds4's counts gives no number at all."""
    run, limit = read_run(capture), cell.workload.max_tokens
    answer = read_answer(run, read_run(capture, TOKENS), limit)
    count, evals = len(answer.tokens), run.evals
    if count > limit or (evals is not None and count - evals not in (0, 1)):
        against = f"the limit of {limit}" if count > limit else f"the {evals} decode passes that ds4 tells"
        raise CaptureError(
            f"the text is {count} tokens by --dump-tokens, against {against}: ds4 split it otherwise as it "
            "generated, so how many tokens there were cannot be told"
        )
    prompt, early = _prompt_tokens(cell, capture, run), engine_options(cell).generation == MAY
    begun = beginning(run, count, prompt[0] if prompt is not None else None, early_line=early)
    return _Read(run, answer, prompt, begun)


def _spoken(cell: Cell, run: Run) -> Spoken | None:
    """What the lines say. A baseline is read for every format: it must not speculate in any."""
    if cell.method.kind is MethodKind.NONE:
        return support_cycles(run.lines) or dspark_totals(run.lines) or embedded_cycles(run.lines)
    method, generation = mtp_options(cell.method), engine_options(cell).generation
    if method.drafter == "support":
        return support_cycles(run.lines)
    if generation == MAY:
        return None
    exact = method.exact_sampling and cell.sampling.temperature > 0
    read = dspark_totals if method.drafter == "dspark" else embedded_cycles
    return read(run.lines, exact=exact)


def _plain(said: Spoken | None) -> Iterable[Observation]:
    for item in baseline():
        if item.metric == "drafted_tokens" and said is not None and (said.drafted or said.accepted):
            drafted = said.drafted if said.drafted is not None else said.accepted
            yield observed("drafted_tokens", drafted, said.source, note="drafted although the method is none")
        else:
            yield item


def _prompt_tokens(cell: Cell, capture: TrialCapture, run: Run) -> tuple[int, str] | None:
    if engine_options(cell).generation == SEPTEMBER:
        return len(read_dump(read_run(capture, PROMPT).output)), "--dump-tokens of the prompt"
    return (run.prompt_tokens, "stderr: progress of prefill") if run.prompt_tokens is not None else None


def _prompt(found: tuple[int, str] | None) -> Iterable[Observation]:
    if found is None:
        yield absent("prompt_tokens", Absence.NOT_REPORTED, "this build prints no count of prompt tokens in this mode")
    else:
        yield observed("prompt_tokens", found[0], found[1])


def _problems(said: Spoken | None, tokens: int) -> Iterable[str]:
    """Where ds4's lines and the text disagree.

    Fewer tokens in the lines are no contradiction: passes without a draft are in no line. One more is the end-of-text
    token, which is judged and not printed.
    """
    if said is None or said.cycles is None:
        return
    yield from said.problems
    left = said.left(tokens)
    if left is not None and left < -1:
        yield f"ds4's lines account for {tokens - left} tokens, the text has {tokens}"

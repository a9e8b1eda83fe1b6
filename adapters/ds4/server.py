"""The path through ``ds4-server``: a process a session, for the wait for a first token; it tells nothing of drafts."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from adapters.ds4.command import environment, flags
from adapters.ds4.identity import binary_of, home_of
from adapters.ds4.observations import baseline, unreported
from adapters.ds4.options import INSTEAD_OF_SEED_0, engine_options
from adapters.ds4.tokens import TOGETHER_S
from orchestrator.schema.adapter import (
    Arrival,
    Arrivals,
    HttpReady,
    HttpStep,
    Launch,
    LaunchContext,
    ParsedTrial,
    Refusal,
    Step,
    TrialSpec,
)
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, MethodKind
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.observation import Absence, Observation, absent, observed
from orchestrator.schema.status import Status

REQUEST, MODELS = "request", "models"
READY_PATH = "/v1/models"
MODEL = "deepseek-v4-flash"
"""An alias that every build serves its one model under."""
USAGE = f"events:{REQUEST}/usage"
WHY = "ds4-server reports no drafts and no acceptance; the command does (options.mode: command)"
FINISH: Mapping[str, str] = {"length": "length", "stop": "eos"}
"""No stop words are asked for, so that ``stop`` is end of text."""

_LOADED_MODULE = re.compile(r"^ds4: (?:MTP support model loaded|DSpark support model detected): ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole streamed answer: text by event, and the closing figures."""

    sent_s: float
    done_s: float
    parts: tuple[tuple[float, str], ...]
    finish: str
    prompt_tokens: int
    tokens: int
    cached: int

    @property
    def text(self) -> str:
        """All text, thoughts included."""
        return "".join(text for _, text in self.parts)


def launch(cell: Cell, context: LaunchContext) -> Launch:
    """The server on its port; it runs where it lies, for Metal's shaders."""
    home = home_of(cell.engine)
    argv = (binary_of(cell.engine), *flags(cell), "--host", "127.0.0.1", "--port", str(context.port))
    return Launch(argv, environment(cell), HttpReady(READY_PATH), cwd=str(home) if home is not None else None)


def ready_steps() -> tuple[Step, ...]:
    """What it says that it serves."""
    return (HttpStep(MODELS, "GET", READY_PATH),)


def check_ready(cell: Cell, stderr: str) -> Refusal | None:
    """The file of drafts must be loaded exactly where the cell asks for one."""
    loaded = _LOADED_MODULE.search(stderr) is not None
    wanted = cell.method.kind is MethodKind.MTP and cell.model.mtp is not None
    if loaded and not wanted:
        return Refusal(Status.CONTAMINATED, "ds4-server loaded an MTP module for a cell without one")
    if wanted and not loaded:
        return Refusal(Status.NOT_ENGAGED, "ds4-server does not say that it loaded the MTP module")
    return None


def trial_steps(cell: Cell, trial: TrialSpec) -> tuple[Step, ...]:
    """One streamed chat without a system prompt, every setting stated."""
    asked = cell.sampling
    body = {
        "model": MODEL,
        "messages": [{"role": "user", "content": trial.prompt}],
        "max_tokens": cell.workload.max_tokens,
        "temperature": asked.temperature,
        "top_p": asked.top_p,
        "top_k": asked.top_k,
        "min_p": asked.min_p,
        "seed": trial.seed or INSTEAD_OF_SEED_0,
        "thinking": {"type": "enabled" if engine_options(cell).thinking else "disabled"},
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    return (HttpStep(REQUEST, "POST", "/v1/chat/completions", body, stream=True),)


def arrivals_of(capture: TrialCapture) -> Arrivals | None:
    """Tokens in time; ``None`` while the answer is incomplete or unreadable."""
    try:
        answer = read_answer(capture)
    except CaptureError:
        return None
    return Arrivals(answer.sent_s, _arrivals(answer), answer.done_s, "inferred")


def parse_trial(cell: Cell, capture: TrialCapture) -> ParsedTrial:
    """Counts and times of one answer; speculation is not reported.

    Raises:
        CaptureError: the answer is incomplete or cannot be read.
    """
    if not capture.complete:
        raise CaptureError("the capture of the trial ends early")
    answer = read_answer(capture)
    if answer.tokens < 1:
        raise CaptureError("the answer has no token")
    came = _arrivals(answer)
    ids = tuple(token for arrival in came for token in arrival.ids)
    unseen = answer.tokens - len(answer.parts)
    note = f"{unseen} token(s) ended inside a character and had no event of their own" if unseen > 0 else None
    found: list[Observation] = [
        observed("prompt_tokens", answer.prompt_tokens, f"{USAGE}.prompt_tokens"),
        observed("cached_tokens", answer.cached, f"{USAGE}.prompt_tokens_details.cached_tokens"),
        observed("output_tokens", answer.tokens, f"{USAGE}.completion_tokens", note=note),
        observed("finish_reason", answer.finish, f"events:{REQUEST}/finish_reason"),
        *(
            absent(metric, Absence.NOT_REPORTED, "ds4-server's answers have no times")
            for metric in ("engine_prefill_time", "engine_decode_time", "engine_decode_rate")
        ),
        *(baseline() if cell.method.kind is MethodKind.NONE else unreported(WHY)),
    ]
    return ParsedTrial(tuple(found), ids, answer.text, answer.finish, tuple(_problems(cell, answer)))


def read_answer(capture: TrialCapture) -> Answer:
    """The streamed answer of a trial.

    Raises:
        CaptureError: it is incomplete or not as expected.
    """
    step = capture.steps.get(REQUEST)
    if step is None or step.done_s is None or step.error is not None:
        why = f": {step.error}" if step is not None and step.error is not None else ""
        raise CaptureError(f"the answer of ds4-server is incomplete{why}")
    parts: list[tuple[float, str]] = []
    finish, usage, over = None, None, False
    for event in step.events:
        if event.data.strip() == "[DONE]":
            over = True
            continue
        row = _row(event.data)
        usage = row["usage"] if isinstance(row.get("usage"), dict) else usage
        choice = _choice(row)
        text = _text(choice)
        if text:
            parts.append((event.t_s, text))
        finish = choice.get("finish_reason") or finish
    if not over or not isinstance(usage, dict) or not isinstance(finish, str):
        raise CaptureError("the stream of ds4-server has no end, no reason for it or no usage")
    details = usage.get("prompt_tokens_details")
    cached = _whole(details if isinstance(details, dict) else {}, "cached_tokens")
    counts = _whole(usage, "prompt_tokens"), _whole(usage, "completion_tokens")
    word = FINISH.get(finish, "error")
    return Answer(step.sent_s, step.done_s, tuple(parts), word, *counts, cached)


def _pieces(answer: Answer) -> list[tuple[float, str]]:
    """The events, joined where one token came in several.

    In thinking mode the server holds back what might begin the end of a thought, and then sends a token's text in two
    events at once (seen in a real run).
    """
    found: list[tuple[float, str]] = []
    surplus = len(answer.parts) - answer.tokens
    for t_s, text in answer.parts:
        if surplus > 0 and found and t_s - found[-1][0] < TOGETHER_S:
            found[-1] = (found[-1][0], found[-1][1] + text)
            surplus -= 1
        else:
            found.append((t_s, text))
    return found


def _arrivals(answer: Answer) -> tuple[Arrival, ...]:
    """One arrival a piece, its id a number made from its text: the server tells none. Unseen tokens join the last."""
    found: list[Arrival] = []
    burst = 0
    pieces = _pieces(answer)
    for place, (t_s, text) in enumerate(pieces):
        if found and t_s - found[-1].t_s >= TOGETHER_S:
            burst += 1
        unseen = max(0, answer.tokens - len(pieces)) if place == len(pieces) - 1 else 0
        code = -2 - zlib.crc32(text.encode("utf-8", "surrogatepass")) % 2**31
        found.append(Arrival(t_s, (code,) + (-1,) * unseen, f"b{burst}"))
    return tuple(found)


def _problems(cell: Cell, answer: Answer) -> Iterable[str]:
    limit = cell.workload.max_tokens
    if answer.tokens > limit:
        yield f"{answer.tokens} tokens came, the limit is {limit}"
    pieces = len(_pieces(answer))
    if pieces > answer.tokens:
        yield f"{pieces} pieces of text came, ds4-server counts {answer.tokens} tokens"
    if answer.finish == "error":
        yield "the answer ended for a reason that was not asked for"
    if answer.finish == "length" and answer.tokens < limit:
        yield f"the answer ended at its limit with {answer.tokens} tokens, the limit is {limit}: is the context full?"
    if answer.cached:
        yield f"{answer.cached} prompt tokens came from a cache"


def _row(data: str) -> Mapping[str, Any]:
    try:
        row = json.loads(data)
    except ValueError as err:
        raise CaptureError("an event of ds4-server is no JSON") from err
    if not isinstance(row, dict):
        raise CaptureError("an event of ds4-server is no JSON object")
    if "error" in row:
        raise CaptureError(f"ds4-server broke the answer off: {str(row['error'])[:200]}")
    return row


def _choice(row: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = row.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else {}
    return first if isinstance(first, dict) else {}


def _text(choice: Mapping[str, Any]) -> str:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return ""
    parts = (delta.get(name) for name in ("reasoning_content", "content"))
    return "".join(part for part in parts if isinstance(part, str))


def _whole(row: Mapping[str, Any], key: str) -> int:
    found = row.get(key)
    if not isinstance(found, int) or isinstance(found, bool) or found < 0:
        raise CaptureError(f"{key!r} is missing from ds4-server's usage, or no count")
    return found

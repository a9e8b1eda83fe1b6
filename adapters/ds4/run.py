"""Reads one run of the command ``ds4``: what it printed when, and how its own clock divides it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from orchestrator.schema.capture import StepCapture, TrialCapture
from orchestrator.schema.errors import CaptureError

GENERATE, TOKENS, PROMPT = "generate", "tokens", "prompt"
"""Names of the commands of a trial."""
UNSPOKEN = "ds4 did not print its rates ('prefill: … t/s, generation: … t/s')"

_ENDS = re.compile(r"[\r\n]")
_SPEED = re.compile(r"^ds4: prefill: (\d+\.\d+) t/s, generation: (\d+\.\d+) t/s")
_PROMPT_TOKENS = re.compile(r"^(?:ds4: prefill (\d+)/\1 done|processing (\d+) input tokens)")
_EVAL = re.compile(r"^ds4: (?:gpu )?decode eval (\d+) took \d+\.\d+ ms$")


@dataclass(frozen=True, slots=True)
class Piece:
    """Bytes of standard output with the moment at which they arrived."""

    t_s: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Line:
    """A line of standard error, ended by a newline or a carriage return, and when it was complete."""

    t_s: float
    text: str


@dataclass(frozen=True, slots=True)
class Speed:
    """ds4's own rates in tokens per second, printed with two digits behind the point."""

    prefill: float
    generation: float


@dataclass(frozen=True, slots=True)
class Run:
    """One command that ended well."""

    started_s: float
    done_s: float
    pieces: tuple[Piece, ...]
    lines: tuple[Line, ...]

    @property
    def output(self) -> bytes:
        """All of standard output."""
        return b"".join(piece.data for piece in self.pieces)

    @property
    def speed(self) -> Speed:
        """The rates of a generation.

        Raises:
            CaptureError: they are missing: the run was no generation, or another format is spoken.
        """
        found = _SPEED.match(self.speed_line.text)
        if found is None:
            raise CaptureError(UNSPOKEN)
        return Speed(float(found[1]), float(found[2]))

    @property
    def speed_line(self) -> Line:
        """The last line with the rates of a generation.

        Raises:
            CaptureError: there is none.
        """
        for line in reversed(self.lines):
            if _SPEED.match(line.text):
                return line
        raise CaptureError(UNSPOKEN)

    @property
    def prompt_tokens(self) -> int | None:
        """Prompt tokens where a progress line tells them."""
        for line in self.lines:
            found = _PROMPT_TOKENS.match(line.text)
            if found is not None:
                return int(found[1] or found[2])
        return None

    @property
    def evals(self) -> int | None:
        """Decode passes where ds4 prints a line for each (``DS4_TOKEN_TIMING``, plain greedy decoding alone)."""
        numbers = [int(found[1]) for line in self.lines if (found := _EVAL.match(line.text)) is not None]
        return len(numbers) if numbers and numbers == list(range(1, len(numbers) + 1)) else None


def read_run(capture: TrialCapture, name: str = GENERATE) -> Run:
    """The run of that name.

    Raises:
        CaptureError: it is missing, incomplete, failed or not as expected.
    """
    if not capture.complete:
        raise CaptureError("the capture of the trial ends early")
    step = capture.steps.get(name)
    if step is None or step.done_s is None or step.error is not None:
        why = f": {step.error}" if step is not None and step.error is not None else ""
        raise CaptureError(f"the command {name!r} did not come to its end{why}")
    pieces: list[Piece] = []
    errors: list[tuple[float, bytes]] = []
    code: object = None
    for event in step.events:
        row = _row(event.data)
        if "exit" in row:
            code = row["exit"]
            continue
        data = _bytes(row)
        if row.get("stream") == "stdout":
            pieces.append(Piece(event.t_s, data))
        elif row.get("stream") == "stderr":
            errors.append((event.t_s, data))
        else:
            raise CaptureError("a piece of output is of no known stream")
    if code != 0 or isinstance(code, bool):
        raise CaptureError("the command's exit is missing from the capture")
    return Run(step.sent_s, step.done_s, tuple(pieces), _lines(errors))


def arguments(step: StepCapture | None) -> tuple[str, ...]:
    """The arguments of a command as they were written down; empty where they cannot be read."""
    try:
        body = json.loads(step.body) if step is not None else None
    except ValueError:
        return ()
    args = body.get("args") if isinstance(body, dict) else None
    return tuple(word for word in args if isinstance(word, str)) if isinstance(args, list) else ()


def _row(data: str) -> dict[str, object]:
    try:
        row = json.loads(data)
    except ValueError as err:
        raise CaptureError("a piece of output is no JSON") from err
    if not isinstance(row, dict):
        raise CaptureError("a piece of output is no JSON object")
    return row


def _bytes(row: dict[str, object]) -> bytes:
    text, digits = row.get("text"), row.get("hex")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    if isinstance(digits, str):
        try:
            return bytes.fromhex(digits)
        except ValueError as err:
            raise CaptureError("a piece of output has no bytes") from err
    raise CaptureError("a piece of output has no bytes")


def _lines(chunks: list[tuple[float, bytes]]) -> tuple[Line, ...]:
    """Lines parted at carriage returns too; one without an end is not complete and not read."""
    found: list[Line] = []
    rest = ""
    data = b""
    for t_s, chunk in chunks:
        data += chunk
        try:
            text, data = data.decode(), b""
        except UnicodeDecodeError:
            continue
        *whole, rest = _ENDS.split(rest + text)
        found += [Line(t_s, line) for line in whole if line]
    return tuple(found)

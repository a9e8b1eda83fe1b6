"""Builds synthetic run directories from the real record types, for tests of the report alone.

The numbers are invented and deterministic. A spec says what a cell is like (how long a target pass takes, how many
tokens a pass commits); trials follow from it, so that all values of one trial agree with each other.
"""

from __future__ import annotations

import dataclasses
import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.schema.adapter import Claim, Condition, EngineIdentity, Honoured, Rule
from orchestrator.schema.cell import (
    Cell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
    fingerprint,
)
from orchestrator.schema.codec import dump_header, dump_record
from orchestrator.schema.metrics import TIME_TO_N
from orchestrator.schema.observation import Absence, Observation, absent, observed
from orchestrator.schema.record import (
    SCHEMA_VERSION,
    AttemptRecord,
    CellRecord,
    Engagement,
    MatrixRecord,
    NoteRecord,
    Phase,
    Place,
    Record,
    ReplayRecord,
    RunHeader,
    SessionRecord,
    SetRecord,
    TokensRecord,
    TrialRecord,
)
from orchestrator.schema.replay import Purpose, Ranked, Width
from orchestrator.schema.status import Status

GREEDY = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
WARM = Sampling("t0.8", 0.8, 7, 0, 0.95, 0.0, 1.0, 0.0, 0.0)
SHORT = Workload("short", "demo-short", 64, EosPolicy.STOP)
LONG = Workload("long", "demo-long", 160, EosPolicy.CONTINUE)
NONE = Method("none", MethodKind.NONE)
NOTHING = Claim(Rule.NONE, True, "no speculation")
WORDS = ("the ", "river ", "keeps ", "its ", "own ", "slow ", "time ", "and ", "nobody ", "hurries ", "it ", "along ")


@dataclass(frozen=True)
class Spec:
    """What a cell is like.

    Args:
        pass_s: seconds of one target pass, drafting included.
        first_s: seconds until the first burst.
        drafts: draft tokens per round (0: no drafting).
        take: probability that one draft token is accepted.
        drift: relative change of every time from the first set to the last.
        part_at: token index at which greedy output parts from the baseline's, on one prompt.
        fate: what becomes of the cell when it is not measured.
    """

    method: Method = NONE
    pass_s: float = 0.02
    first_s: float = 0.05
    drafts: int = 0
    take: float = 0.7
    noise: float = 0.01
    drift: float = 0.0
    memory: float = 90e6
    part_at: int | None = None
    shorter: float = 1.0
    claim: Claim = NOTHING
    fate: Status = Status.OK
    reason: str = ""
    remedy: str = ""
    log: tuple[str, ...] = ()
    reported: bool = True
    conditions: tuple[Condition, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class BlockSpec:
    """A block: engine, model, sampling and workload, its baseline's spec, its twin's and the speculative ones."""

    engine: EngineConfig
    model: ModelConfig
    sampling: Sampling
    workload: Workload
    base: Spec
    cells: tuple[Spec, ...]
    sets: int = 4
    planned: int | None = None
    prompts: int = 3
    twin: bool = True
    attempts: int = 1
    last_set_torn: bool = False


@dataclass
class Builder:
    """Collects the records of one run and writes them down."""

    records: list[Record] = field(default_factory=list)
    clock: int = 0

    def utc(self) -> str:
        self.clock += 1
        return f"2026-11-29T{9 + self.clock // 3600:02d}:{self.clock // 60 % 60:02d}:{self.clock % 60:02d}.000Z"


def write_run(
    path: Path,
    blocks: Sequence[BlockSpec],
    identities: dict[str, EngineIdentity],
    *,
    notes: Iterable[str] = (),
    run_settings: dict[str, object] | None = None,
    host: dict[str, object] | None = None,
    started: bool = True,
    replays: bool = False,
) -> Path:
    """A run directory with ``run.json`` and ``journal.jsonl``."""
    builder = Builder()
    if started:
        _matrix(builder, blocks, identities, run_settings or {})
        for block in blocks:
            _block(builder, block, replays=replays)
        builder.records += [NoteRecord("interrupted", text, builder.utc()) for text in notes]
    header = RunHeader(
        SCHEMA_VERSION,
        "0.1.0",
        path.name,
        "2026-11-29T09:00:00.000Z",
        "matrix.yaml",
        "version: 1\nname: fixture\n",
        host if host is not None else {"hostname": "studio", "cpu": "Test CPU", "memory_bytes": 128 * 10**9},
        "specmatrix run matrix.yaml",
    )
    path.mkdir(parents=True, exist_ok=True)
    (path / "run.json").write_text(dump_header(header), encoding="utf-8")
    (path / "journal.jsonl").write_text("".join(map(dump_record, builder.records)), encoding="utf-8")
    return path


def cell_of(block: BlockSpec, method: Method, *, twin: bool = False) -> Cell:
    return Cell(block.engine, block.model, method, block.sampling, block.workload, twin)


def _print_of(cell: Cell) -> str:
    return fingerprint(cell, {"fixture": "1"})


def _members(block: BlockSpec) -> list[tuple[Cell, Spec]]:
    base = cell_of(block, NONE)
    found = [(base, block.base)]
    if block.twin:
        found.append((dataclasses.replace(base, twin=True), block.base))
    return found + [(cell_of(block, spec.method), spec) for spec in block.cells]


def _matrix(
    builder: Builder, blocks: Sequence[BlockSpec], identities: dict[str, EngineIdentity], settings: dict[str, object]
) -> None:
    rows, claims = [], {}
    for block in blocks:
        base = cell_of(block, NONE)
        for cell, spec in _members(block):
            rows.append(
                {
                    "id": cell.id,
                    "fingerprint": _print_of(cell),
                    "block": cell.block_id,
                    "role": cell.role.value,
                    "baseline": base.id,
                    "settings": cell.settings(),
                    "claim": dataclasses.asdict(spec.claim),
                }
            )
            claims[cell.id] = spec.claim
    base_settings = {"preset": "demo", "sessions": 4, "trials": 3, "warmup": 1, "order": "abba", "order_seed": 1}
    builder.records.append(
        MatrixRecord("version: 1\n", tuple(rows), identities, claims, base_settings | settings, builder.utc())
    )


def _block(builder: Builder, block: BlockSpec, *, replays: bool) -> None:
    runnable = []
    for cell, spec in _members(block):
        if spec.fate in (Status.UNAVAILABLE, Status.UNSUPPORTED, Status.SKIPPED):
            builder.records.append(
                CellRecord(cell.id, _print_of(cell), spec.fate, spec.reason, spec.remedy, builder.utc())
            )
        elif spec.fate is not Status.NOT_RUN:
            runnable.append((cell, spec))
    if not runnable or block.sets == 0:
        return
    cells = {cell.id: _print_of(cell) for cell, _ in runnable}
    block_id = runnable[0][0].block_id
    for attempt in range(1, block.attempts + 1):
        planned = block.planned or block.sets
        builder.records.append(
            AttemptRecord(block_id, attempt, cells, planned, block.prompts, "abba", 1, builder.utc())
        )
        for index in range(block.sets):
            ordered = runnable if index % 2 == 0 else list(reversed(runnable))
            torn = block.last_set_torn and index == block.sets - 1
            for order, (cell, spec) in enumerate(ordered[:1] if torn else ordered):
                place = Place(cell.id, cells[cell.id], block_id, attempt, index, 0, order)
                _session(builder, block, cell, spec, place)
            if not torn:
                builder.records.append(SetRecord(block_id, attempt, index, 0, cells, builder.utc()))
        for cell, spec in runnable:
            if replays and spec.part_at is not None:
                builder.records += _replayed(builder, block, cell, spec, attempt)


def _replayed(builder: Builder, block: BlockSpec, cell: Cell, spec: Spec, attempt: int) -> list[Record]:
    """The baseline's ranking where the cell's answer to the first prompt parts, and the texts of the tokens there."""
    base, place = cell_of(block, NONE), spec.part_at or 0
    off, on = _ids(base, block.base, "p1", place + 12, 0), _ids(cell, spec, "p1", place + 12, 0)
    ranked = Ranked(place, ((off[place], -0.31), (off[place] + 1, -1.71), (on[place], -3.2)), -0.31, 1, None, None)
    near = (*off[place - 6 :], *on[place:], off[place] + 1)
    return [
        ReplayRecord(
            base.block_id, attempt, base.id, _print_of(base), Purpose.DIVERGENCE, base.id, "p1", off[:place], (place,),
            Width.BATCHED, False, (ranked,), Status.OK, "", 0.1, "cells/replay", builder.utc(),
        ),
        TokensRecord(base.block_id, attempt, {str(n): WORDS[n % len(WORDS)] for n in near}, builder.utc()),
    ]  # fmt: skip


def _session(builder: Builder, block: BlockSpec, cell: Cell, spec: Spec, place: Place) -> None:
    started = builder.utc()
    dice = random.Random(f"{cell.id}/{place.attempt}/{place.set_index}")
    mood = 1 + dice.gauss(0, spec.noise)
    broken = spec.fate is not Status.OK
    if not broken or spec.fate is Status.CONTAMINATED:
        builder.records.append(_trial(builder, block, cell, spec, place, dice, mood, 0, Phase.WARMUP))
        for number in range(block.prompts):
            builder.records.append(_trial(builder, block, cell, spec, place, dice, mood, number + 1, Phase.MEASURED))
    engaged = Engagement.OFF if cell.method.kind is MethodKind.NONE else Engagement.ENGAGED
    if not spec.reported:
        engaged = Engagement.UNVERIFIABLE
    if spec.fate is Status.NOT_ENGAGED:
        engaged = Engagement.NOT_ENGAGED
    memory = (
        ()
        if broken
        else (
            observed("load_time", 0.8 * mood, "process start to readiness"),
            observed("peak_unified", round(spec.memory * (1 + dice.gauss(0, 0.002))), "psutil: resident set"),
            observed("swap_delta", 0, "psutil"),
        )
    )
    builder.records.append(
        SessionRecord(
            place,
            spec.fate,
            spec.reason,
            spec.remedy,
            engaged,
            memory,
            spec.conditions,
            1 if broken else 0,
            f"cells/{cell.id.replace('/', '-')}/attempt-{place.attempt}/session-{place.set_index}",
            spec.log,
            started,
            builder.utc(),
        )
    )


def _trial(
    builder: Builder,
    block: BlockSpec,
    cell: Cell,
    spec: Spec,
    place: Place,
    dice: random.Random,
    mood: float,
    number: int,
    phase: Phase,
) -> TrialRecord:
    prompt = f"p{number}" if phase is Phase.MEASURED else "warm"
    limit = block.workload.max_tokens
    wanted = limit if block.workload.eos is not EosPolicy.STOP else (limit - 9 * number if number else 20)
    wanted = max(18, round(wanted * spec.shorter))
    pace = mood * (1 + spec.drift * place.set_index / max(1, block.sets - 1))
    # Greedy drafting is the same in every session; sampled drafting is not.
    luck = random.Random(f"{cell.id}/{prompt}" + ("" if cell.sampling.greedy else f"/{place.set_index % 2}"))
    curve, drafted, accepted, refused, rounds = _curve(spec, wanted, pace, dice, luck)
    ids = _ids(cell, spec, prompt, wanted, place.set_index)
    text = spec.text or "".join(WORDS[token % len(WORDS)] for token in ids)
    seen = [*_times(curve), observed("output_tokens", wanted, "token ids"), observed("prompt_tokens", 24, "usage")]
    seen.append(observed("cached_tokens", 0, "usage"))
    seen += _drafting(cell, spec, drafted, accepted, refused, rounds, wanted)
    return TrialRecord(
        place,
        number,
        phase,
        prompt,
        "prose",
        "en",
        7,
        spec.fate,
        spec.reason,
        tuple(seen),
        ids,
        text,
        "length" if wanted == limit else "eos",
        tuple(curve),
        (),
        builder.utc(),
    )


def _curve(
    spec: Spec, wanted: int, pace: float, dice: random.Random, luck: random.Random
) -> tuple[list[tuple[float, int]], int, int, int, int]:
    now, total, drafted, accepted, refused, rounds = spec.first_s * pace, 1, 0, 0, 0, 0
    curve = [(now, 1)]
    while total < wanted:
        now += spec.pass_s * pace * (1 + dice.gauss(0, spec.noise))
        offered = min(spec.drafts, wanted - total)
        kept = 0
        while kept < offered and luck.random() < spec.take:
            kept += 1
        if offered:
            rounds += 1
            drafted, accepted = drafted + offered, accepted + kept
            refused += kept < offered
        total = min(wanted, total + kept + 1)
        curve.append((now, total))
    return curve, drafted, accepted, refused, rounds


def _times(curve: list[tuple[float, int]]) -> list[Observation]:
    first, last, total = curve[0][0], curve[-1][0], curve[-1][1]
    seen = [observed("ttft", first, "arrivals"), observed("e2e_latency", last + 0.001, "arrivals")]
    for n in TIME_TO_N:
        if n > total:
            seen.append(absent(f"time_to_{n}", Absence.NOT_APPLICABLE, f"the answer has {total} tokens"))
        else:
            seen.append(observed(f"time_to_{n}", next(t for t, count in curve if count >= n), "arrivals"))
    rate = (total - 1) / (last - first)
    return [
        *seen,
        observed("decode_time", last - first, "arrivals"),
        observed("decode_rate", rate, "arrivals"),
        observed("tpot", 1 / rate, "arrivals"),
        observed("burst_count", len(curve), "arrivals"),
    ]


def _drafting(
    cell: Cell, spec: Spec, drafted: int, accepted: int, refused: int, rounds: int, wanted: int
) -> list[Observation]:
    names = (
        "drafted_tokens",
        "accepted_tokens",
        "rejected_tokens",
        "discarded_tokens",
        "verify_rounds",
        "acceptance_rate",
        "mean_accepted_length",
        "draft_time",
    )
    if cell.method.kind is MethodKind.NONE:
        return [absent(name, Absence.NOT_APPLICABLE, "nothing is drafted") for name in names]
    if not spec.reported:
        return [absent(name, Absence.NOT_REPORTED, "this engine does not say") for name in names]
    return [
        observed("drafted_tokens", drafted, "usage"),
        observed("accepted_tokens", accepted, "usage"),
        observed("rejected_tokens", refused, "rounds"),
        observed("discarded_tokens", drafted - accepted - refused, "rounds"),
        observed("verify_rounds", rounds, "metrics"),
        observed("acceptance_rate", accepted / drafted, "usage"),
        observed("mean_accepted_length", accepted / rounds, "usage"),
        absent("draft_time", Absence.NOT_REPORTED, "the engine gives no drafting time"),
    ]


def _ids(cell: Cell, spec: Spec, prompt: str, wanted: int, set_index: int) -> tuple[int, ...]:
    """Greedy ids depend on the prompt alone; sampled ones also on the set; a parted cell departs on prompt p1."""

    def number(tag: str) -> int:
        return int.from_bytes(hashlib.sha256(tag.encode()).digest()[:2], "big") % 900

    salt = "" if cell.sampling.greedy else f"{set_index}/"
    parts = spec.part_at if spec.part_at is not None and prompt == "p1" and not cell.twin else None
    return tuple(
        number(f"{salt}{prompt}/{i}" + ("/off" if parts is not None and i >= parts else "")) for i in range(wanted)
    )


LLAMA = EngineConfig("llama.cpp", "llama_cpp_embedded", pin={"xllamacpp": "2026.10.11549"})
MLX = EngineConfig("mlx-lm", "mlx_lm", pin={"mlx-lm": "0.32.2"})
DS4 = EngineConfig("ds4", "ds4", binary="ds4")
OMLX = EngineConfig("omlx", "omlx", binary="omlx", pin={"version": "0.6.4"})
TINY = ModelConfig("tiny", "/models/tiny-target-f16.gguf", "tiny", drafts={"tiny": "/models/tiny-draft-f16.gguf"})
DRAFT4 = Method("draft-k4", MethodKind.DRAFT, 4, "tiny")
DRAFT8 = Method("draft-k8", MethodKind.DRAFT, 8, "tiny")
NGRAM = Method("ngram", MethodKind.NGRAM, 4)
MTP = Method("mtp", MethodKind.MTP, 2)
MTP_EXACT = Method("mtp-exact", MethodKind.MTP, 2)
SAMPLE = Claim(Rule.SAMPLE_MATCH, True, "adapter llama_cpp_embedded, from b11549's source")
MATCH = Claim(Rule.GREEDY_MATCH, True, "adapter, from the engine's source")
LOOSE = Claim(Rule.HEURISTIC, False, "ds4's own documentation", "greedy drafts are accepted at temperature > 0")
SILENT = Claim(Rule.UNKNOWN, None, "nobody")
HOSTILE = (
    "<script>alert('x')</script><img src=http://evil.example/a.png onerror=alert(1)>",
    "\x1b[31mred\x1b[0m \x1b]0;title\x07 bell\x07 nul\x00 \u202egnp.exe\u202c",
    "{{ 7*7 }} {% raw %} </pre></details><h1>no</h1>",
)

IDENTITIES = {
    "llama.cpp": EngineIdentity({"xllamacpp": "2026.10.11549"}, "2026.10.11549", "11549", backend="cpu"),
    "mlx-lm": EngineIdentity({"mlx-lm": "0.32.2", "mlx": "0.32.4"}, "0.32.2", backend="cpu"),
    "ds4": EngineIdentity({"sha256": "ab" * 32}, binary_sha256="ab" * 32, backend="cpu"),
    "omlx": EngineIdentity(unavailable="omlx: no such command on PATH"),
}


def full_blocks() -> tuple[BlockSpec, ...]:
    """One of everything: gains, losses, no difference, four groups, and every kind of failure."""
    changed = (
        Condition("top_k", "0", "40", Honoured.CHANGED, "the engine's echo"),
        Condition("seed", "7", None, Honoured.UNKNOWN, "not echoed"),
    )
    base = Spec(
        pass_s=0.010,
        first_s=0.03,
        memory=74e6,
        conditions=(Condition("top_k", "0", "0", Honoured.HONOURED, "the engine's echo"),),
    )
    slow = Spec(pass_s=0.025, first_s=0.06, memory=160e6)
    return (
        BlockSpec(
            LLAMA,
            TINY,
            GREEDY,
            SHORT,
            base,
            (
                Spec(DRAFT4, 0.036, 0.034, 4, 0.72, memory=79e6, claim=MATCH, conditions=changed),
                Spec(NGRAM, 0.0125, 0.030, 4, 0.20, memory=74e6, claim=MATCH),
                Spec(
                    DRAFT8,
                    fate=Status.NOT_ENGAGED,
                    claim=MATCH,
                    log=("load: vocabularies differ from token 3 on", *HOSTILE),
                    reason="the server came up without its drafter: the two vocabularies differ",
                    remedy="use a draft with the target's vocabulary",
                ),
            ),
        ),
        BlockSpec(
            LLAMA,
            TINY,
            WARM,
            SHORT,
            base,
            (
                Spec(DRAFT4, 0.0275, 0.034, 4, 0.60, memory=79e6, claim=SAMPLE),
                Spec(
                    MTP,
                    fate=Status.FAILED,
                    claim=SAMPLE,
                    reason="the engine ended before it was ready (exit status 139)",
                    remedy="see the log",
                    log=("ggml: assertion failed",),
                ),
            ),
        ),
        BlockSpec(
            MLX,
            TINY,
            GREEDY,
            SHORT,
            slow,
            (
                Spec(DRAFT4, 0.045, 0.09, 4, 0.72, memory=171e6, claim=MATCH),
                Spec(NGRAM, claim=MATCH, fate=Status.UNSUPPORTED, reason="MLX-LM has no n-gram drafting"),
            ),
            attempts=2,
        ),
        BlockSpec(MLX, TINY, GREEDY, LONG, slow, (Spec(DRAFT4, 0.045, 0.09, 4, 0.72, memory=176e6, claim=MATCH),)),
        BlockSpec(
            DS4,
            TINY,
            WARM,
            SHORT,
            slow,
            (
                Spec(MTP, 0.026, 0.065, 2, 0.85, memory=182e6, claim=LOOSE),
                Spec(MTP_EXACT, 0.031, 0.065, 2, 0.6, memory=182e6, claim=SILENT, reported=False),
            ),
        ),
        BlockSpec(
            DS4,
            TINY,
            GREEDY,
            SHORT,
            slow,
            (Spec(MTP, 0.026, 0.065, 2, 0.85, memory=182e6, claim=MATCH, part_at=12, text=""),),
        ),
        BlockSpec(
            OMLX,
            TINY,
            GREEDY,
            SHORT,
            Spec(fate=Status.UNAVAILABLE, reason="omlx: no such command on PATH", remedy="brew install omlx"),
            (
                Spec(
                    MTP,
                    fate=Status.UNAVAILABLE,
                    claim=MATCH,
                    reason="omlx: no such command on PATH",
                    remedy="brew install omlx",
                ),
            ),
            twin=False,
        ),
    )


def full_run(path: Path) -> Path:
    settings: dict[str, object] = {"unpinned": ["ds4"], "demo_models": ["tiny"], "numerics_exact": ["ds4"]}
    return write_run(path, full_blocks(), IDENTITIES, run_settings=settings, replays=True)


def empty_run(path: Path) -> Path:
    """A run that ended before anything was measured."""
    blocks = tuple(dataclasses.replace(block, sets=0) for block in full_blocks()[:1])
    return write_run(path, blocks, IDENTITIES)


def bare_run(path: Path) -> Path:
    """A header and an empty journal."""
    return write_run(path, (), {}, started=False)


def interrupted_run(path: Path) -> Path:
    """One complete set of four, the second torn."""
    block = dataclasses.replace(full_blocks()[2], attempts=1, sets=2, planned=4, last_set_torn=True)
    return write_run(path, (block,), IDENTITIES, notes=("interrupted by the user (SIGINT)",))

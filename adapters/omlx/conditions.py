"""What became of each requested setting. oMLX echoes none of them, so most of it is known only by its results."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from adapters.omlx.log import Reading, read_log
from adapters.omlx.options import Path, engine_options, mtp_options, path_of
from adapters.omlx.ready import STATUS, answer
from adapters.omlx.settings import HOME, block_size
from adapters.omlx.stream import REQUEST, Stream, cached_tokens, read_stream
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.capture import SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell
from orchestrator.schema.errors import CaptureError

SENT = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "xtc_probability", "xtc_threshold")
_SENT = f"sent in the request, in {HOME}/model_settings.json besides; oMLX echoes no settings"
_FILE = f"{HOME}/model_settings.json alone: the request has no place for it; oMLX echoes no settings"
_LOG = "stderr.log:statistics line"
_GUARD = re.compile(r"- Memory guard tier: (\w+)")


def conditions(cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
    """Requested and effective settings of one trial; nothing when the capture cannot be read."""
    try:
        stream = read_stream(capture)
        asked = json.loads(capture.steps[REQUEST].body)
    except (CaptureError, KeyError, ValueError):
        return ()
    if not isinstance(asked, dict):
        return ()
    log = read_log(capture.log)
    return (
        *(Condition(name, _word(asked[name]), None, Honoured.UNKNOWN, _SENT) for name in SENT if name in asked),
        Condition("top_k", _word(cell.sampling.top_k), None, Honoured.UNKNOWN, _FILE),
        Condition("repeat_penalty", _word(cell.sampling.repeat_penalty), None, Honoured.UNKNOWN, _FILE),
        _seed(cell, asked.get("seed")),
        _limit(cell, stream),
        Condition("end_of_text", cell.workload.eos.value, "stops there", Honoured.HONOURED, "the only way oMLX has"),
        Condition("chat_template", "none", "none: text completion", Honoured.HONOURED, "POST /v1/completions"),
        _cache(stream),
        _token_ids(stream),
        *_speculation(cell, log),
    )


def session_conditions(cell: Cell, capture: SessionCapture) -> tuple[Condition, ...]:
    """What the whole process tells: its version, and lines about drafts that nothing here can read."""
    status = answer(capture.ready, STATUS) or {}
    version = status.get("version")
    told = isinstance(version, str)
    unread = read_log(capture.stderr).unread
    tuning = "oMLX's own" if engine_options(cell).runtime_tuning else "off"
    return (
        Condition(
            "engine_version",
            "as identified",
            version if told else None,
            Honoured.HONOURED if told else Honoured.UNKNOWN,
            "GET /api/status",
        ),
        Condition(
            "unparsed_log_lines",
            "0",
            str(len(unread)),
            Honoured.CHANGED if unread else Honoured.HONOURED,
            "stderr.log: lines about drafts in no known form",
        ),
        Condition("runtime_tuning", tuning, None, Honoured.UNKNOWN, "OMLX_MLX_RUNTIME_TUNING, equal in every arm"),
        Condition("prompt_lookup", "off", None, Honoured.UNKNOWN, "OMLX_MTP_CONTEXT_COPY=0, equal in every arm"),
        _guard(cell, capture.stderr),
    )


def _guard(cell: Cell, log: str) -> Condition:
    wanted, told = engine_options(cell).memory_guard_tier, _GUARD.search(log)
    if told is None:
        return Condition("memory_guard_tier", wanted, None, Honoured.UNKNOWN, "stderr.log: this version tells none")
    verdict = Honoured.HONOURED if told[1] == wanted else Honoured.CHANGED
    return Condition("memory_guard_tier", wanted, told[1], verdict, "stderr.log")


def _seed(cell: Cell, asked: object) -> Condition:
    seed = "not sent" if asked is None else str(asked)
    if path_of(cell) is Path.NATIVE and not cell.sampling.greedy:
        why = "seeds mlx; at 0.7.0 the acceptance coin is another generator, which nothing seeds"
        return Condition("seed", seed, None, Honoured.UNKNOWN, why)
    return Condition("seed", seed, None, Honoured.UNKNOWN, "sent in the request: best effort by oMLX's own word")


def _limit(cell: Cell, stream: Stream) -> Condition:
    """Known only where the answer ran into it: two answers that ended by themselves show no limit that could differ."""
    limit, source = cell.workload.max_tokens, f"events:{REQUEST}/usage, where it ended the answer"
    if stream.finish != "length" and stream.tokens <= limit:
        return Condition("max_tokens", str(limit), None, Honoured.UNKNOWN, source)
    verdict = Honoured.HONOURED if stream.tokens == limit else Honoured.CHANGED
    return Condition("max_tokens", str(limit), str(stream.tokens), verdict, source)


def _cache(stream: Stream) -> Condition:
    cached = cached_tokens(stream.usage)
    source = f"--no-cache; events:{REQUEST}/usage.prompt_tokens_details.cached_tokens"
    if cached is None:
        return Condition("prompt_cache", "no cached tokens", None, Honoured.UNKNOWN, source)
    verdict = Honoured.CHANGED if cached else Honoured.HONOURED
    return Condition("prompt_cache", "no cached tokens", f"{cached} cached tokens", verdict, source)


def _token_ids(stream: Stream) -> Condition:
    told = "not told: each token stands for its text"
    if not stream.exact:
        told = f"not told, nor which text is whose: {stream.tokens} tokens in {len(stream.pieces)} events"
    return Condition("token_ids", "as sampled", told, Honoured.UNSUPPORTED, f"events:{REQUEST}/text")


def _speculation(cell: Cell, log: Reading) -> Iterable[Condition]:
    wanted = path_of(cell)
    found = [Path.NATIVE] * bool(log.native) + [Path.VLM] * bool(log.vlm or log.started)
    found += [Path.DFLASH] * any(not line.plain for line in log.dflash)
    if not log.whole or (log.unread and not found):
        yield Condition("speculation", wanted.value, None, Honoured.UNKNOWN, _LOG)
    else:
        effective = " and ".join(path.value for path in found) or Path.NONE.value
        verdict = Honoured.HONOURED if effective == wanted.value else Honoured.CHANGED
        yield Condition("speculation", wanted.value, effective, verdict, _LOG)
    if log.fell_back:
        yield Condition("fell_back", "never", log.fell_back[0], Honoured.CHANGED, "stderr.log")
    if wanted is Path.NATIVE:
        yield _native_length(cell, log)
    elif wanted is Path.VLM:
        size = log.vlm[0].block if log.vlm else None
        yield _compared("draft_block", str(block_size(cell)), None if size is None else str(size))
    elif wanted is Path.DFLASH:
        yield _compared("draft_block", str(block_size(cell)), None)


def _native_length(cell: Cell, log: Reading) -> Condition:
    """The line tells the longest draft that was possible; ``MTP/1`` has one a cycle and nothing else."""
    asked = str(cell.method.n_max)
    if mtp_options(cell.method).adaptive:
        asked = f"at most {asked}, oMLX chooses"
    if not log.native:
        return _compared("draft_length", asked, None)
    line = log.native[0]
    if line.by_cycles and cell.method.n_max != 1:  # cycles are counted, not drafts
        return _compared("draft_length", asked, None)
    longest = len(line.depth) if line.depth else 1
    verdict = Honoured.HONOURED if longest == cell.method.n_max else Honoured.CHANGED
    return Condition("draft_length", asked, f"at most {longest}", verdict, f"stderr.log:{line.form}")


def _compared(name: str, asked: str, found: str | None) -> Condition:
    verdict = Honoured.UNKNOWN if found is None else Honoured.HONOURED if asked == found else Honoured.CHANGED
    return Condition(name, asked, found, verdict, _LOG)


def _word(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)

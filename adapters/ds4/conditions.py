"""What became of each requested setting. ds4 echoes none: its command, help and source are what tells."""

from __future__ import annotations

import re
from collections.abc import Iterable

from adapters.ds4.beginning import Told
from adapters.ds4.command import began
from adapters.ds4.options import (
    INSTEAD_OF_SEED_0,
    MAY,
    THINKING_TEMPERATURE,
    engine_options,
    ignores_sampler,
    mtp_options,
    verifies_exactly,
)
from adapters.ds4.run import GENERATE, arguments
from orchestrator.schema.adapter import Condition, Honoured
from orchestrator.schema.capture import SessionCapture, TrialCapture
from orchestrator.schema.cell import Cell, MethodKind

OWN_SAMPLER = {"temperature": f"{THINKING_TEMPERATURE:g}", "top_p": "1", "min_p": "0.05", "top_k": "0"}
"""What the server samples with in thinking mode, whatever the request says."""
IGNORED = "ds4-server --help: in thinking mode, client sampling knobs are ignored"
UNREAD = "ds4 echoes no settings"

CLOCKS = "ds4's lines and printed rates"

_CONTEXT = re.compile(
    r"^(?:\d{4} [\d:]+ )?ds4(?:-server)?: (?:context buffers .*\(ctx=(\d+), backend=([a-z]+),"
    r"|memory detail: ctx=(\d+)(?: .*\bbackend=([a-z]+))?)",
    re.MULTILINE,
)
"""May 2026 in one line, later builds in another, of which some leave the backend out."""


def conditions(cell: Cell, capture: TrialCapture) -> tuple[Condition, ...]:
    """Requested and effective settings of one trial; nothing while its answer is missing."""
    if not capture.complete or not any(step.complete for step in capture.steps.values()):
        return ()
    template = (
        f"one user message in the model's chat template, thinking {'on' if engine_options(cell).thinking else 'off'}"
    )
    return (
        Condition("prompt", "the text as it is", template, Honoured.CHANGED, "ds4 knows no other request"),
        *_sampler(cell),
        *_seed(cell, capture),
        *_speculation(cell),
        *_load_apart(cell, capture),
        *_first_token(cell),
    )


def session_conditions(cell: Cell, capture: SessionCapture) -> tuple[Condition, ...]:
    """Context and backend, which ds4 tells as it starts."""
    return tuple(_context(cell, capture.stderr))


def _sampler(cell: Cell) -> Iterable[Condition]:
    asked = cell.sampling
    settings = {
        "temperature": f"{asked.temperature:g}",
        "top_p": f"{asked.top_p:g}",
        "min_p": f"{asked.min_p:g}",
        "top_k": str(asked.top_k),
    }
    for name, wanted in settings.items():
        if ignores_sampler(cell):
            own = OWN_SAMPLER[name]
            verdict = Honoured.HONOURED if own == wanted else Honoured.CHANGED
            yield Condition(name, wanted, own, verdict, IGNORED)
        elif name == "top_k" and engine_options(cell).mode == "command":
            verdict = Honoured.HONOURED if asked.top_k == 0 or asked.greedy else Honoured.UNSUPPORTED
            yield Condition(name, wanted, "0", verdict, "the command has no such option")
        else:
            yield Condition(name, wanted, None, Honoured.UNKNOWN, UNREAD)


def _seed(cell: Cell, capture: TrialCapture) -> Iterable[Condition]:
    words = arguments(capture.steps.get(GENERATE))
    seed = words[words.index("--seed") + 1] if "--seed" in words[:-1] else None
    if seed is None or cell.sampling.greedy:
        return
    if seed == str(INSTEAD_OF_SEED_0):
        yield Condition("seed", "0", seed, Honoured.CHANGED, "ds4 takes no seed 0")
    else:
        yield Condition("seed", seed, None, Honoured.UNKNOWN, UNREAD)


def _context(cell: Cell, log: str) -> Iterable[Condition]:
    options, found = engine_options(cell), _CONTEXT.search(log)
    size, backend = (found[1] or found[3], found[2] or found[4]) if found is not None else (None, None)
    source = f"stderr.log: {'memory detail' if found is not None and found[3] else 'context buffers'}"
    yield _verdict("context", str(options.context), size, source)
    yield _verdict("backend", options.backend or "the build's own", backend, source, free=options.backend is None)


def _speculation(cell: Cell) -> Iterable[Condition]:
    if cell.method.kind is not MethodKind.MTP:
        return
    method, options = mtp_options(cell.method), engine_options(cell)
    yield Condition("drafter", method.drafter, None, Honoured.UNKNOWN, UNREAD)
    if method.drafter == "support" and (options.quality or method.strict) and not verifies_exactly(cell):
        asked, found = "exact", "batched: the exact decoder exists for two drafts alone"
        yield Condition("verifier", asked, found, Honoured.CHANGED, "ds4.c at 8d57664 and 000401c")


def _load_apart(cell: Cell, capture: TrialCapture) -> Iterable[Condition]:
    """Whether loading, the session and the GPU's warm-up are outside of the wait for the first token."""
    if engine_options(cell).mode == "server":
        return
    begun = began(cell, capture)
    if begun is None:
        yield Condition("load_apart", "yes", None, Honoured.UNKNOWN, CLOCKS)
    elif begun.sure:
        yield Condition("load_apart", "yes", f"yes, by {begun.told}", Honoured.HONOURED, CLOCKS)
    elif begun.told is Told.LINE:
        apart_ms = (begun.earlier_s or 0.0) * 1e3
        when = "earlier" if apart_ms > 0 else "later"
        found = f"by {begun.told}; its own rates put it {abs(apart_ms):.0f} ms {when}"
        yield Condition("load_apart", "yes", found, Honoured.CHANGED, CLOCKS)
    else:
        found = f"loading alone, by {begun.told}"
        yield Condition("load_apart", "yes", found, Honoured.CHANGED, CLOCKS)


def _first_token(cell: Cell) -> Iterable[Condition]:
    """Where a token is printed after its own pass, the wait for the first one holds a pass more than elsewhere."""
    options = engine_options(cell)
    may_sampled = options.generation == MAY and cell.sampling.temperature > 0
    late = cell.method.kind is MethodKind.MTP or options.mode == "server" or may_sampled
    found = "after the pass that follows it" if late else "as soon as it is chosen"
    verdict = Honoured.CHANGED if late else Honoured.HONOURED
    yield Condition("first_token", "as soon as it is chosen", found, verdict, "ds4's source at 8d57664 and b4c5cc8")


def _verdict(name: str, asked: str, found: str | None, source: str, *, free: bool = False) -> Condition:
    if found is None:
        return Condition(name, asked, None, Honoured.UNKNOWN, source)
    return Condition(name, asked, found, Honoured.HONOURED if free or found == asked else Honoured.CHANGED, source)

"""When which tokens came, and which of them one pass of the target made: the latter is inferred.

oMLX hands out the tokens of a cycle one event at a time, a moment apart. How many cycles there were its log tells; so
the longest gaps, as many as there are passes behind the first burst, are taken to be where a new pass ends.
"""

from __future__ import annotations

from adapters.omlx.log import Reading, read_log
from adapters.omlx.options import Path, path_of
from adapters.omlx.stream import Piece, Stream, read_stream
from orchestrator.schema.adapter import Arrival, Arrivals
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell
from orchestrator.schema.errors import CaptureError

UNTOLD = -1
"""Stands for each token of an answer in which it is not known which text is whose."""


def arrivals(cell: Cell, capture: TrialCapture) -> Arrivals | None:
    """Tokens in time; ``None`` while the answer is incomplete or unreadable."""
    try:
        stream = read_stream(capture)
    except CaptureError:
        return None
    starts = burst_starts(stream.pieces, _passes(path_of(cell), read_log(capture.log)))
    came, burst = [], 0
    for place, (piece, ids) in enumerate(zip(stream.pieces, _ids(stream), strict=True)):
        burst += place in starts
        came.append(Arrival(piece.t_s, ids, f"b{burst}"))
    return Arrivals(stream.sent_s, tuple(came), stream.done_s, "inferred")


def burst_starts(pieces: tuple[Piece, ...], passes: int | None) -> frozenset[int]:
    """Places at which a burst begins behind the first one.

    Args:
        pieces: the events, in order.
        passes: passes behind the first burst by the engine's count; ``None`` where each event is one of its own.
    """
    places = range(1, len(pieces))
    if passes is None or passes >= len(places):
        return frozenset(places)
    by_gap = sorted(places, key=lambda place: (pieces[place - 1].t_s - pieces[place].t_s, place))
    return frozenset(by_gap[:passes])


def _passes(path: Path, log: Reading) -> int | None:
    """Native MTP hands out its first two tokens together; VLM MTP and DFlash one, which comes from prefill.

    An answer of which a part was decoded without drafts has passes that no line counts.
    """
    if path is Path.NATIVE and len(log.native) == 1 and not log.fell_back:
        return log.native[0].cycles
    if path is Path.VLM and len(log.vlm) == 1:
        return log.vlm[0].rounds
    if path is Path.DFLASH and len(log.dflash) == 1 and not log.dflash[0].plain:
        return log.dflash[0].cycles
    return None


def _ids(stream: Stream) -> tuple[tuple[int, ...], ...]:
    if stream.exact:
        return tuple((token,) for token in stream.token_ids)
    return tuple((UNTOLD,) * piece.tokens for piece in stream.pieces)

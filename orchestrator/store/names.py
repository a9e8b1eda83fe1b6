"""Names of folders: readable, safe on every file system, bounded in length."""

from __future__ import annotations

import re
from datetime import UTC, datetime

SLUG_LENGTH = 64
"""Characters kept of a readable name; with fingerprint and suffixes a folder stays far below 255 bytes."""


def slug(text: str) -> str:
    """The text in ``a-z 0-9 . _ -`` only, at most :data:`SLUG_LENGTH` characters, never empty or hidden.

    Lower case, since some file systems hold ``A`` and ``a`` for one name. Different texts may share a slug.
    """
    safe = re.sub(r"[^a-z0-9._-]+", "-", text.lower())
    return safe.strip("-.")[:SLUG_LENGTH].rstrip("-.") or "cell"


def cell_folder_name(cell_id: str, fingerprint: str) -> str:
    """``<slug>-<fp8>``: the fingerprint holds the cell's names, so it parts cells that share a slug."""
    return f"{slug(cell_id)}-{slug(fingerprint[:8])}"


def session_folder_name(set_index: int, take: int) -> str:
    """``session-S``, or ``session-S.take-T`` when the set was started anew."""
    return f"session-{set_index}" + (f".take-{take}" if take else "")


def new_run_name(matrix_name: str, utc: str) -> str:
    """``20261129-153005-<slug>``: sorts by time.

    Args:
        matrix_name: the matrix's name.
        utc: the moment as ISO 8601, e.g. of :func:`orchestrator.clock.utc_now`; without a zone it is taken as UTC.
    """
    moment = datetime.fromisoformat(utc)
    moment = moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    return f"{moment:%Y%m%d-%H%M%S}-{slug(matrix_name)}"

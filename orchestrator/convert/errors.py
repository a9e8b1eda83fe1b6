"""What a conversion can fail with."""

from __future__ import annotations

from orchestrator.schema.errors import SpecmatrixError


class ConvertError(SpecmatrixError):
    """A file that cannot be converted rightly; the message says why and, where there is one, what to do."""

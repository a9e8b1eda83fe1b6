"""The error of an address that the client will not talk to."""

from __future__ import annotations

from orchestrator.schema.errors import SpecmatrixError


class AddressError(SpecmatrixError):
    """An engine's address that is not plain HTTP on this machine."""

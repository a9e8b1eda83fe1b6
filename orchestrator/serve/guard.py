"""Who may talk to the page: this machine's browser under its own address, and no page of any other origin."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import parse_qs

from orchestrator.schema.errors import SpecmatrixError

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
MOST_FORM_BYTES = 16_384
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""On every answer. There is no CORS header: no other origin may read anything."""


def loopback(host: str) -> str:
    """The host as given when it is a loopback address.

    Raises:
        SpecmatrixError: it is any other: the page can start measurements, and nobody else may.
    """
    try:
        good = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        good = False
    if not good:
        raise SpecmatrixError(f"--host {host}: only this machine may watch, e.g. 127.0.0.1; use ssh -L for another one")
    return "127.0.0.1" if host == "localhost" else host


@dataclass(frozen=True)
class Gate:
    """The checks of one server; its token is made anew at each start and stands in its own pages only."""

    port: int
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def host_allowed(self, host: str | None) -> bool:
        """Whether the request was addressed to us: a foreign name that resolves to 127.0.0.1 is an attack."""
        return host in {f"{name}:{self.port}" for name in LOOPBACK_NAMES}

    def refusal(self, headers: Mapping[str, str], form: Mapping[str, str]) -> str:
        """Why a form must not be obeyed; empty when it may be."""
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is not None and origin not in {f"http://{name}:{self.port}" for name in LOOPBACK_NAMES}:
            return "the form comes from another site"
        if site is not None and site != "same-origin":
            return "the form comes from another site"
        if not hmac.compare_digest(form.get("token", "").encode(), self.token.encode()):
            return "the form is not of this page, or serve was started anew; load the page again"
        return ""


def read_form(body: bytes) -> dict[str, str]:
    """The fields of a small form, each once; anything else is no form of ours and has no field."""
    try:
        fields = parse_qs(body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=8)
    except ValueError:
        return {}
    return {name: values[0] for name, values in fields.items() if len(values) == 1}

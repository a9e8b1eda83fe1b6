"""Sampling policies that every matrix knows by name; one of the same name in the file wins."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypedDict


class Settings(TypedDict):
    """What a policy says; the seed stays the matrix's default, and all other samplers are off."""

    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repeat_penalty: float
    presence_penalty: float
    frequency_penalty: float


def _policy(temperature: float, *, top_p: float = 1, top_k: int = 0, min_p: float = 0) -> Settings:
    return Settings(
        temperature=float(temperature),
        top_k=top_k,
        top_p=float(top_p),
        min_p=float(min_p),
        repeat_penalty=1.0,
        presence_penalty=0.0,
        frequency_penalty=0.0,
    )


POLICIES: Mapping[str, Settings] = {
    "greedy": _policy(0),
    # The whole distribution: what exactness is easiest to judge on.
    "t0.6": _policy(0.6),
    "t0.8": _policy(0.8),
    "t1.0": _policy(1),
    # Cut distributions, as programs and model cards commonly set them. p: top-p, k: top-k, m: min-p.
    "t0.6-p0.95": _policy(0.6, top_p=0.95),
    "t0.6-p0.95-k20": _policy(0.6, top_p=0.95, top_k=20),
    "t0.8-p0.95": _policy(0.8, top_p=0.95),
    "t0.8-p0.95-k40": _policy(0.8, top_p=0.95, top_k=40),
    "t0.8-m0.05": _policy(0.8, min_p=0.05),
    "t0.8-p0.95-k40-m0.05": _policy(0.8, top_p=0.95, top_k=40, min_p=0.05),
    "t1.0-p0.95": _policy(1, top_p=0.95),
    "t1.0-p0.95-k64": _policy(1, top_p=0.95, top_k=64),
    "t1.0-m0.1": _policy(1, min_p=0.1),
}
"""The name says the whole policy: temperature, then each sampler that is not off."""

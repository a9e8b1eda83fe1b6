"""Which adapters exist: the built-in ones, and those that other packages register."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING

from orchestrator.schema.errors import SpecmatrixError

if TYPE_CHECKING:
    from orchestrator.schema.adapter import Adapter

ENTRY_POINT_GROUP = "specmatrix.adapters"

BUILT_IN: Mapping[str, str] = {
    "llama_cpp": "adapters.llama_cpp.server",
    "llama_cpp_embedded": "adapters.llama_cpp.embedded",
    "llama_cpp_python": "adapters.llama_cpp_python.adapter",
    "mlx_lm": "adapters.mlx_lm.adapter",
    "mlx_vlm": "adapters.mlx_vlm.adapter",
    "slipstream": "adapters.slipstream.adapter",
    "ds4": "adapters.ds4.adapter",
    "omlx": "adapters.omlx.adapter",
    "mtplx": "adapters.mtplx.adapter",
}
"""The module of each adapter, in the order in which tables list them."""


@dataclass(frozen=True, slots=True)
class Broken:
    """An adapter that is registered and cannot be loaded."""

    name: str
    why: str


@cache
def load_all() -> tuple[Mapping[str, Adapter], tuple[Broken, ...]]:
    """Every adapter by name, and those that could not be loaded with the reason."""
    found: dict[str, Adapter] = {}
    broken: list[Broken] = []
    for name, module in BUILT_IN.items():
        found[name] = importlib.import_module(module).ADAPTER
    for point in entry_points(group=ENTRY_POINT_GROUP):
        try:
            adapter: Adapter = point.load()
        except Exception as err:  # noqa: BLE001  (another package's fault must not stop ours)
            broken.append(Broken(point.name, f"{type(err).__name__}: {err}"))
            continue
        if point.name in found:
            broken.append(Broken(point.name, "a built-in adapter has this name"))
            continue
        found[point.name] = adapter
    return found, tuple(broken)


def adapters() -> Mapping[str, Adapter]:
    """Every adapter that loads, by name."""
    return load_all()[0]


def adapter(name: str) -> Adapter:
    """The adapter of that name.

    Raises:
        SpecmatrixError: there is none; the message lists those there are.
    """
    found, broken = load_all()
    if name in found:
        return found[name]
    for entry in broken:
        if entry.name == name:
            raise SpecmatrixError(f"adapter {name!r} cannot be loaded: {entry.why}")
    raise SpecmatrixError(f"no adapter {name!r}; there are: {', '.join(sorted(found))}")

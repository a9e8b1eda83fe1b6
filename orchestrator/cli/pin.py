"""``pin``: write the versions found on this machine into the matrix."""

from __future__ import annotations

import os
import tempfile
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator import registry
from orchestrator.cli.tables import plain, table
from orchestrator.cli.workspace import SCRATCH
from orchestrator.demo.export import resolve as resolve_demo
from orchestrator.matrix.expand import default_resolver, resolved_engine
from orchestrator.matrix.load import load_matrix
from orchestrator.matrix.pins import with_pins
from orchestrator.runner.survey import survey_engines
from orchestrator.schema.errors import SpecmatrixError
from orchestrator.workloads.load import known_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from orchestrator.runner.survey import EngineFinding

NOT_VERSIONS = frozenset({"python", "device"})
"""Facts of the machine rather than of the engine: they are recorded, and pinned only where the matrix names them."""


def pin_engines(matrix: Path, reports: Path, names: Sequence[str]) -> None:
    """Writes the pins of the named engines, or of every engine found, and prints what changed.

    Raises:
        SpecmatrixError: an engine is not in the matrix, a named one is not on this machine, none is, or a pin cannot
            be written in place. Nothing is written then.
    """
    raw = _read(matrix)
    found = _survey(matrix, reports, names)
    wanted = _wanted(found, named=bool(names))
    changed = with_pins(raw, wanted)
    console = Console()
    if changed == raw:
        console.print(plain(f"{matrix}: nothing to change, every pin is as found"))
    else:
        _write(matrix, raw, changed)
    rows = [(name, _words(found[name].config.pin) or "unpinned", _words(pin)) for name, pin in wanted.items()]
    rows += [
        (name, _words(one.config.pin) or "unpinned", f"left as it is: {one.identity.unavailable}")
        for name, one in found.items()
        if name not in wanted
    ]
    console.print(table(f"Pins in {matrix}", ("engine", "was", "is"), rows))


def _survey(matrix: Path, reports: Path, names: Sequence[str]) -> Mapping[str, EngineFinding]:
    adapters = registry.adapters()
    loaded = load_matrix(matrix, adapters, known_names())
    unknown = [name for name in names if name not in loaded.engines]
    if unknown:
        raise SpecmatrixError(f"{matrix}: no engine {', '.join(unknown)}; there are: {', '.join(loaded.engines)}")
    resolve = default_resolver(matrix.resolve().parent, resolve_demo)
    configs = [resolved_engine(loaded.engines[name], resolve) for name in names or loaded.engines]
    scratch = reports / SCRATCH
    scratch.mkdir(parents=True, exist_ok=True)
    return survey_engines(configs, adapters, scratch)


def _wanted(found: Mapping[str, EngineFinding], *, named: bool) -> dict[str, dict[str, str]]:
    missing = {name: one.identity.unavailable for name, one in found.items() if one.identity.unavailable is not None}
    if missing and (named or len(missing) == len(found)):
        told = "; ".join(f"{name}: {why}" for name, why in missing.items())
        raise SpecmatrixError(f"cannot pin what is not on this machine: {told}")
    wanted = {}
    for name, one in found.items():
        if name in missing:
            continue
        facts = one.identity.facts
        pin = {key: value for key, value in facts.items() if key not in NOT_VERSIONS or key in one.config.pin}
        if not pin:
            raise SpecmatrixError(f"{name}: this engine tells no version, so there is nothing to pin")
        wanted[name] = pin
    return wanted


def _words(pin: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in pin.items())


def _read(path: Path) -> str:
    """The text with its line ends and byte-order mark as they are."""
    try:
        return path.read_bytes().decode("utf-8")
    except OSError as err:
        raise SpecmatrixError(f"{path}: cannot be read ({err.strerror}); `specmatrix init` writes a start") from err
    except UnicodeDecodeError as err:
        raise SpecmatrixError(f"{path}: not UTF-8; save the file as UTF-8") from err


def _write(path: Path, before: str, after: str) -> None:
    """In one step, under the same permissions; refuses when somebody else wrote meanwhile."""
    real = path.resolve()
    if _read(real) != before:
        raise SpecmatrixError(f"{path}: was changed meanwhile; nothing was written, pin again")
    try:
        handle, name = tempfile.mkstemp(prefix=real.name, suffix=".new", dir=real.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(after.encode("utf-8"))
            os.chmod(name, real.stat().st_mode & 0o7777)  # noqa: PTH101  (a name from mkstemp)
            os.replace(name, real)  # noqa: PTH105
        except BaseException:
            os.unlink(name)  # noqa: PTH108
            raise
    except OSError as err:
        raise SpecmatrixError(f"{path}: cannot be written ({err.strerror})") from err

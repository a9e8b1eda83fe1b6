"""``convert``: one model's weights in the form another engine reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cli.tables import plain
from orchestrator.convert.errors import ConvertError
from orchestrator.convert.write import to_folder, to_gguf
from orchestrator.demo.export import REFERENCE_PREFIX
from orchestrator.demo.export import resolve as resolve_demo
from orchestrator.demo.packaged import packaged_at

if TYPE_CHECKING:
    from orchestrator.convert.weights import Number

NUMBERS: tuple[Number, ...] = ("f32", "f16")


def convert_model(source: str, destination: Path, number: str, *, gguf: bool) -> None:
    """Writes the model and says what it is.

    Args:
        source: a GGUF file, or ``demo:NAME``.
        destination: a folder, or with ``gguf`` a file; it must not be there yet.
        number: one of :data:`NUMBERS`.
        gguf: a GGUF file instead of a folder.

    Raises:
        ConvertError: there is no such source or number format, or it cannot be converted.
    """
    chosen = next((known for known in NUMBERS if known == number), None)
    if chosen is None:
        raise ConvertError(f"--dtype {number}: there are {', '.join(NUMBERS)}")
    path = _source(source)
    made = (to_gguf if gguf else to_folder)(path, destination, chosen)
    note = "the numbers the file stands for" if chosen == "f32" else "rounded to f16"
    Console().print(plain(f"wrote {made}: the weights of {path.name} as {chosen}, {note}"), soft_wrap=True)


def _source(written: str) -> Path:
    if not written.startswith(REFERENCE_PREFIX):
        path = Path(written).expanduser()
        if not path.is_file():
            raise ConvertError(f"{written}: there is no such file")
        return path
    try:
        path = resolve_demo(written)
    except ValueError as err:
        raise ConvertError(f"{written}: {err}") from err
    packaged = packaged_at(str(path))
    if packaged is not None and not path.is_file():
        raise ConvertError(f"{written}: not installed; {packaged.install_command}")
    return path

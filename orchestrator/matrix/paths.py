"""Paths in a matrix: ``~``, relative to the matrix's folder, or a demo model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from orchestrator.schema.errors import MatrixError

DEMO = "demo:"


def default_resolver(matrix_folder: Path, demo: Callable[[str], Path]) -> Callable[[str], str]:
    """A function that turns a path as written into an absolute one; whether it exists does not matter.

    Args:
        matrix_folder: where relative paths start.
        demo: finds a demo model by the name after ``demo:``; may raise ``ValueError`` or ``LookupError``.
    """
    folder = matrix_folder.absolute()

    def resolve(written: str) -> str:
        if written.startswith(DEMO):
            try:
                return str(demo(written.removeprefix(DEMO)))
            except (ValueError, LookupError) as err:
                raise MatrixError((f"{written}: {err}",)) from err
        try:
            return str(folder / Path(written).expanduser())
        except RuntimeError as err:
            raise MatrixError((f"{written}: there is no home folder for this name; write the path out",)) from err

    return resolve

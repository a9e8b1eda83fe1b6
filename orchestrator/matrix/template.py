"""The matrix to start from, and where the JSON Schema lies that editors check it by."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent
TEMPLATE = FOLDER / "template.yaml"
SCHEMA = FOLDER / "matrix.schema.json"
_DIRECTIVE = "# yaml-language-server: $schema="


def template_text(schema: Path | None = None) -> str:
    """The commented default matrix.

    Args:
        schema: which schema the first line names; by default the one that fits this repository's own folder. A matrix
            written anywhere else should name :data:`SCHEMA`, the installed one.
    """
    text = TEMPLATE.read_text(encoding="utf-8")
    if schema is None:
        return text
    first, rest = text.split("\n", 1)
    return f"{first[: len(_DIRECTIVE)]}{schema}\n{rest}"

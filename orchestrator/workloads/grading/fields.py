"""Reads the fields of a task, each with its own complaint."""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from orchestrator.workloads.errors import WorkloadError

MOST_NODES = 10_000
"""Values and keys that one piece of JSON in a task may have."""
DEEPEST = 64
"""Levels of nesting up to which JSON is looked at, in tasks and in answers."""


class Fields:
    """The fields of one task; every reader names the field and the place when it refuses."""

    def __init__(self, fields: Mapping[str, object], where: str) -> None:
        self._fields, self._where = fields, where

    def refuse(self, why: str) -> WorkloadError:
        """An error about this task."""
        return WorkloadError(f"{self._where}: task: {why}")

    def only(self, known: Collection[str]) -> None:
        """Refuses fields that the kind does not have."""
        unknown = sorted(str(key) for key in set(self._fields) - set(known))
        if unknown:
            raise self.refuse(f"unknown field {', '.join(unknown)}; expected {', '.join(known)}")

    def text(self, key: str) -> str:
        """A text that must be there and must not be empty."""
        value = self._fields.get(key)
        if not isinstance(value, str) or not value:
            raise self.refuse(f"{key!r} must be a text that is not empty")
        return value

    def maybe_text(self, key: str) -> str | None:
        """A text that is not empty, or nothing."""
        return None if self._fields.get(key) is None else self.text(key)

    def texts(self, key: str, default: Sequence[str] | None = None) -> list[str]:
        """A list of texts, or one text alone; ``default`` where the field is absent."""
        value = self._fields.get(key)
        if value is None and default is not None:
            return list(default)
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list) or not value or not all(isinstance(item, str) and item for item in value):
            raise self.refuse(f"{key!r} must be a text, or a list of texts, none of them empty")
        return value

    def choices(self, key: str, known: Collection[str], default: Sequence[str]) -> list[str]:
        """A list, possibly empty, of known words without repeats, in the order of ``known``."""
        value = self._fields.get(key)
        if value is None:
            return list(default)
        if not isinstance(value, list) or not all(item in known for item in value if isinstance(item, str)):
            raise self.refuse(f"{key!r} must be a list of {', '.join(known)}")
        if not all(isinstance(item, str) for item in value):
            raise self.refuse(f"{key!r} must be a list of {', '.join(known)}")
        return [word for word in known if word in value]

    def choice(self, key: str, known: Sequence[str]) -> str:
        """One of the known words; the first where the field is absent."""
        value = self._fields.get(key)
        if value is None:
            return known[0]
        if not isinstance(value, str) or value not in known:
            raise self.refuse(f"{key!r} must be one of {', '.join(known)}")
        return value

    def truth(self, key: str) -> bool:
        """Yes or no; no where the field is absent."""
        value = self._fields.get(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.refuse(f"{key!r} must be true or false")
        return value

    def number(self, key: str, default: float | None = None) -> int | float:
        """A finite number; ``default`` where the field is absent."""
        value = self._fields.get(key)
        if value is None and default is not None:
            return default
        try:
            finite = not isinstance(value, bool) and isinstance(value, int | float) and math.isfinite(value)
        except OverflowError as err:
            raise self.refuse(f"{key!r} is beyond what a number can hold") from err
        if not finite or not isinstance(value, int | float):
            raise self.refuse(f"{key!r} must be a number")
        return value

    def has(self, key: str) -> bool:
        """Whether the field is there, be it null."""
        return key in self._fields

    def value(self, key: str) -> Any:  # noqa: ANN401  (any JSON)
        """Any JSON, bounded in size and depth."""
        return self.bounded(key, self._fields.get(key))

    def mapping(self, key: str) -> Mapping[str, Any]:
        """An object, bounded in size and depth."""
        value = self._fields.get(key)
        if not isinstance(value, Mapping):
            raise self.refuse(f"{key!r} must be an object")
        found: Mapping[str, Any] = self.bounded(key, value)
        return found

    def bounded(self, key: str, value: object) -> Any:  # noqa: ANN401  (any JSON)
        """The value as a copy that is plain JSON.

        Raises:
            WorkloadError: it is too large, too deep, or no JSON.
        """
        nodes, level = 0, [value]
        for _ in range(DEEPEST + 1):
            nodes += len(level)
            if nodes > MOST_NODES:
                raise self.refuse(f"{key!r} has more than {MOST_NODES:,} values")
            level = [child for item in level for child in _children(item)]
            if not level:
                break
        else:
            raise self.refuse(f"{key!r} is nested deeper than {DEEPEST} levels")
        try:
            return json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError) as err:
            raise self.refuse(f"{key!r} is not JSON: {err}") from err


def _children(item: object) -> list[object]:
    if isinstance(item, Mapping):
        return list(item.values())
    return list(item) if isinstance(item, list | tuple) else []

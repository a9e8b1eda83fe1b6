"""A matrix file as read: its text, its tree, and the faults found in it so far."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.matrix.yaml_tree import Mapping, Mark, Node, Sequence, Unreadable, compose
from orchestrator.schema.errors import MatrixError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MAX_BYTES = 1 << 20
"""Of a matrix file; one that is larger is something else."""

Part = str | int
TreePath = tuple[Part, ...]


@dataclass(slots=True)
class Document:
    """One matrix file. Faults are collected, so that the user sees all of them at once."""

    file: str
    text: str
    root: Mapping
    _faults: dict[tuple[Mark, TreePath, str], None] = field(default_factory=dict)

    @property
    def faulty(self) -> bool:
        """Whether anything is wrong so far."""
        return bool(self._faults)

    def node(self, path: TreePath) -> Node | None:
        """The value at ``path``, if there is one."""
        node: Node = self.root
        for part in path:
            if isinstance(node, Mapping) and part in node.entries:
                node = node.entries[str(part)][1]
            elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
                node = node.items[part]
            else:
                return None
        return node

    def key_mark(self, path: TreePath) -> Mark:
        """Where the key of ``path`` stands; for an item of a list, where the item does."""
        parent = self.node(path[:-1]) if path else None
        if isinstance(parent, Mapping) and path[-1] in parent.entries:
            return parent.entries[str(path[-1])][0]
        return self.value_mark(path)

    def value_mark(self, path: TreePath) -> Mark:
        """Where the value of ``path`` begins, or that of the nearest thing around it that exists."""
        while (node := self.node(path)) is None:
            path = path[:-1]
        return node.at

    def where(self, path: TreePath) -> str:
        """``file:line:column`` of the value at ``path``."""
        mark = self.value_mark(path)
        return f"{self.file}:{mark.line}:{mark.column}"

    def fault(self, path: TreePath, what: str, *, at: Mark | None = None) -> None:
        """Note a fault of the value at ``path``; the same words about the same place are noted once."""
        self._faults[at or self.value_mark(path), path, what] = None

    def raise_faults(self) -> None:
        """Do nothing when the file is fine.

        Raises:
            MatrixError: every fault, in the order of the text.
        """
        if self._faults:
            ordered = sorted(self._faults, key=lambda entry: entry[0])
            raise MatrixError(tuple(line(self.file, mark, path, what) for mark, path, what in ordered))


def read_document(path: Path) -> Document:
    """The matrix file at ``path``.

    Raises:
        MatrixError: the file cannot be read, is not UTF-8, or is not a YAML mapping.
    """
    text = _text(path)
    file = str(path)
    try:
        root, faults = compose(text)
    except Unreadable as err:
        raise MatrixError((line(file, err.fault.at, (), err.fault.what),)) from err
    if not isinstance(root, Mapping):
        what = f"a matrix is a mapping of keys such as engines, models, matrix; this is {described(root)}"
        raise MatrixError((line(file, root.at, (), what),))
    document = Document(file, text, root)
    places = dict(_places(root, ()))
    for fault in faults:
        document.fault(places.get(fault.beside or fault.at, ()), fault.what, at=fault.at)
    return document


def line(file: str, mark: Mark, path: TreePath, what: str) -> str:
    """``file:line:column: path: what``."""
    place = f"{written(path)}: " if path else ""
    return f"{file}:{mark.line}:{mark.column}: {place}{what}"


def written(path: TreePath) -> str:
    """A path as people write it: ``matrix.include[0].engine``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text.removeprefix(".")


def plain(node: Node) -> Any:  # noqa: ANN401  (what YAML and JSON have in common)
    """The value as plain data."""
    if isinstance(node, Mapping):
        return {key: plain(value) for key, (_, value) in node.entries.items()}
    if isinstance(node, Sequence):
        return [plain(item) for item in node.items]
    return node.value


def described(node: Node | None) -> str:
    """What was found, in a few words."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, Sequence):
        return "a list"
    if node is None or (node.plain and node.value is None):
        return "nothing"
    short = node.text if len(node.text) <= 40 else node.text[:39] + "…"
    if isinstance(node.value, str):
        return f'"{short}"'
    if node.old_boolean:
        return f'{short}, which YAML reads as {str(node.value).lower()} (for the word, write "{short}" in quotes)'
    return f"the boolean {short}" if isinstance(node.value, bool) else f"the number {short}"


def suggestion(word: str, allowed: Iterable[str]) -> str:
    """``; did you mean "engines"?`` or nothing."""
    known = list(allowed)
    found = get_close_matches(word, known, n=1, cutoff=0.5) if word not in known else []
    return f'; did you mean "{found[0]}"?' if found else ""


def listed(words: Iterable[str]) -> str:
    """``a, b, c``, at most twenty of them."""
    known = list(words)
    shown = ", ".join(known[:20]) or "none"
    return shown if len(known) <= 20 else f"{shown}, … ({len(known)} in all)"


def _places(node: Node, path: TreePath) -> Iterator[tuple[Mark, TreePath]]:
    """Where each key and item stands."""
    if isinstance(node, Mapping):
        for key, (mark, value) in node.entries.items():
            yield mark, (*path, key)
            yield value.at, (*path, key)
            yield from _places(value, (*path, key))
    elif isinstance(node, Sequence):
        for index, item in enumerate(node.items):
            yield item.at, (*path, index)
            yield from _places(item, (*path, index))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(MAX_BYTES + 1)
    except FileNotFoundError as err:
        raise MatrixError((f"{path}: there is no such file; `specmatrix init` writes one to start from",)) from err
    except IsADirectoryError as err:
        raise MatrixError((f"{path}: this is a folder; name the matrix file in it",)) from err
    except OSError as err:
        raise MatrixError((f"{path}: cannot be read ({err.strerror})",)) from err
    if len(raw) > MAX_BYTES:
        raise MatrixError((f"{path}: more than {MAX_BYTES} bytes; this is no matrix file",))
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as err:
        before = raw[: err.start]
        column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8-sig", "replace")) + 1
        mark = Mark(before.count(b"\n") + 1, column)
        what = f"byte 0x{raw[err.start]:02X} is not UTF-8; save the file as UTF-8"
        raise MatrixError((line(str(path), mark, (), what),)) from err

"""The committed list of every exported file with its size and SHA-256."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pathlib
from collections.abc import Mapping

MANIFEST = pathlib.Path(__file__).parent / "manifest.json"
#: Version of the manifest's own layout. 1: the first.
VERSION = 1


class ManifestError(ValueError):
    """The manifest is missing, unreadable, or does not fit what was exported."""


@dataclasses.dataclass(frozen=True, slots=True)
class Entry:
    """Identity of one exported file: its size in bytes and the SHA-256 of its content."""

    size: int
    sha256: str

    @classmethod
    def of(cls, content: bytes) -> Entry:
        """The entry of a file with this content."""
        return cls(len(content), hashlib.sha256(content).hexdigest())

    def fits(self, path: pathlib.Path) -> bool:
        """Whether the file at `path` exists and has exactly this content."""
        try:
            if path.stat().st_size != self.size:
                return False
            with path.open("rb") as stream:
                return hashlib.file_digest(stream, "sha256").hexdigest() == self.sha256
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            return False


def read_manifest(path: pathlib.Path = MANIFEST) -> dict[str, Entry]:
    """The entries of a manifest by file, relative to an export's destination.

    Raises:
        ManifestError: The file is missing, is not JSON, or has another version.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        version = content["version"]
        entries = {name: Entry(entry["size"], entry["sha256"]) for name, entry in content["files"].items()}
    except (OSError, ValueError, KeyError, TypeError) as err:
        remedy = "write it with python -m orchestrator.demo.export --write-manifest"
        message = f"{path}: not a demo manifest ({err}); {remedy}"
        raise ManifestError(message) from err
    if version != VERSION:
        message = f"{path}: manifest version {version}, this program reads {VERSION}"
        raise ManifestError(message)
    return entries


def manifest_text(entries: Mapping[str, Entry]) -> str:
    """The text of a manifest with `entries`, sorted by file."""
    files = {name: dataclasses.asdict(entries[name]) for name in sorted(entries)}
    return json.dumps({"version": VERSION, "files": files}, indent=1) + "\n"


def manifest_hash(path: pathlib.Path = MANIFEST) -> str:
    """Twelve hexadecimal digits that name this manifest's content."""
    return hashlib.sha256(manifest_text(read_manifest(path)).encode()).hexdigest()[:12]

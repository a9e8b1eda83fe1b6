"""SHA-256 of model files and folders, remembered as long as the files look untouched."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from orchestrator.schema.errors import SpecmatrixError

_VERSION = 1


class HashError(SpecmatrixError):
    """A model file that cannot be hashed."""


def sha256_of(path: Path, cache: Path) -> str:
    """The hexadecimal SHA-256 of a file, or of a folder's files.

    A folder's hash is taken over the sorted relative names of its files and their hashes, so renaming a file changes
    it and the order of a directory listing does not. Hidden files and folders are left out: download tools keep
    time stamps there. Links are followed to files, not to folders.

    Args:
        path: a file or a folder.
        cache: a JSON file of earlier results by absolute path, size and modification time (ns); made when missing,
            ignored when damaged, and replaced in one step.

    Raises:
        HashError: there is nothing at ``path``, it cannot be read, it changed meanwhile, or a folder has no files.
    """
    known = _load(cache)
    fresh: dict[str, str] = {}
    try:
        if path.is_dir():
            files = _files(path)
            if not files:
                raise HashError(f"{path}: the folder has no files; give the path of a model")
            parts = {name: _file(path / name, known, fresh) for name in files}
            digest = _folder(parts)
        else:
            digest = _file(path, known, fresh)
    except OSError as err:
        what = f"{err.filename or path}: cannot be hashed: {err.strerror or err}"
        raise HashError(f"{what}; check the path in the matrix file") from err
    if fresh:
        _save(cache, fresh)
    return digest


def _files(folder: Path) -> list[str]:
    found: list[str] = []
    for here, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = [name for name in folders if not name.startswith(".")]
        found += [(Path(here) / name).relative_to(folder).as_posix() for name in names if not name.startswith(".")]
    return sorted(found)


def _raise(err: OSError) -> None:
    raise err


def _folder(parts: Mapping[str, str]) -> str:
    text = json.dumps(sorted(parts.items()), ensure_ascii=True)
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _file(path: Path, known: Mapping[str, str], fresh: dict[str, str]) -> str:
    real = path.resolve(strict=True)
    key = _key(real)
    if key in known:
        return known[key]
    with real.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if _key(real) != key:
        raise HashError(f"{real}: changed while it was hashed; wait until it is written, then try again")
    fresh[key] = digest
    return digest


def _key(real: Path) -> str:
    stat = real.stat()
    return f"{stat.st_size}:{stat.st_mtime_ns}:{real}"


def _load(cache: Path) -> dict[str, str]:
    try:
        body = json.loads(cache.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    files = body.get("files") if isinstance(body, dict) and body.get("version") == _VERSION else None
    if not isinstance(files, dict):
        return {}
    return {key: value for key, value in files.items() if isinstance(value, str)}


def _save(cache: Path, fresh: Mapping[str, str]) -> None:
    """Add to the file as it is now; a cache that cannot be written costs time, not correctness."""
    with contextlib.suppress(OSError):
        cache.parent.mkdir(parents=True, exist_ok=True)
        body = {"version": _VERSION, "files": {**_load(cache), **fresh}}
        handle, name = tempfile.mkstemp(prefix=cache.name, suffix=".new", dir=cache.parent)
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump(body, file, indent=1)
            Path(name).replace(cache)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise

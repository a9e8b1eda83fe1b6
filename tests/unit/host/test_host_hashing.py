from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from orchestrator.host import hashing
from orchestrator.host.hashing import HashError, sha256_of


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The number of files really read so far."""
    count = []
    real = hashlib.file_digest

    def counted(file: BinaryIO, name: str) -> Any:
        count.append(file.name)
        return real(file, name)

    monkeypatch.setattr(hashing.hashlib, "file_digest", counted)
    return count


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "hashes.json"


def folder(root: Path, **files: str) -> Path:
    for name, text in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_files_hash_is_sha256_and_is_remembered(tmp_path: Path, cache: Path, reads: list[str]) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"abc")
    known = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    assert sha256_of(path, cache) == known
    assert sha256_of(path, cache) == known
    assert len(reads) == 1
    assert [entry.name for entry in cache.parent.iterdir()] == ["hashes.json"]


def test_a_changed_file_is_hashed_again(tmp_path: Path, cache: Path, reads: list[str]) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"abc")
    os.utime(path, ns=(0, 1_000_000_000))
    first = sha256_of(path, cache)
    path.write_bytes(b"abd")
    os.utime(path, ns=(0, 1_000_000_001))
    assert sha256_of(path, cache) == hashlib.sha256(b"abd").hexdigest() != first
    path.write_bytes(b"abcd")
    os.utime(path, ns=(0, 1_000_000_001))
    assert sha256_of(path, cache) == hashlib.sha256(b"abcd").hexdigest()
    assert len(reads) == 3


def test_a_link_is_the_file_it_names(tmp_path: Path, cache: Path, reads: list[str]) -> None:
    path = tmp_path / "blob"
    path.write_bytes(b"abc")
    (tmp_path / "link").symlink_to(path)
    assert sha256_of(tmp_path / "link", cache) == sha256_of(path, cache)
    assert len(reads) == 1


def test_a_folder_is_hashed_over_names_and_contents(tmp_path: Path, cache: Path) -> None:
    one = sha256_of(folder(tmp_path / "one", config="c", shards__a="1", shards__b="2"), cache)
    assert sha256_of(folder(tmp_path / "two", shards__b="2", shards__a="1", config="c"), cache) == one
    other = [
        folder(tmp_path / "renamed", config="c", shards__a="1", shards__x="2"),
        folder(tmp_path / "changed", config="c", shards__a="1", shards__b="3"),
        folder(tmp_path / "swapped", config="c", shards__a="2", shards__b="1"),
        folder(tmp_path / "moved", config="c", shards__a="1", b="2"),
        folder(tmp_path / "less", config="c", shards__a="1"),
    ]
    assert len({one, *(sha256_of(path, cache) for path in other)}) == 6


def test_hidden_files_do_not_count(tmp_path: Path, cache: Path) -> None:
    model = folder(tmp_path / "one", config="c")
    before = sha256_of(model, cache)
    folder(model, _dot_cache__stamp="today", _dot_hidden="x")
    assert sha256_of(model, cache) == before


def test_only_the_changed_file_of_a_folder_is_read_again(tmp_path: Path, cache: Path, reads: list[str]) -> None:
    model = folder(tmp_path / "one", a="1", b="2", c="3")
    sha256_of(model, cache)
    (model / "b").write_text("longer")
    sha256_of(model, cache)
    assert [name.rpartition("/")[2] for name in reads] == ["a", "b", "c", "b"]


@pytest.mark.parametrize(
    "text", ["", "not json", "[]", '{"version": 1, "files": 3}', '{"version": 99, "files": {}}', '{"files": {"x": 1}}']
)
def test_a_damaged_cache_is_made_anew(tmp_path: Path, cache: Path, text: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"abc")
    cache.parent.mkdir()
    cache.write_text(text)
    assert sha256_of(path, cache) == hashlib.sha256(b"abc").hexdigest()
    assert len(json.loads(cache.read_text())["files"]) == 1


def test_other_entries_of_the_cache_stay(tmp_path: Path, cache: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
        sha256_of(tmp_path / name, cache)
    assert len(json.loads(cache.read_text())["files"]) == 2


def test_a_cache_that_cannot_be_written_costs_only_time(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"abc")
    assert sha256_of(path, path / "cache.json") == hashlib.sha256(b"abc").hexdigest()


def test_what_cannot_be_hashed_is_an_error(tmp_path: Path, cache: Path) -> None:
    with pytest.raises(HashError, match=r"nowhere\.gguf: cannot be hashed: No such file"):
        sha256_of(tmp_path / "nowhere.gguf", cache)
    (tmp_path / "empty").mkdir()
    with pytest.raises(HashError, match="no files"):
        sha256_of(tmp_path / "empty", cache)
    (tmp_path / "empty" / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(HashError, match="cannot be hashed"):
        sha256_of(tmp_path / "empty", cache)


def test_a_file_that_changes_meanwhile_is_an_error(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(b"abc")
    real = hashlib.file_digest

    def grow(file: BinaryIO, name: str) -> Any:
        with path.open("ab") as more:
            more.write(b"d")
        return real(file, name)

    monkeypatch.setattr(hashing.hashlib, "file_digest", grow)
    with pytest.raises(HashError, match="changed while it was hashed"):
        sha256_of(path, cache)
    assert not cache.exists()

"""Writes the demo models where engines can load them, and finds them by name.

Usage: python -m orchestrator.demo.export [DESTINATION] [--write-manifest]

An export writes each file beside its place and moves it there in one step, so a reader never sees half a file and two
exports at once leave the same bytes. A file that already has the manifest's size and SHA-256 is left alone.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import pathlib
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence

from orchestrator.demo.committed import COMMITTED
from orchestrator.demo.manifest import MANIFEST, Entry, ManifestError, manifest_hash, manifest_text, read_manifest
from orchestrator.demo.packaged import PACKAGED
from orchestrator.demo.recipes import NAMES, RECIPES, Recipe

#: Environment variable that replaces `default_directory`.
DIRECTORY_VARIABLE = "SPECMATRIX_DEMO_DIR"
#: How a matrix marks a demo model.
REFERENCE_PREFIX = "demo:"


class UnknownDemoNameError(ValueError):
    """A reference names no demo model."""


@dataclasses.dataclass(frozen=True, slots=True)
class DemoFiles:
    """An export on disk.

    Attributes:
        directory: Where it lies.
        paths: GGUF file or MLX folder of every exported name.
        written: Files this call wrote, relative to `directory`; empty when all were there already.
    """

    directory: pathlib.Path
    paths: Mapping[str, pathlib.Path]
    written: tuple[str, ...]


def default_directory() -> pathlib.Path:
    """Where `resolve` exports to: a cache directory of this manifest's own, or `SPECMATRIX_DEMO_DIR`."""
    override = os.environ.get(DIRECTORY_VARIABLE)
    if override:
        return pathlib.Path(override)
    cache = os.environ.get("XDG_CACHE_HOME")
    base = pathlib.Path(cache) if cache else pathlib.Path.home() / ".cache"
    return base / "specmatrix" / "demo" / manifest_hash()


def ensure_exported(destination: pathlib.Path, names: Collection[str] | None = None) -> DemoFiles:
    """The demo models in `destination`, written there as far as they are missing or changed.

    Args:
        destination: Directory of the export; made if it does not exist.
        names: Which of `NAMES` to export; all of them by default.

    Raises:
        UnknownDemoNameError: `names` holds one that does not exist.
        ManifestError: The built bytes are not the manifest's, so the weights or the exporter changed.
    """
    for name in names or ():
        _known(name)
    entries = read_manifest()
    chosen = [recipe for recipe in RECIPES if names is None or recipe.name in names]
    written: list[str] = []
    for recipe in chosen:
        expected = _entries_of(recipe, entries)
        if all(entry.fits(destination / file) for file, entry in expected.items()):
            continue
        contents = recipe.build()
        _compare(contents, expected)
        for file, content in contents.items():
            if not expected[file].fits(destination / file):
                _write_in_one_step(destination / file, content)
                written.append(file)
    paths = {recipe.name: destination / recipe.name for recipe in chosen}
    return DemoFiles(destination, paths, tuple(written))


def resolve(name: str) -> pathlib.Path:
    """The path of a demo model, exported on first use where it is not a file already; a package's may not be there.

    Args:
        name: One of `NAMES`, of `COMMITTED` or of `PACKAGED`, with or without `demo:` before it.

    Raises:
        UnknownDemoNameError: There is no demo model of this name.
        PackagedModelError: The package holds another file than the known one.
    """
    bare = name.removeprefix(REFERENCE_PREFIX)
    for model in PACKAGED:
        if model.name == bare:
            return model.path()
    if bare in COMMITTED:
        return COMMITTED[bare].absolute()
    _known(bare)
    return ensure_exported(default_directory().absolute(), (bare,)).paths[bare]


def _known(name: str) -> str:
    """`name` itself, if it is one of `NAMES`."""
    if name not in NAMES:
        known = (*NAMES, *COMMITTED, *(model.name for model in PACKAGED))
        message = f"no demo model {name!r}; known: {', '.join(known)}"
        raise UnknownDemoNameError(message)
    return name


def _entries_of(recipe: Recipe, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """The manifest's entries of one recipe's files."""
    own = {file: entry for file, entry in entries.items() if file.split("/", 1)[0] == recipe.name}
    if not own:
        message = f"{MANIFEST} has no entry for {recipe.name}"
        raise ManifestError(message)
    return own


def _compare(contents: Mapping[str, bytes], expected: Mapping[str, Entry]) -> None:
    """Refuse built files that are not what the manifest promises."""
    if contents.keys() != expected.keys():
        message = f"built {', '.join(sorted(contents))}, the manifest expects {', '.join(sorted(expected))}"
        raise ManifestError(message)
    for file, content in contents.items():
        built = Entry.of(content)
        if built != expected[file]:
            message = (
                f"{file}: built {built.size} bytes with sha256 {built.sha256}, the manifest expects "
                f"{expected[file].size} bytes with {expected[file].sha256}; reinstall, or after a wanted change run "
                "python -m orchestrator.demo.export --write-manifest"
            )
            raise ManifestError(message)


def _write_in_one_step(path: pathlib.Path, content: bytes) -> None:
    """Put `content` at `path` so that a reader sees all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
    part = pathlib.Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        part.chmod(0o644)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def write_manifest(path: pathlib.Path = MANIFEST) -> dict[str, Entry]:
    """Build everything and write its sizes and hashes as the new manifest."""
    entries = {file: Entry.of(content) for recipe in RECIPES for file, content in recipe.build().items()}
    _write_in_one_step(path, manifest_text(entries).encode())
    return entries


def main(arguments: Sequence[str] | None = None) -> int:
    """Export the demo, or rewrite the manifest when told to; the exit code."""
    parser = argparse.ArgumentParser(prog="python -m orchestrator.demo.export", description="Export the demo models.")
    parser.add_argument("destination", nargs="?", type=pathlib.Path, help="directory to export to (default: the cache)")
    parser.add_argument("--write-manifest", action="store_true", help="accept the present bytes as the right ones")
    chosen = parser.parse_args(arguments)
    if chosen.write_manifest:
        entries = write_manifest()
        sys.stdout.write(f"{MANIFEST}: {len(entries)} files, {sum(entry.size for entry in entries.values())} bytes\n")
    if chosen.destination is not None or not chosen.write_manifest:
        files = ensure_exported(chosen.destination or default_directory())
        sys.stdout.write(f"{files.directory}: {len(files.paths)} models, {len(files.written)} files written\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

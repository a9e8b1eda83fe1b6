from __future__ import annotations

import hashlib
import json
import multiprocessing
import pathlib
import shutil
import struct

import pytest

from orchestrator.demo import export, manifest, recipes
from orchestrator.demo.tensors import (
    Tensor,
    TensorError,
    as_kind,
    interleaved_halves,
    read_safetensors,
    safetensors_bytes,
    with_rows,
)
from orchestrator.demo.tokens import Vocabulary

SMALL = ("tiny-draft-f16.gguf", "tiny-draft-f16")


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> export.DemoFiles:
    return export.ensure_exported(tmp_path_factory.mktemp("demo") / "export")


def files_below(directory: pathlib.Path) -> dict[str, pathlib.Path]:
    return {str(path.relative_to(directory)): path for path in directory.rglob("*") if path.is_file()}


def test_every_exported_byte_is_the_manifests(exported: export.DemoFiles) -> None:
    entries = manifest.read_manifest()
    found = files_below(exported.directory)
    assert found.keys() == entries.keys()
    for name, path in found.items():
        content = path.read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (entries[name].size, entries[name].sha256)


def test_the_promised_names_exist(exported: export.DemoFiles) -> None:
    assert set(exported.paths) == set(export.NAMES)
    for name, path in exported.paths.items():
        assert path.is_file() if name.endswith(".gguf") else path.is_dir()


def test_a_second_export_writes_nothing(exported: export.DemoFiles) -> None:
    assert len(exported.written) == len(manifest.read_manifest())
    assert export.ensure_exported(exported.directory).written == ()


def test_a_changed_byte_is_found_and_repaired(tmp_path: pathlib.Path) -> None:
    first = export.ensure_exported(tmp_path, SMALL)
    victim = first.paths["tiny-draft-f16.gguf"]
    content = bytearray(victim.read_bytes())
    content[-40] ^= 1
    victim.write_bytes(content)
    assert export.ensure_exported(tmp_path, SMALL).written == ("tiny-draft-f16.gguf",)
    assert manifest.read_manifest()["tiny-draft-f16.gguf"].fits(victim)


def test_a_missing_file_of_a_folder_is_written_again(tmp_path: pathlib.Path) -> None:
    folder = export.ensure_exported(tmp_path, SMALL).paths["tiny-draft-f16"]
    (folder / "config.json").unlink()
    assert export.ensure_exported(tmp_path, SMALL).written == ("tiny-draft-f16/config.json",)


def test_a_changed_weight_is_refused(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weights = tmp_path / "weights"
    shutil.copytree(recipes.WEIGHTS, weights)
    victim = weights / "draft" / "model.safetensors"
    content = bytearray(victim.read_bytes())
    content[-1] ^= 1
    victim.write_bytes(content)
    monkeypatch.setattr(recipes, "WEIGHTS", weights)
    with pytest.raises(manifest.ManifestError, match=r"tiny-draft-f16\.gguf: built .* the manifest expects"):
        export.ensure_exported(tmp_path / "out", SMALL)
    assert not files_below(tmp_path / "out")


def test_no_part_is_left_when_writing_fails(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: pathlib.Path, _target: pathlib.Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pathlib.Path, "replace", refuse)
    with pytest.raises(OSError, match="No space left"):
        export.ensure_exported(tmp_path, SMALL)
    assert not files_below(tmp_path)


def test_two_exports_at_once_agree(tmp_path: pathlib.Path) -> None:
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=export.ensure_exported, args=(tmp_path, SMALL)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(300)
    assert [worker.exitcode for worker in workers] == [0, 0, 0]
    assert export.ensure_exported(tmp_path, SMALL).written == ()
    assert not [path for path in files_below(tmp_path) if path.endswith(".part")]


def test_resolve_exports_on_first_use(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(export.DIRECTORY_VARIABLE, str(tmp_path / "elsewhere"))
    path = export.resolve("demo:tiny-draft-f16.gguf")
    assert path == tmp_path / "elsewhere" / "tiny-draft-f16.gguf"
    assert path.is_file()
    assert export.resolve("tiny-draft-f16.gguf") == path


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(export.UnknownDemoNameError, match=r"no demo model 'huge'; known: tiny-target-f16\.gguf, "):
        export.resolve("demo:huge")


def test_the_default_directory_follows_the_cache_and_the_manifest(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(export.DIRECTORY_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert export.default_directory() == tmp_path / "specmatrix" / "demo" / manifest.manifest_hash()
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(pathlib.Path, "home", lambda: tmp_path / "home")
    assert export.default_directory() == tmp_path / "home/.cache/specmatrix/demo" / manifest.manifest_hash()


def test_writing_the_manifest_gives_the_committed_one(tmp_path: pathlib.Path) -> None:
    export.write_manifest(tmp_path / "manifest.json")
    assert (tmp_path / "manifest.json").read_text() == manifest.MANIFEST.read_text()


def test_the_command_exports(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert export.main([str(tmp_path)]) == 0
    count = len(manifest.read_manifest())
    assert capsys.readouterr().out == f"{tmp_path}: {len(export.NAMES)} models, {count} files written\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not a demo manifest"),
        ('{"version": 1}', "not a demo manifest"),
        ('{"version": 2, "files": {}}', "manifest version 2, this program reads 1"),
    ],
)
def test_a_bad_manifest_is_refused(tmp_path: pathlib.Path, text: str, message: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(manifest.ManifestError, match=message):
        manifest.read_manifest(path)


def test_the_committed_weights_are_small() -> None:
    sizes = {name: path.stat().st_size for name, path in files_below(recipes.WEIGHTS).items()}
    tiny = sum(size for name, size in sizes.items() if not name.startswith("smollm2-draft/"))
    # The draft of the real model carries that model's vocabulary of 49 152 tokens.
    assert 0 < tiny < 12_000_000
    assert sum(sizes.values()) < 20_000_000


def test_the_gguf_package_reads_what_was_written(exported: export.DemoFiles) -> None:
    gguf = pytest.importorskip("gguf")
    numpy = pytest.importorskip("numpy")
    weights = read_safetensors(recipes.WEIGHTS / "target" / "model.safetensors")
    for name in ("tiny-target-f16.gguf", "tiny-target-f32.gguf"):
        reader = gguf.GGUFReader(exported.paths[name])
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        assert len(tensors) == len(weights)
        assert reader.fields["general.architecture"].contents() == "llama"
        assert len(reader.fields["tokenizer.ggml.tokens"].contents()) == 1024
        source = weights["model.layers.3.mlp.up_proj.weight"]
        expected = numpy.frombuffer(source.data, "<f2").reshape(source.shape).astype("f4")
        assert numpy.array_equal(tensors["blk.3.ffn_up.weight"].data.astype("f4"), expected)
        source = weights["model.layers.3.self_attn.q_proj.weight"]
        rows = numpy.frombuffer(source.data, "<f2").reshape(source.shape).astype("f4")
        heads, size = 4, source.shape[0] // 4
        expected = rows.reshape(heads, 2, size // 2, -1).swapaxes(1, 2).reshape(source.shape)
        assert numpy.array_equal(tensors["blk.3.attn_q.weight"].data.astype("f4"), expected)


def test_the_safetensors_package_reads_what_was_written(exported: export.DemoFiles) -> None:
    library = pytest.importorskip("safetensors.numpy")
    numpy = pytest.importorskip("numpy")
    narrow = library.load_file(exported.paths["tiny-target-f16"] / "model.safetensors")
    wide = library.load_file(exported.paths["tiny-target-f32"] / "model.safetensors")
    assert narrow.keys() == wide.keys()
    for name, tensor in narrow.items():
        assert numpy.array_equal(tensor.astype("f4"), wide[name])


def test_draft_and_target_share_every_token(exported: export.DemoFiles) -> None:
    target, draft = (
        Vocabulary.parse((exported.paths[name] / "tokenizer.json").read_text())
        for name in ("tiny-target-f16", "tiny-draft-f16")
    )
    assert target.tokens == draft.tokens
    assert target.merges == draft.merges


def test_the_incompatible_vocabulary_differs_in_content_only(exported: export.DemoFiles) -> None:
    target, other = (
        Vocabulary.parse((exported.paths[name] / "tokenizer.json").read_text())
        for name in ("tiny-target-f16", "tiny-incompatible-f16")
    )
    assert sorted(target.tokens) == sorted(other.tokens)
    assert target.special == other.special
    same = [number for number, token in enumerate(target.tokens) if other.tokens[number] == token]
    assert same == sorted(target.special) == list(range(8))
    assert other.backwards().tokens == target.tokens


def test_the_committed_tokenizer_keeps_every_text(exported: export.DemoFiles) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    for name in ("tiny-target-f16", "tiny-incompatible-f16"):
        tokenizer = tokenizers.Tokenizer.from_file(str(exported.paths[name] / "tokenizer.json"))
        for text in ("Count from 3 to 9:", "이야기: 밤에 작은 등불이", "쀍 𝄞 \t\r\n\x00"):
            assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_widening_is_exact_and_narrowing_is_refused() -> None:
    values = (0.0, 1.0, -2.5, 65504.0, 2.0**-24)
    narrow = Tensor("f16", (5,), struct.pack("<5e", *values))
    wide = as_kind(narrow, "f32")
    assert struct.unpack("<5f", wide.data) == values
    assert as_kind(wide, "f32") is wide
    with pytest.raises(TensorError, match="would lose bits"):
        as_kind(wide, "f16")


def test_rotary_rows_move_from_halves_to_pairs() -> None:
    rows = Tensor("f16", (8, 1), struct.pack("<8e", *range(8)))
    assert struct.unpack("<8e", interleaved_halves(rows, 2).data) == (0, 2, 1, 3, 4, 6, 5, 7)
    with pytest.raises(TensorError, match="not a permutation of 8 rows"):
        with_rows(rows, (0, 0, 1, 2, 3, 4, 5, 6))


def test_safetensors_come_back_as_written(tmp_path: pathlib.Path) -> None:
    tensors = {"b": Tensor("f32", (1, 2), bytes(8)), "a": Tensor("f16", (3,), b"abcdef")}
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors_bytes(tensors))
    assert read_safetensors(path) == tensors


def header(entry: dict[str, object]) -> bytes:
    text = json.dumps({"a": entry}).encode()
    return struct.pack("<Q", len(text)) + text


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"abc", "too few"),
        (struct.pack("<Q", 3) + b"abc", "not JSON"),
        (header({"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}) + b"ab", "is BF16"),
        (header({"dtype": "F16", "shape": [2], "data_offsets": [0, 4]}) + b"ab", "needs 4 bytes, got 2"),
    ],
)
def test_a_broken_safetensors_file_is_refused(tmp_path: pathlib.Path, content: bytes, message: str) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(content)
    with pytest.raises(TensorError, match=message):
        read_safetensors(path)


def test_a_vocabulary_with_a_gap_is_refused() -> None:
    text = json.dumps({"model": {"vocab": {"a": 0, "b": 2}, "merges": []}, "added_tokens": []})
    with pytest.raises(ValueError, match="gaps or repeats"):
        Vocabulary.parse(text)

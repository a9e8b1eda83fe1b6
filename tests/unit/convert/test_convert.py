"""What `convert` writes from a GGUF is what the demo's own exporter writes from the same weights."""

from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest
from safetensors.numpy import load_file
from typer.testing import CliRunner

from orchestrator.cli.app import app
from orchestrator.convert.errors import ConvertError
from orchestrator.convert.settings import end_ids
from orchestrator.convert.source import Source, read_source
from orchestrator.convert.tokenizer import tokenizer_json
from orchestrator.convert.weights import halves_apart
from orchestrator.convert.write import to_folder, to_gguf
from orchestrator.demo.export import ensure_exported
from orchestrator.demo.tensors import Tensor, interleaved_halves
from orchestrator.schema.errors import SpecmatrixError

NAMES = ("tiny-target-f16.gguf", "tiny-target-f32.gguf", "tiny-mtp-f16.gguf", "tiny-target-f16", "tiny-target-f32")


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    return ensure_exported(tmp_path_factory.mktemp("demo"), NAMES).paths


def rewritten(source: Path, path: Path, *, drop=(), change=(), tensors=None, kind=None) -> Path:
    """A copy of a GGUF with header entries left out or changed, tensors added, or its matrices quantised."""
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(path, dict(change).get("general.architecture", "llama"))
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name in {"general.architecture", *drop}:
            continue
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, dict(change).get(name, field.contents()), field.types[0], sub_type=inner)
    for name, value in change:
        if name not in reader.fields and isinstance(value, str):
            writer.add_string(name, value)
        elif name not in reader.fields:
            writer.add_uint32(name, value)
    for tensor in reader.tensors:
        if kind is not None and tensor.data.ndim == 2:
            packed = gguf.quants.quantize(tensor.data.astype(np.float32), kind)
            writer.add_tensor(tensor.name, packed, raw_dtype=kind)
        else:
            writer.add_tensor(tensor.name, np.array(tensor.data))
    for name, values in (tensors or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.mark.parametrize("number", ["f16", "f32"])
def test_a_converted_folder_holds_what_the_exporter_writes(demo, tmp_path, number):
    made = to_folder(demo[f"tiny-target-{number}.gguf"], tmp_path / "deep" / "made", number)
    expected = demo[f"tiny-target-{number}"]
    found, wanted = (load_file(folder / "model.safetensors") for folder in (made, expected))
    assert found.keys() == wanted.keys()
    assert len(found) == 2 + 16 * 9
    for name, values in wanted.items():
        # Vectors are f32 in a GGUF and were exact when they were widened.
        assert found[name].dtype == values.dtype
        assert np.array_equal(found[name], values), name
    config, other = (json.loads((folder / "config.json").read_text()) for folder in (made, expected))
    assert config.pop("rms_norm_eps") == pytest.approx(other.pop("rms_norm_eps"), rel=1e-7)
    assert config == other
    assert [json.loads((folder / "tokenizer_config.json").read_text()) for folder in (made, expected)] == [
        json.loads((expected / "tokenizer_config.json").read_text())
    ] * 2
    tokenizers = [json.loads((folder / "tokenizer.json").read_text()) for folder in (made, expected)]
    for one in tokenizers:
        one["decoder"].pop("add_prefix_space")  # of no effect when decoding
    assert tokenizers[0] == tokenizers[1]
    assert sorted(path.name for path in made.iterdir()) == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ]
    assert sorted(path.name for path in made.parent.iterdir()) == ["made"]


def test_f16_widens_without_a_change(demo, tmp_path):
    made = load_file(to_folder(demo["tiny-target-f16.gguf"], tmp_path / "wide", "f32") / "model.safetensors")
    narrow = load_file(demo["tiny-target-f16"] / "model.safetensors")
    assert {str(values.dtype) for values in made.values()} == {"float32"}
    assert all(np.array_equal(made[name], values.astype(np.float32)) for name, values in narrow.items())


@pytest.mark.parametrize("kind", [gguf.GGMLQuantizationType.Q4_1, gguf.GGMLQuantizationType.Q8_0])
def test_a_quantised_file_becomes_the_numbers_it_stands_for(demo, tmp_path, kind):
    packed = rewritten(demo["tiny-target-f32.gguf"], tmp_path / "packed.gguf", kind=kind)
    wide = gguf.GGUFReader(to_gguf(packed, tmp_path / "wide.gguf", "f32"))
    originals = {tensor.name: tensor for tensor in gguf.GGUFReader(demo["tiny-target-f32.gguf"]).tensors}
    sources = gguf.GGUFReader(packed)
    assert wide.fields["general.file_type"].contents() == 0
    assert wide.fields["tokenizer.ggml.tokens"].contents() == sources.fields["tokenizer.ggml.tokens"].contents()
    assert [tensor.name for tensor in wide.tensors] == [tensor.name for tensor in sources.tensors]
    steps = {gguf.GGMLQuantizationType.Q4_1: 15, gguf.GGMLQuantizationType.Q8_0: 127}[kind]
    for tensor in wide.tensors:
        original = originals[tensor.name].data
        assert tensor.tensor_type == gguf.GGMLQuantizationType.F32
        assert tensor.data.shape == original.shape
        spread = np.abs(original).max() * 2
        assert np.abs(tensor.data - original).max() <= spread / steps, tensor.name
    folder = load_file(to_folder(packed, tmp_path / "folder", "f32") / "model.safetensors")
    values = {tensor.name: tensor.data for tensor in wide.tensors}
    assert np.array_equal(folder["model.embed_tokens.weight"], values["token_embd.weight"])
    turned = halves_apart(values["blk.3.attn_k.weight"], 2)
    assert np.array_equal(folder["model.layers.3.self_attn.k_proj.weight"], turned)


def test_rows_are_turned_back_as_the_exporter_turned_them():
    values = np.arange(24, dtype=np.float32).reshape(12, 2)
    there = interleaved_halves(Tensor("f32", (12, 2), values.tobytes()), 3)
    turned = np.frombuffer(there.data, dtype=np.float32).reshape(12, 2)
    assert not np.array_equal(turned, values)
    assert np.array_equal(halves_apart(turned, 3), values)


def refusal(path: Path, tmp_path: Path) -> str:
    with pytest.raises(ConvertError) as caught:
        to_folder(path, tmp_path / "never", "f32")
    assert not (tmp_path / "never").exists()
    assert not list(tmp_path.glob(".never*"))
    return str(caught.value)


def test_another_architecture_is_refused(demo, tmp_path):
    assert "architecture 'qwen35'; only 'llama'" in refusal(demo["tiny-mtp-f16.gguf"], tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (("llama.rope.scaling.type", "linear"), "RoPE is scaled (linear)"),
        (("llama.expert_count", 8), "mixture of experts"),
        (("llama.rope.dimension_count", 16), "RoPE turns 16 of 32 channels"),
        (("llama.block_count", 17), "tensors missing: blk.16.attn_k.weight"),
        (("tokenizer.ggml.model", "llama"), "only byte-level BPE"),
        (("tokenizer.ggml.pre", "tekken"), "splitter 'tekken'"),
        (("tokenizer.ggml.add_bos_token", True), "puts a begin-of-text token"),
    ],
)
def test_what_would_be_computed_differently_is_refused(demo, tmp_path, change, words):
    path = rewritten(demo["tiny-target-f16.gguf"], tmp_path / "changed.gguf", change=(change,))
    assert words in refusal(path, tmp_path)


def test_tensors_of_no_plain_llama_are_refused(demo, tmp_path):
    extra = {"blk.0.attn_q.bias": np.zeros(128, dtype=np.float32)}
    path = rewritten(demo["tiny-target-f16.gguf"], tmp_path / "extra.gguf", tensors=extra)
    assert "not of a plain llama model: blk.0.attn_q.bias" in refusal(path, tmp_path)


def test_a_model_that_would_never_stop_is_refused(demo, tmp_path):
    path = rewritten(demo["tiny-target-f16.gguf"], tmp_path / "endless.gguf", drop=("tokenizer.ggml.eos_token_id",))
    assert "no answer would ever end" in refusal(path, tmp_path)


def test_an_output_matrix_of_its_own_is_carried_over(demo, tmp_path):
    output = {"output.weight": np.full((1024, 128), 0.5, dtype=np.float32)}
    path = rewritten(demo["tiny-target-f32.gguf"], tmp_path / "untied.gguf", tensors=output)
    made = to_folder(path, tmp_path / "untied", "f32")
    assert json.loads((made / "config.json").read_text())["tie_word_embeddings"] is False
    assert np.array_equal(load_file(made / "model.safetensors")["lm_head.weight"], output["output.weight"])


@pytest.mark.parametrize("content", [b"", b"GGUF", b"not a model at all, only some text that is long enough"])
def test_what_is_no_gguf_is_refused(tmp_path, content):
    (tmp_path / "file.gguf").write_bytes(content)
    assert "not a readable GGUF file" in refusal(tmp_path / "file.gguf", tmp_path)


def test_a_file_cut_short_is_refused(demo, tmp_path):
    content = demo["tiny-target-f16.gguf"].read_bytes()
    (tmp_path / "short.gguf").write_bytes(content[: len(content) // 2])
    assert "not a readable GGUF file" in refusal(tmp_path / "short.gguf", tmp_path)


def test_numbers_too_large_for_f16_are_refused(demo, tmp_path):
    output = {"output.weight": np.full((1024, 128), 70000.0, dtype=np.float32)}
    path = rewritten(demo["tiny-target-f32.gguf"], tmp_path / "large.gguf", tensors=output)
    for convert, name in ((to_folder, "folder"), (to_gguf, "file.gguf")):
        with pytest.raises(ConvertError, match="too large for f16"):
            convert(path, tmp_path / name, "f16")
        assert not (tmp_path / name).exists()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["large.gguf"]


@pytest.mark.parametrize("convert", [to_folder, to_gguf])
def test_nothing_is_overwritten(demo, tmp_path, convert):
    (tmp_path / "there").write_text("mine")
    with pytest.raises(ConvertError, match="there is something already"):
        convert(demo["tiny-target-f16.gguf"], tmp_path / "there", "f32")
    assert (tmp_path / "there").read_text() == "mine"
    assert [entry.name for entry in tmp_path.iterdir()] == ["there"]


def test_every_end_of_an_answer_that_llama_cpp_knows_is_carried_over():
    tokens = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<repo_name>", "<reponame>", "word"]
    source = Source(Path("x"), {"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.eos_token_id": 2}, None)
    assert end_ids(source) == [2, 0, 4]


@pytest.mark.parametrize(
    ("types", "words"),
    [([1, 1], "3 tokens, but 2 token types"), ([1, 1, 6], "token types [6] do not occur")],
)
def test_a_vocabulary_of_another_kind_is_refused(types, words):
    with pytest.raises(ConvertError) as caught:
        tokenizer_json(["a", "b", "c"], types, [], "gpt-2")
    assert words in str(caught.value)


def test_digits_are_split_one_by_one_where_the_file_says_so(demo):
    from tokenizers import Tokenizer  # noqa: PLC0415  (comes with MLX-LM)

    source = read_source(demo["tiny-target-f16.gguf"])
    tokens, types, merges = source.texts("tokens"), source.fields["tokenizer.ggml.token_type"], source.texts("merges")
    pieces = {
        splitter: Tokenizer.from_str(json.dumps(tokenizer_json(tokens, types, merges, splitter))).encode("12 13").tokens
        for splitter in ("gpt-2", "smollm")
    }
    assert "".join(pieces["smollm"]) == "".join(pieces["gpt-2"]) == "12Ġ13"
    assert [piece for piece in pieces["smollm"] if piece.strip("Ġ")] == ["1", "2", "1", "3"]


def test_the_command_writes_and_says_what(demo, tmp_path):
    source, destination = str(demo["tiny-target-f16.gguf"]), str(tmp_path / "made")
    done = CliRunner().invoke(app, ["convert", source, destination, "--dtype", "f16"])
    assert (done.exit_code, done.exception) == (0, None)
    assert "the weights of tiny-target-f16.gguf as f16" in done.stdout
    assert (tmp_path / "made" / "model.safetensors").is_file()
    done = CliRunner().invoke(app, ["convert", source, str(tmp_path / "made.gguf"), "--gguf"])
    assert done.exit_code == 0
    assert gguf.GGUFReader(tmp_path / "made.gguf").tensors[0].tensor_type == gguf.GGMLQuantizationType.F32


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.gguf", "x"], "there is no such file"),
        (["demo:no-such-model", "x"], "no demo model"),
        (["nowhere.gguf", "x", "--dtype", "q4"], "there are f32, f16"),
    ],
)
def test_a_wrong_command_is_a_user_error(tmp_path, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["convert", *arguments])
    assert isinstance(done.exception, SpecmatrixError)
    assert words in str(done.exception)
    assert not list(tmp_path.iterdir())

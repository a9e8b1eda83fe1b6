"""Predictions of memory against what llama.cpp b11434 logged for the same files, and on headers written by hand."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.llama_cpp import memory as llama_memory
from adapters.llama_cpp.buffers import engine_buffers
from adapters.shared import mlx_memory
from adapters.shared.gguf_layout import LayoutError, read_layout
from orchestrator import registry
from orchestrator.demo.export import resolve
from orchestrator.host.fit import Budget, Verdict, judge
from orchestrator.schema.adapter import LaunchContext
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.schema.fit import ForeseesMemory
from orchestrator.schema.observation import Absence

MIB = 2**20
NONE = Method("none", MethodKind.NONE)


def cell(model: ModelConfig, method: Method = NONE, adapter: str = "llama_cpp", **options) -> Cell:
    engine = EngineConfig("e", adapter, options=options)
    sampling = Sampling("greedy", 0.0, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0)
    return Cell(engine, model, method, sampling, Workload("w", "demo-short", 64, EosPolicy.MASK))


def parts(need) -> dict[str, int]:
    assert need.unknown == ()
    return {part.what: part.size for part in need.parts}


def llama() -> ModelConfig:
    return ModelConfig("t", str(resolve("tiny-target-f16.gguf")), drafts={"s": str(resolve("tiny-draft-f16.gguf"))})


def hybrid() -> ModelConfig:
    return ModelConfig("q", str(resolve("tiny-mtp-f16.gguf")))


def test_a_llama_needs_what_the_engine_logged():
    # b11434, 1024 cells, 16 layers: "model buffer size = 5.52 MiB", "KV buffer size = 4.00 MiB"
    found = parts(llama_memory.need(cell(llama(), context=1024)))
    assert round(found["weights"] / MIB, 2) == 5.52
    assert found["KV cache"] == 4 * MIB
    assert set(found) == {"weights", "KV cache", "compute buffers", "program"}


def test_a_quantised_cache_and_a_draft_need_what_the_engine_logged():
    # context 1000 became 1024 cells; K and V q8_0: 2.125 MiB; the draft: 0.24 MiB of weights, 0.125 MiB of f16 cache
    method = Method("d", MethodKind.DRAFT, 4, "s")
    need = llama_memory.need(cell(llama(), method, context=1000, cache_type_k="q8_0", cache_type_v="q8_0"))
    found = parts(need)
    assert found["KV cache"] == 2.125 * MIB
    assert round(found["draft weights"] / MIB, 2) == 0.24
    assert found["draft KV cache"] == 0.125 * MIB
    assert need.increase == sum(size for name, size in found.items() if name.startswith("draft "))


def test_a_hybrid_keeps_a_state_and_with_mtp_a_snapshot_for_each_draft_token():
    # b11434: KV 0.25 MiB (1 layer), recurrent 0.06 MiB (0 rs_seq) without, 0.18 MiB (2 rs_seq) with draft-mtp of 2
    plain = parts(llama_memory.need(cell(hybrid(), context=1024)))
    assert plain["KV cache"] == 0.25 * MIB
    assert round(plain["recurrent state"] / MIB, 2) == 0.06
    assert "MTP weights" not in plain
    mtp = parts(llama_memory.need(cell(hybrid(), Method("mtp", MethodKind.MTP, 2), context=1024)))
    assert round((mtp["recurrent state"] + mtp["recurrent snapshots"]) / MIB, 2) == 0.18
    assert mtp["recurrent snapshots"] == 2 * mtp["recurrent state"]
    assert mtp["MTP KV cache"] == 0.25 * MIB
    assert round((mtp["weights"] + mtp["MTP weights"]) / MIB, 2) == 2.0
    assert mtp["weights"] == plain["weights"]


def test_a_missing_file_is_unknown_and_not_zero():
    need = llama_memory.need(cell(ModelConfig("t", "/nowhere/x.gguf")))
    assert need.parts == ()
    assert "/nowhere/x.gguf" in need.unknown[0]


def gguf(
    path: Path, scalars: dict[str, int], arrays: dict[str, list[int]], sizes: dict[str, int], tokens: int = 0
) -> str:
    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value)) + value.encode()

    entries = [text("general.architecture") + struct.pack("<I", 8) + text("a")]
    entries += [text(f"a.{key}") + struct.pack("<II", 4, value) for key, value in scalars.items()]
    entries += [
        text(f"a.{key}") + struct.pack("<IIQ", 9, 4, len(values)) + struct.pack(f"<{len(values)}I", *values)
        for key, values in arrays.items()
    ]
    if tokens:
        listed = struct.pack("<IIQ", 9, 8, tokens) + b"".join(text(str(number)) for number in range(tokens))
        entries.append(text("tokenizer.ggml.tokens") + listed)
    tensors, offset = [], 0
    for name, size in sizes.items():
        tensors.append(text(name) + struct.pack("<IQIQ", 1, size // 4, 0, offset))
        offset += size
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(entries)) + b"".join(entries + tensors)
    path.write_bytes(head + b"\0" * (-len(head) % 32 + offset))
    return str(path)


DENSE = {
    "block_count": 4, "context_length": 4096, "embedding_length": 64, "feed_forward_length": 128, "vocab_size": 100,
    "attention.head_count": 4, "attention.head_count_kv": 2, "attention.key_length": 16, "attention.value_length": 16,
}  # fmt: skip


@pytest.mark.parametrize("adapter", ["llama_cpp", "llama_cpp_python"])
def test_the_logits_are_counted_by_the_list_of_tokens_where_the_header_has_no_size_of_the_vocabulary(tmp_path, adapter):
    """As published Qwen3 files have it: llama.cpp's log of them names no qwen3.vocab_size."""
    bare = {key: value for key, value in DENSE.items() if key != "vocab_size"}
    foresee = registry.adapter(adapter).memory
    models = {
        name: ModelConfig("t", gguf(tmp_path / f"{name}.gguf", header, {}, {"x": 64}, tokens))
        for name, header, tokens in (("said", DENSE, 0), ("listed", bare, 100), ("unknown", bare, 0))
    }
    ngram = Method("ngram", MethodKind.NGRAM, 4)
    method = ngram if adapter == "llama_cpp_python" else NONE
    said, listed, unknown = (
        foresee(cell(model, method, adapter=adapter, context=4096, ubatch=256)) for model in models.values()
    )
    assert {part.what: part.size for part in said.parts} == {part.what: part.size for part in listed.parts}
    buffers = {
        need: next(one.size for one in need.parts if one.what == "compute buffers") for need in (listed, unknown)
    }
    assert buffers[listed] - buffers[unknown] == 4 * 256 * 100
    assert said.unknown == listed.unknown == ()
    wanted = ["logits among the compute buffers: the header tells no vocabulary"]
    wanted += ["scores of every token: the header tells no vocabulary"] if method is ngram else []
    assert list(unknown.unknown) == wanted


def test_layers_with_a_sliding_window_keep_their_window_and_one_batch(tmp_path):
    path = gguf(
        tmp_path / "w.gguf",
        {**DENSE, "attention.sliding_window": 512},
        {"attention.sliding_window_pattern": [1, 1, 1, 0]},
        {"token_embd.weight": 64},
    )
    found = parts(llama_memory.need(cell(ModelConfig("t", path), context=4096, ubatch=256)))
    a_cell = 2 * 2 * 16 * 2
    assert found["KV cache"] == 4096 * 1 * a_cell
    assert found["KV cache, windows"] == 768 * 3 * a_cell


def test_a_window_whose_layers_are_not_told_counts_as_none_and_says_so(tmp_path):
    path = gguf(tmp_path / "w.gguf", {**DENSE, "attention.sliding_window": 512}, {}, {"token_embd.weight": 64})
    need = llama_memory.need(cell(ModelConfig("t", path), context=4096))
    assert next(part.size for part in need.parts if part.what == "KV cache") == 4096 * 4 * 2 * 2 * 16 * 2
    assert need.unknown == ("which layers have a sliding window is not in the header: counted as if none had",)


def test_heads_by_layer_and_a_context_of_the_models_own(tmp_path):
    scalars = {key: value for key, value in DENSE.items() if key != "attention.head_count_kv"}
    path = gguf(tmp_path / "h.gguf", scalars, {"attention.head_count_kv": [4, 2, 1, 1]}, {"x": 64})
    found = parts(llama_memory.need(cell(ModelConfig("t", path), context=0)))
    assert found["KV cache"] == 4096 * 8 * 2 * 16 * 2


def test_a_split_model_counts_every_file_and_a_missing_one_is_said(tmp_path):
    for number in (1, 2):
        gguf(tmp_path / f"m-0000{number}-of-00002.gguf", DENSE, {}, {f"blk.{number}.x": 64 * number})
    first = str(tmp_path / "m-00001-of-00002.gguf")
    assert sum(read_layout(first).tensors.values()) == 192
    (tmp_path / "m-00002-of-00002.gguf").unlink()
    with pytest.raises(LayoutError, match="m-00002-of-00002"):
        read_layout(first)


@pytest.mark.parametrize("cut", [0, 3, 20, 60, 200])
def test_a_file_cut_short_is_refused(tmp_path, cut):
    path = Path(gguf(tmp_path / "c.gguf", DENSE, {}, {"x": 64}))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(LayoutError):
        read_layout(str(path))


def mlx_folder(folder: Path) -> ModelConfig:
    """A model of two tensors, 20 bytes each."""
    config = {"num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "hidden_size": 64,
              "intermediate_size": 128, "vocab_size": 100}  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config))
    header = json.dumps({"__metadata__": {"format": "mlx"},
                         "a": {"dtype": "F16", "shape": [10], "data_offsets": [0, 20]},
                         "b": {"dtype": "U32", "shape": [5], "data_offsets": [20, 40]}}).encode()  # fmt: skip
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + b"\0" * 40)
    return ModelConfig("t", str(folder))


def test_mlx_reads_weights_from_safetensors_headers_and_caches_from_the_configuration(tmp_path):
    mine = cell(mlx_folder(tmp_path), adapter="mlx_lm")
    found = parts(mlx_memory.need(mine, None, None, 64))
    assert found["weights"] == 40
    assert found["KV cache"] == 2 * 256 * 2 * 2 * 16 * 2
    assert parts(mlx_memory.need(mine, "float32", None, 64))["weights"] == 60
    quantised = parts(mlx_memory.need(mine, None, 4, 64))["KV cache"]
    assert quantised == 2 * 256 * 2 * 2 * 16 * (0.5 + 4 / 64)
    broken = mlx_memory.need(cell(ModelConfig("t", str(tmp_path / "no")), adapter="mlx_lm"), None, None, 64)
    assert "FileNotFoundError" in broken.unknown[0]


def test_every_built_in_adapter_foresees_memory_and_offers_a_trial_without_mapping():
    for name in registry.BUILT_IN:
        adapter = registry.adapter(name)
        if name.startswith("llama_cpp") and name in ("llama_cpp", "llama_cpp_embedded"):
            assert isinstance(adapter, ForeseesMemory)
            unmapped = adapter.unmapped(cell(llama(), adapter=name, context=256))
            assert unmapped.cell.engine.options == {"context": 256, "mmap": False}
        if name == "mlx_lm":
            assert isinstance(adapter, ForeseesMemory)
            mine = cell(llama(), adapter=name)
            assert adapter.unmapped(mine).cell == mine


def test_ds4_needs_the_weights_of_its_files_and_says_what_is_not_counted(tmp_path):
    target = gguf(tmp_path / "flash.gguf", {}, {}, {"a": 4096, "b": 1024})
    module = gguf(tmp_path / "dspark.gguf", {}, {}, {"mtp.0": 512})
    model, adapter = ModelConfig("t", target, mtp=module), registry.adapter("ds4")
    assert isinstance(adapter, ForeseesMemory)
    plain = adapter.memory(cell(model, adapter="ds4"))
    assert {part.what: (part.size, part.estimate) for part in plain.parts} == {"weights": (5120, False)}
    assert [words.partition(":")[0] for words in plain.unknown] == ["KV cache and buffers"]
    drafts = adapter.memory(cell(model, Method("m", MethodKind.MTP, 5, options={"drafter": "dspark"}), adapter="ds4"))
    assert (drafts.total, drafts.increase) == (5632, 512)
    inside = Method("m", MethodKind.MTP, 1, options={"drafter": "embedded"})
    built_in = adapter.memory(cell(ModelConfig("t", target), inside, adapter="ds4"))
    assert (built_in.total, built_in.increase, len(built_in.unknown)) == (5120, 0, 2)
    gone = adapter.memory(cell(ModelConfig("t", str(tmp_path / "gone.gguf")), adapter="ds4"))
    assert gone.parts == ()
    assert "gone.gguf" in gone.unknown[1]
    assert adapter.unmapped(cell(model, adapter="ds4")) is None


def test_a_ds4_model_that_is_larger_than_the_machine_is_said_before_it_is_started(tmp_path):
    path = Path(gguf(tmp_path / "flash.gguf", {}, {}, {"a": 4096}))
    with path.open("r+b") as file:
        file.truncate(90 * 2**30)
    need = registry.adapter("ds4").memory(cell(ModelConfig("t", str(path)), adapter="ds4"))
    small, large = (judge(need, Budget(ram * 2**30, 4 * 2**30, 0, gpu_limit=ram * 3 * 2**28)) for ram in (96, 192))
    assert small.verdict is Verdict.DOES_NOT_FIT
    assert large.verdict is Verdict.FITS
    assert "not counted: KV cache and buffers" in large.sentence


def test_mtplx_needs_what_mlx_lm_does_and_slipstream_says_why_it_cannot_be_told(tmp_path):
    adapter, model = registry.adapter("mtplx"), mlx_folder(tmp_path)
    mine = cell(model, Method("m", MethodKind.MTP, 2), adapter="mtplx")
    found = adapter.memory(mine)
    plain = mlx_memory.need(cell(model, adapter="mlx_lm"), None, None, 64)
    assert isinstance(adapter, ForeseesMemory)
    assert found.parts == tuple(part for part in plain.parts if part.what != "program")
    assert len(found.unknown) == 1
    assert adapter.unmapped(mine).cell == mine
    other = registry.adapter("slipstream")
    assert isinstance(other, ForeseesMemory)
    assert other.memory(cell(model, adapter="slipstream")).parts == ()
    assert "up to 100 GiB" in other.memory(cell(model, adapter="slipstream", max_memory_gib=100)).unknown[0]
    assert other.unmapped(cell(model, adapter="slipstream")) is None


def test_without_mapping_llama_server_is_told_so_and_with_it_nothing_changes(tmp_path):
    adapter = registry.adapter("llama_cpp")
    mapped = cell(llama(), context=256)
    plain = adapter.launch(mapped, LaunchContext(1, tmp_path)).argv
    unmapped = adapter.launch(adapter.unmapped(mapped).cell, LaunchContext(1, tmp_path)).argv
    assert "--load-mode" not in plain
    assert unmapped[unmapped.index("--load-mode") + 1] == "none"
    embedded = registry.adapter("llama_cpp_embedded")
    engine = replace(mapped.engine, adapter="llama_cpp_embedded")
    launch = embedded.launch(embedded.unmapped(replace(mapped, engine=engine)).cell, LaunchContext(1, tmp_path))
    assert json.loads(launch.files["worker.json"])["mmap"] is False


LOG = """\
0.00.052 I load_tensors:   CPU_Mapped model buffer size =     2.00 MiB
0.00.053 I llama_context: n_ctx                 = 1024
0.00.053 I llama_kv_cache:        CPU KV buffer size =     0.25 MiB
0.00.054 I llama_memory_recurrent:        CPU RS buffer size =     0.18 MiB
0.00.055 I sched_reserve:        CPU compute buffer size =     3.82 MiB
0.00.056 I llama_context: n_ctx                 = 1024
0.00.057 I llama_kv_cache:        CPU KV buffer size =     0.25 MiB
0.00.058 I sched_reserve:        CPU compute buffer size =     2.52 MiB
0.00.059 I sched_reserve:        CPU compute buffer size =     2.50 MiB
0.00.060 I slot   load_model: id  0 | task -1 | new slot, n_ctx = 1024
"""


def test_the_engines_own_buffers_are_summed_and_a_second_reservation_replaces_the_first():
    found = engine_buffers(LOG)
    assert found.value == round((2.00 + 0.25 + 0.18 + 3.82 + 0.25 + 2.50) * MIB)
    for place in range(0, len(LOG) - 1, 7):
        assert engine_buffers(LOG[:place]).absent is Absence.NOT_REPORTED

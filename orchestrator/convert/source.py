"""What a llama GGUF holds, checked against what can be carried over."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.convert.errors import ConvertError

if TYPE_CHECKING:
    import numpy as np

_ARCHITECTURE = "llama"
_TOKENIZER = "gpt2"
_LAYER_TENSORS = (
    "attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down",
)  # fmt: skip
_REQUIRED = ("token_embd.weight", "output_norm.weight")
#: The output matrix, where it is not the embedding.
OUTPUT = "output.weight"


@dataclasses.dataclass(frozen=True, slots=True)
class Source:
    """A GGUF file that can be converted.

    Attributes:
        path: Where it lies.
        fields: Header entries by key.
        reader: The `gguf` package's reader; its tensors are views of the file.
    """

    path: Path
    fields: Mapping[str, Any]
    reader: Any

    @property
    def layers(self) -> int:
        """Decoder layers."""
        return self.count("block_count")

    @property
    def heads(self) -> int:
        """Query heads."""
        return self.count("attention.head_count")

    @property
    def kv_heads(self) -> int:
        """Key and value heads; as many as query heads where the file does not tell."""
        found = self.fields.get(f"{_ARCHITECTURE}.attention.head_count_kv")
        return self.heads if found is None else _whole(self.path, "attention.head_count_kv", found)

    @property
    def head_size(self) -> int:
        """Channels of a head."""
        found = self.fields.get(f"{_ARCHITECTURE}.attention.key_length")
        if found is None:
            return self.count("embedding_length") // self.heads
        return _whole(self.path, "attention.key_length", found)

    @property
    def tied(self) -> bool:
        """Whether the output matrix is the embedding."""
        return all(tensor.name != OUTPUT for tensor in self.reader.tensors)

    def count(self, name: str) -> int:
        """The whole number under `llama.NAME`.

        Raises:
            ConvertError: There is none.
        """
        return _whole(self.path, name, self.fields.get(f"{_ARCHITECTURE}.{name}"))

    def real(self, name: str, default: float | None = None) -> float:
        """The number under `llama.NAME`.

        Raises:
            ConvertError: There is none, and no default.
        """
        found = self.fields.get(f"{_ARCHITECTURE}.{name}", default)
        if not isinstance(found, int | float):
            message = f"{self.path}: {_ARCHITECTURE}.{name} is missing"
            raise ConvertError(message)
        return float(found)

    def token(self, name: str) -> int | None:
        """The id under `tokenizer.ggml.NAME_token_id`, if there is one."""
        found = self.fields.get(f"tokenizer.ggml.{name}_token_id")
        return found if isinstance(found, int) else None

    def texts(self, name: str) -> Sequence[str]:
        """The strings under `tokenizer.ggml.NAME`; empty where there are none."""
        found = self.fields.get(f"tokenizer.ggml.{name}", ())
        return found if isinstance(found, list) else ()

    def values(self, tensor: Any) -> np.ndarray[Any, np.dtype[np.float32]]:  # noqa: ANN401  (the package's own type)
        """The numbers of a tensor as llama.cpp takes them, in f32.

        Raises:
            ConvertError: Its number format has no dequantiser in the `gguf` package.
        """
        import gguf  # noqa: PLC0415  (heavy)
        import numpy as np  # noqa: PLC0415

        try:
            found = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as err:
            message = f"{self.path}: {tensor.name} is {tensor.tensor_type.name}, which cannot be dequantised here"
            raise ConvertError(message) from err
        return np.ascontiguousarray(found, dtype=np.float32)


def read_source(path: Path) -> Source:
    """The file at `path`, checked.

    Raises:
        ConvertError: It is no GGUF, is damaged, or holds what the llama graph of the other side would compute
            differently: another architecture, scaled RoPE, experts, a tokenizer of another kind, unknown tensors.
    """
    import gguf  # noqa: PLC0415  (heavy)

    try:
        reader = gguf.GGUFReader(path)
        fields = {name: field.contents() for name, field in reader.fields.items()}
    except (OSError, ValueError, KeyError, IndexError, UnicodeDecodeError) as err:
        message = f"{path}: not a readable GGUF file ({err})"
        raise ConvertError(message) from err
    source = Source(path, fields, reader)
    _check_graph(source)
    _check_tensors(source)
    return source


def _check_graph(source: Source) -> None:
    fields, path = source.fields, source.path
    architecture = fields.get("general.architecture")
    if architecture != _ARCHITECTURE:
        message = f"{path}: architecture {architecture!r}; only {_ARCHITECTURE!r} can be converted"
        raise ConvertError(message)
    tokenizer = fields.get("tokenizer.ggml.model")
    if tokenizer != _TOKENIZER:
        message = f"{path}: tokenizer {tokenizer!r}; only byte-level BPE ({_TOKENIZER!r}) can be converted"
        raise ConvertError(message)
    if fields.get("tokenizer.ggml.add_bos_token") is True:
        message = f"{path}: its tokenizer puts a begin-of-text token before every text, which is not carried over yet"
        raise ConvertError(message)
    scaling = fields.get(f"{_ARCHITECTURE}.rope.scaling.type", "none")
    if scaling != "none":
        message = f"{path}: RoPE is scaled ({scaling}); only plain RoPE can be converted"
        raise ConvertError(message)
    if fields.get(f"{_ARCHITECTURE}.expert_count", 0):
        message = f"{path}: a mixture of experts; only dense llama models can be converted"
        raise ConvertError(message)
    rotary = fields.get(f"{_ARCHITECTURE}.rope.dimension_count", source.head_size)
    if rotary != source.head_size:
        message = f"{path}: RoPE turns {rotary} of {source.head_size} channels; only whole heads can be converted"
        raise ConvertError(message)


def _check_tensors(source: Source) -> None:
    expected = {f"blk.{index}.{name}.weight" for index in range(source.layers) for name in _LAYER_TENSORS}
    expected |= set(_REQUIRED)
    found = {tensor.name for tensor in source.reader.tensors}
    missing, unknown = sorted(expected - found), sorted(found - expected - {OUTPUT})
    if missing or unknown:
        told = [f"missing: {', '.join(missing[:4])}"] if missing else []
        told += [f"not of a plain llama model: {', '.join(unknown[:4])}"] if unknown else []
        message = f"{source.path}: tensors {'; '.join(told)}"
        raise ConvertError(message)


def _whole(path: Path, name: str, found: object) -> int:
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        message = f"{path}: {_ARCHITECTURE}.{name} is {found!r}, expected a whole number"
        raise ConvertError(message)
    return found

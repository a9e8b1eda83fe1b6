"""Converts a file and puts the result in its place in one step."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.convert.errors import ConvertError
from orchestrator.convert.settings import config, tokenizer_config
from orchestrator.convert.source import Source, read_source
from orchestrator.convert.tokenizer import tokenizer_json
from orchestrator.convert.weights import Number, hugging_face_tensors, narrowed

if TYPE_CHECKING:
    from collections.abc import Callable

_FILE_TYPES: dict[Number, int] = {"f32": 0, "f16": 1}


def to_folder(source_path: Path, destination: Path, number: Number) -> Path:
    """A llama GGUF as a folder of config, tokenizer and safetensors, for MLX-LM and others.

    Args:
        source_path: The GGUF file.
        destination: The folder to make; it must not be there yet.
        number: Number format of the weights. Only f32 holds the numbers of a quantised file without rounding.
            llama.cpp itself rounds activations to 8 bits before it multiplies them with quantised weights, so with the
            quantised file it may answer otherwise.

    Raises:
        ConvertError: The file cannot be carried over rightly, or the destination exists or cannot be written.
    """
    source = read_source(source_path)

    def fill(folder: Path) -> None:
        from safetensors.numpy import save_file  # noqa: PLC0415  (heavy)

        texts, types = source.texts("tokens"), source.fields.get("tokenizer.ggml.token_type", [])
        splitter = source.fields.get("tokenizer.ggml.pre", "default")
        _write_json(folder / "config.json", config(source, number))
        _write_json(folder / "tokenizer_config.json", tokenizer_config(source))
        _write_json(folder / "tokenizer.json", tokenizer_json(texts, types, source.texts("merges"), splitter))
        weights = folder / "model.safetensors"
        save_file(dict(hugging_face_tensors(source, number)), weights, metadata={"format": "mlx"})
        weights.chmod(0o644)  # the package writes it for its owner alone

    return _in_one_step(destination, fill, folder=True)


def to_gguf(source_path: Path, destination: Path, number: Number) -> Path:
    """A llama GGUF as a GGUF whose matrices are not quantised; the header is carried over.

    Args:
        source_path: The GGUF file.
        destination: The file to write; it must not be there yet.
        number: Number format of the matrices; vectors are always f32, as llama.cpp wants them.

    Raises:
        ConvertError: The file cannot be carried over rightly, or the destination exists or cannot be written.
    """
    source = read_source(source_path)
    return _in_one_step(destination, lambda path: _write_gguf(source, path, number), folder=False)


def _write_gguf(source: Source, path: Path, number: Number) -> None:
    import gguf  # noqa: PLC0415  (heavy)

    writer = gguf.GGUFWriter(path, source.fields["general.architecture"])
    own = {"general.architecture", "general.file_type", "general.quantization_version"}
    for name, field in source.reader.fields.items():
        if not name.startswith("GGUF.") and name not in own:
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], sub_type=inner)
    writer.add_file_type(_FILE_TYPES[number])
    for tensor in source.reader.tensors:
        values = source.values(tensor)
        writer.add_tensor(tensor.name, values if values.ndim == 1 else narrowed(source, tensor.name, values, number))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _in_one_step(destination: Path, fill: Callable[[Path], None], *, folder: bool) -> Path:
    """Fill a place beside `destination` and move it there, so that a reader sees all of it or none.

    Raises:
        ConvertError: The destination exists, or cannot be written.
    """
    if destination.exists():
        message = f"{destination}: there is something already; name another place, or move it away"
        raise ConvertError(message)
    try:
        destination.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{destination.name}.", suffix=".part", dir=destination.parent))
    except OSError as err:
        message = f"{destination}: cannot be written ({err.strerror})"
        raise ConvertError(message) from err
    made = part / "made"
    try:
        if folder:
            made.mkdir()
        fill(made)
        # A folder never replaces one that is not empty; a file is linked, which fails where there is one.
        if folder:
            made.rename(destination)
        else:
            os.link(made, destination)
    except OSError as err:
        message = f"{destination}: cannot be written ({err.strerror or err})"
        raise ConvertError(message) from err
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return destination


def _write_json(path: Path, content: dict[str, Any]) -> None:
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")

"""A quantised copy of a demo GGUF: every matrix in blocks of 32 weights, the rest as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from gguf import GGMLQuantizationType, GGUFReader, GGUFValueType, GGUFWriter, quants

if TYPE_CHECKING:
    from pathlib import Path

BLOCK = 32


def quantise(source: Path, target: Path, kind: GGMLQuantizationType = GGMLQuantizationType.Q8_0) -> int:
    """Writes ``target``; returns how many tensors were quantised."""
    reader = GGUFReader(str(source))
    writer = GGUFWriter(str(target), reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            inner = field.types[-1] if field.types[0] is GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], inner)
    count = 0
    for tensor in reader.tensors:
        if len(tensor.shape) == 2 and tensor.shape[0] % BLOCK == 0:
            blocks = quants.quantize(np.asarray(tensor.data, dtype=np.float32), kind)
            writer.add_tensor(tensor.name, blocks, raw_dtype=kind)
            count += 1
        else:
            writer.add_tensor(tensor.name, np.asarray(tensor.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return count

"""The demo's target with a chat template, in both formats: the demo models themselves have none."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import numpy as np
from gguf import GGUFReader, GGUFValueType, GGUFWriter

from orchestrator.demo.export import resolve

if TYPE_CHECKING:
    from pathlib import Path

TEMPLATE = (
    "{% for message in messages %}[{{ message['role'] }}] {{ message['content'] }}\n{% endfor %}"
    "{% if add_generation_prompt %}[assistant] {% endif %}"
)


def gguf_with_template(target: Path, template: str = TEMPLATE) -> Path:
    """The f32 GGUF with a template in its header."""
    reader = GGUFReader(str(resolve("tiny-target-f32.gguf")))
    writer = GGUFWriter(str(target), reader.fields["general.architecture"].contents())
    for field in reader.fields.values():
        if not field.name.startswith("GGUF.") and field.name != "general.architecture":
            inner = field.types[-1] if field.types[0] is GGUFValueType.ARRAY else None
            writer.add_key_value(field.name, field.contents(), field.types[0], inner)
    writer.add_chat_template(template)
    for tensor in reader.tensors:
        writer.add_tensor(tensor.name, np.asarray(tensor.data))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def folder_with_template(target: Path, template: str = TEMPLATE, *, own_file: bool = False) -> Path:
    """The f32 model folder with a template in its tokenizer's settings, or in a file of its own."""
    shutil.copytree(resolve("tiny-target-f32"), target)
    if own_file:
        (target / "chat_template.jinja").write_text(template, encoding="utf-8")
        return target
    path = target / "tokenizer_config.json"
    config = json.loads(path.read_text(encoding="utf-8")) | {"chat_template": template}
    path.write_text(json.dumps(config), encoding="utf-8")
    return target

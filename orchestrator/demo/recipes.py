"""What the demo consists of: which files exist and how each is made from the committed weights."""

from __future__ import annotations

import dataclasses
import json
import pathlib
from collections.abc import Callable
from typing import Any, Literal

from orchestrator.demo import mlx_hybrid
from orchestrator.demo.gguf_models import hybrid_gguf, llama_gguf
from orchestrator.demo.tensors import Kind, Tensor, as_kind, read_safetensors, safetensors_bytes, with_rows
from orchestrator.demo.tokens import Vocabulary

#: The committed weights: one folder per trained model, and the tokenizer all of them share.
WEIGHTS = pathlib.Path(__file__).parent / "weights"
_EMBEDDING = "model.embed_tokens.weight"

Family = Literal["llama", "hybrid"]


@dataclasses.dataclass(frozen=True, slots=True)
class Model:
    """A demo model in memory, before it takes the form of an engine's files."""

    family: Family
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    vocabulary: Vocabulary


@dataclasses.dataclass(frozen=True, slots=True)
class Recipe:
    """One thing a matrix can refer to: a GGUF file or an MLX folder.

    Attributes:
        name: What stands after `demo:` in a reference, and its name in the destination.
        load: Gives the model.
        kind: Number format of its matrices.
        folder: Whether it is an MLX folder; otherwise a GGUF file.
    """

    name: str
    load: Callable[[], Model]
    kind: Kind
    folder: bool

    def build(self) -> dict[str, bytes]:
        """The content of every file, by its path relative to the destination."""
        model = self.load()
        if self.folder:
            return {f"{self.name}/{file}": content for file, content in _mlx_files(model, self.kind).items()}
        write = llama_gguf if model.family == "llama" else hybrid_gguf
        stem = self.name.removesuffix(".gguf")
        return {self.name: write(stem, model.config, model.tensors, model.vocabulary, self.kind)}


def _mlx_files(model: Model, kind: Kind) -> dict[str, bytes]:
    """The files of a model folder for MLX-LM or mlx-vlm."""
    config = {**model.config, "torch_dtype": {"f16": "float16", "f32": "float32"}[kind]}
    # What is f32 in memory would lose bits as f16: it is no trained weight, but made from one.
    tensors = {name: as_kind(t, "f32" if t.kind == "f32" else kind) for name, t in model.tensors.items()}
    return {
        "config.json": (json.dumps(config, indent=1) + "\n").encode(),
        "model.safetensors": safetensors_bytes(tensors),
        "tokenizer.json": model.vocabulary.to_json().encode(),
        "tokenizer_config.json": (WEIGHTS / "tokenizer" / "tokenizer_config.json").read_bytes(),
    }


def load_model(folder: str, family: Family) -> Model:
    """The committed model in `WEIGHTS / folder`, with the shared vocabulary."""
    return Model(
        family=family,
        config=json.loads((WEIGHTS / folder / "config.json").read_text(encoding="utf-8")),
        tensors=read_safetensors(WEIGHTS / folder / "model.safetensors"),
        vocabulary=Vocabulary.parse((WEIGHTS / "tokenizer" / "tokenizer.json").read_text(encoding="utf-8")),
    )


def target() -> Model:
    """The model whose text counts: deep and narrow, so that a pass costs many small operations."""
    return load_model("target", "llama")


def draft() -> Model:
    """A one-layer model with the target's vocabulary that guesses what the target will say."""
    return load_model("draft", "llama")


def mtp() -> Model:
    """A hybrid of gated delta nets and attention that drafts for itself with a built-in MTP block."""
    return load_model("mtp", "hybrid")


def mtp_trunk() -> Model:
    """The hybrid without its MTP block, as mlx-vlm loads it."""
    model = mtp()
    config, tensors = mlx_hybrid.trunk(model.config, model.tensors)
    return dataclasses.replace(model, config=config, tensors=tensors)


def mtp_drafter() -> Model:
    """The hybrid's MTP block as a drafter of mlx-vlm's, which borrows embedding and head from the target."""
    model = mtp()
    config, tensors = mlx_hybrid.drafter(model.config, model.tensors)
    return dataclasses.replace(model, config=config, tensors=tensors)


def incompatible() -> Model:
    """The draft with its vocabulary numbered backwards: as good a model, but no draft for the target.

    Its vocabulary has the target's size, so only a comparison of contents can refuse it.
    """
    model = draft()
    order = model.vocabulary.backwards_order()
    tensors = {**model.tensors, _EMBEDDING: with_rows(model.tensors[_EMBEDDING], order)}
    return dataclasses.replace(model, tensors=tensors, vocabulary=model.vocabulary.backwards())


RECIPES: tuple[Recipe, ...] = (
    Recipe("tiny-target-f16.gguf", target, "f16", folder=False),
    Recipe("tiny-target-f32.gguf", target, "f32", folder=False),
    Recipe("tiny-draft-f16.gguf", draft, "f16", folder=False),
    Recipe("tiny-draft-f32.gguf", draft, "f32", folder=False),
    Recipe("tiny-mtp-f16.gguf", mtp, "f16", folder=False),
    Recipe("tiny-mtp-f32.gguf", mtp, "f32", folder=False),
    Recipe("tiny-incompatible-f16.gguf", incompatible, "f16", folder=False),
    Recipe("tiny-target-f16", target, "f16", folder=True),
    Recipe("tiny-target-f32", target, "f32", folder=True),
    Recipe("tiny-draft-f16", draft, "f16", folder=True),
    Recipe("tiny-draft-f32", draft, "f32", folder=True),
    Recipe("tiny-incompatible-f16", incompatible, "f16", folder=True),
    Recipe("tiny-mtp-vlm-f16", mtp_trunk, "f16", folder=True),
    Recipe("tiny-mtp-vlm-f32", mtp_trunk, "f32", folder=True),
    Recipe("tiny-mtp-vlm-drafter-f16", mtp_drafter, "f16", folder=True),
    Recipe("tiny-mtp-vlm-drafter-f32", mtp_drafter, "f32", folder=True),
)
#: Every name a reference can use.
NAMES: tuple[str, ...] = tuple(recipe.name for recipe in RECIPES)

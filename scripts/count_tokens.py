"""Counts the tokens of every prompt that comes with the program, by the tokenizers of the demo models.

Usage: python scripts/count_tokens.py [--check]
which writes orchestrator/workloads/data/token-counts.json, or with --check only says what in it is out of date.

The engine itself counts (llama.cpp, in the wheel xllamacpp), of the raw text, with the begin-of-text token where the
model asks for one: as a raw completion would. A tokenizer whose model is not installed keeps the counts it had.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import sys
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from orchestrator.demo.export import resolve
from orchestrator.demo.packaged import SMOLLM2
from orchestrator.workloads.built_in import SETS, built_in
from orchestrator.workloads.counts import COUNTS
from orchestrator.workloads.prompt import Prompt


def models() -> dict[str, Path]:
    """The demo models that are here, by the name of their tokenizer."""
    found = {"tiny": Path(resolve("tiny-target-f16.gguf"))}
    if SMOLLM2.path().exists():
        found["smollm2"] = SMOLLM2.path()
    return found


def prompts() -> dict[str, Prompt]:
    """Every prompt by its id, which is unique over all sets."""
    found: dict[str, Prompt] = {}
    for name in SETS:
        for prompt in built_in(name):
            if found.setdefault(prompt.id, prompt) != prompt:
                message = f"two prompts have the id {prompt.id}"
                raise ValueError(message)
    return found


def digest(prompt: Prompt) -> str:
    """What tells that the text is still the one that was counted."""
    return hashlib.sha256(prompt.text.encode()).hexdigest()[:12]


def count(model: Path, texts: Mapping[str, str]) -> dict[str, int]:
    """Tokens of each text, by the tokenizer in the file."""
    engine: Any = importlib.import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path, params.n_ctx, params.warmup, params.verbosity = str(model), 256, False, -1
    server = engine.Server(params)
    counts = {name: _tokenized(server.listening_address, text) for name, text in texts.items()}
    del server
    return counts


def _tokenized(address: str, text: str) -> int:
    body = json.dumps({"content": text, "add_special": True}).encode()
    request = urllib.request.Request(f"{address}/tokenize", body, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310  (on this machine)
        return len(json.loads(answer.read())["tokens"])


def table(before: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The counts of every prompt; those of models that are not here as they were, where the text is still the same."""
    known, here = prompts(), models()
    counted = {name: count(path, {key: one.text for key, one in known.items()}) for name, path in here.items()}
    rows: dict[str, dict[str, Any]] = {}
    for key, prompt in known.items():
        old = before.get(key, {})
        kept = old if old.get("text") == digest(prompt) else {}
        row = {"text": digest(prompt), "characters": len(prompt.text)}
        for name in ("tiny", "smollm2"):
            value = counted[name][key] if name in counted else kept.get(name)
            if value is not None:
                row[name] = value
        rows[key] = row
    return rows


def written(rows: Mapping[str, Any]) -> str:
    """The file's text: a line a prompt."""
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(row)}" for key, row in rows.items())
    return "{\n" + lines + "\n}\n"


def main(arguments: list[str]) -> int:
    """Write the file, or check it; the exit status."""
    before = json.loads(COUNTS.read_text(encoding="utf-8")) if COUNTS.exists() else {}
    rows = table(before)
    if arguments == ["--check"]:
        wrong = [key for key in {*before, *rows} if before.get(key) != rows.get(key)]
        for key in sorted(wrong):
            print(f"{key}: {before.get(key)} is now {rows.get(key)}; run python scripts/count_tokens.py")
        print(f"{len(rows)} prompts, {len(wrong)} out of date; counted by {', '.join(models())}")
        return 1 if wrong else 0
    COUNTS.write_text(written(rows), encoding="utf-8")
    print(f"{COUNTS}: {len(rows)} prompts, counted by {', '.join(models())}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

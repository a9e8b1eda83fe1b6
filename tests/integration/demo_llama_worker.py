"""Runs prompts through llama.cpp's server inside this process: one JSON request on stdin, one JSON answer on stdout."""

from __future__ import annotations

import json
import sys
import urllib.request
from typing import Any

import xllamacpp

KINDS = xllamacpp.common_speculative_type


def call(address: str, path: str, body: dict[str, object] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"Content-Type": "application/json"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=120) as response:  # noqa: S310
        return json.load(response)


def parameters(wanted: dict[str, Any]) -> xllamacpp.CommonParams:
    params = xllamacpp.CommonParams()
    params.model.path = wanted["target"]
    params.n_ctx, params.n_parallel, params.warmup, params.fit_params, params.port = 512, 1, False, False, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    draft = params.speculative.draft
    if wanted["exact"]:
        # The default f16 cache would round what the other engine keeps as f32.
        params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
        draft.cache_type_k = draft.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
    if wanted["speculation"] == "draft":
        params.speculative.types = [KINDS.COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE]
        draft.mparams.path = wanted["draft"]
    elif wanted["speculation"] == "mtp":
        params.speculative.types = [KINDS.COMMON_SPECULATIVE_TYPE_DRAFT_MTP]
    draft.n_max = wanted["k"]
    return params


def complete(address: str, prompt: str, wanted: dict[str, Any]) -> dict[str, Any]:
    body = {
        "prompt": prompt,
        "n_predict": wanted["tokens"],
        "temperature": 0,
        "cache_prompt": False,
        "return_tokens": True,
        "ignore_eos": wanted["mask_eos"],
    }
    result = call(address, "/completion", body)
    return {
        "prompt_ids": call(address, "/tokenize", {"content": prompt})["tokens"],
        "tokens": result["tokens"],
        "text": result["content"],
        "drafted": result["timings"].get("draft_n"),
        "accepted": result["timings"].get("draft_n_accepted"),
        "milliseconds": result["timings"]["predicted_ms"],
    }


def main() -> None:
    wanted = json.load(sys.stdin)
    server = xllamacpp.Server(parameters(wanted))
    address = server.listening_address
    results = [complete(address, prompt, wanted) for prompt in wanted["prompts"]]
    speculative = call(address, "/slots")[0]["speculative"]
    sys.stdout.write(json.dumps({"speculative": speculative, "results": results}) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

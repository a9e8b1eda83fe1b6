"""Runs the real MLX-LM worker with one thing changed, named by this file's name as the launch finds it.

``mlx_counting_worker.py`` counts forward passes by itself: every call of a model's ``__call__`` with its rows and the
cache's length, written to ``calls.jsonl`` before each answer. It prints a stray line besides, as a library might.
``mlx_unguarded_worker.py`` does not refuse a full attention window. ``mlx_direct_worker.py`` tells of each answer whether
mlx-lm was given the models themselves, and answers ``{"op": "direct", "ids": …}`` with both models' scores behind the ids.
``mlx_untrimmed_worker.py`` leaves refused draft tokens in both caches.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

REAL = Path(__file__).resolve().parents[2] / "adapters" / "workers" / "mlx_lm_worker.py"


def load_worker() -> Any:
    spec = importlib.util.spec_from_file_location("mlx_lm_worker", REAL)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def count_passes(worker: Any) -> None:
    from mlx_lm.models import llama  # noqa: PLC0415

    calls: list[tuple[int, int, int]] = []
    caches: dict[int, Any] = {}
    call, say = llama.Model.__call__, worker.say

    def counted(model: Any, inputs: Any, cache: Any = None, **rest: Any) -> Any:
        print("a stray line")  # noqa: T201
        if cache is not None:
            calls.append((len(model.layers), inputs.shape[1], cache[0].offset))
            caches[len(model.layers)] = cache[0]
        return call(model, inputs, cache, **rest)

    def say_after_counts(protocol: Any, **message: Any) -> None:
        lengths = {layers: cache.offset for layers, cache in caches.items()}
        with Path("calls.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps({"event": message["event"], "calls": calls, "lengths": lengths}) + "\n")
        calls.clear()
        say(protocol, **message)

    llama.Model.__call__ = counted
    worker.say = say_after_counts


def tell_directly(worker: Any) -> None:
    answer, init = worker.answer, worker.Session.__init__
    seen: dict[str, bool] = {}

    def watching(session: Any, config: Any) -> None:
        init(session, config)
        generate = session.generation.stream_generate

        def watched(model: Any, *args: Any, **arguments: Any) -> Any:
            seen.update(target=model is session.model, draft=arguments.get("draft_model") is session.draft)
            return generate(model, *args, **arguments)

        session.generation.stream_generate = watched

    def told(session: Any, line: str) -> Any:
        request = json.loads(line)
        if request["op"] != "direct":
            return {**answer(session, line), "bare": dict(seen)}
        ids = session.mx.array([request["ids"]])
        rows = [model(ids)[0, -1].tolist() for model in (session.model, session.draft)]
        return {"event": "done", "target": rows[0], "draft": rows[1]}

    worker.Session.__init__ = watching
    worker.answer = told


def keep_refused(worker: Any) -> None:
    init = worker.Session.__init__

    def untrimmed(session: Any, config: Any) -> None:
        init(session, config)
        session.generation.trim_prompt_cache = lambda _cache, tokens: tokens

    worker.Session.__init__ = untrimmed


def main(change: str) -> int:
    worker = load_worker()
    if change == "counting":
        count_passes(worker)
    elif change == "unguarded":
        worker.Session._refuse_full_window = lambda *_: None
    elif change == "direct":
        tell_directly(worker)
    elif change == "untrimmed":
        keep_refused(worker)
    else:
        raise ValueError(change)
    return worker.main()


def run(file: str) -> None:
    sys.exit(main(Path(file).stem.split("_")[1]))

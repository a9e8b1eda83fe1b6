"""Runs llama-cpp-python in its own interpreter: JSON lines in on stdin, JSON lines out on stdout.

Started by absolute path as ``python llama_cpp_python_worker.py CONFIG`` with the standard library, numpy and llama_cpp
alone. ``CONFIG`` is a JSON file: ``model`` (a path), ``n_ctx``, ``n_batch``, ``n_ubatch``, ``threads``, ``gpu_layers``,
``flash_attention``, ``mmap``, ``cache_type_k``, ``cache_type_v``, and ``lookup`` (``max_ngram_size`` and
``num_pred_tokens``, or ``null``).

After loading it says ``{"event": "ready", …}`` once, or ``{"event": "refused", "status": …, "reason": …}`` and ends
with status 3. Each request ``{"op": "generate", …}`` is answered by one line, ``{"event": "done", …}`` or
``{"event": "error", …}``, and nothing is printed while it runs. Times are seconds of ``time.perf_counter``, which all
processes of a machine share. llama.cpp's log goes to standard error.
"""

# ruff: noqa: ANN401  (the engine's objects are seen through importlib, so that a missing engine is an answer)

from __future__ import annotations

import importlib
import json
import os
import platform
import sys
import time
import traceback
from pathlib import Path
from typing import Any, TextIO

PENALTY_WINDOW = 64
"""Last tokens that each penalty looks at: the package's default, passed so that it cannot change unseen."""
REFUSED_EXIT = 3


class Refused(Exception):  # noqa: N818  (an answer, not a fault)
    """What was asked cannot be measured rightly; ``status`` is the status that the cell gets."""

    def __init__(self, status: str, reason: str) -> None:
        self.status = status
        self.reason = reason
        super().__init__(reason)


def main() -> int:
    """Serves requests until stdin ends; the exit status."""
    protocol, requests = private_streams()
    try:
        session = Session(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    except Refused as refusal:
        say(protocol, event="refused", status=refusal.status, reason=refusal.reason)
        return REFUSED_EXIT
    except Exception as err:  # noqa: BLE001  (a model that does not load is an answer to the parent)
        traceback.print_exc()
        say(protocol, event="refused", status="failed", reason=f"loading failed: {type(err).__name__}: {err}")
        return REFUSED_EXIT
    say(protocol, event="ready", **session.facts)
    for line in requests:
        if line.strip():
            say(protocol, **answer(session, line))
    return 0


def private_streams() -> tuple[TextIO, TextIO]:
    """Our own ends of stdout and stdin; a library that prints reaches stderr, one that reads finds nothing."""
    protocol = os.fdopen(os.dup(1), "w", encoding="utf-8")
    requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return protocol, requests


def say(protocol: TextIO, **message: Any) -> None:
    """Writes one line of the protocol."""
    protocol.write(json.dumps(message) + "\n")
    protocol.flush()


def answer(session: Session, line: str) -> dict[str, Any]:
    """The answer to one request; a fault in one request leaves the worker able to serve the next."""
    trial: Any = None
    try:
        request = json.loads(line)
        trial = request.get("trial")
        if request.get("op") != "generate":
            message = f"unknown op {request.get('op')!r}; this worker knows generate"
            return {"event": "error", "trial": trial, "kind": "refused", "type": "protocol", "message": message}
        return {"event": "done", "trial": trial, **session.generate(request)}
    except Refused as refusal:
        return {"event": "error", "trial": trial, "kind": "refused", "type": refusal.status, "message": refusal.reason}
    except Exception as err:  # noqa: BLE001  (the trial boundary)
        traceback.print_exc()
        return {"event": "error", "trial": trial, "kind": "exception", "type": type(err).__name__, "message": str(err)}


class Watched:
    """The package's own drafter, with what it proposed and how long it took written down."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.proposed: list[list[int]] = []
        self.seconds = 0.0

    def __call__(self, input_ids: Any, /, **named: Any) -> Any:
        """One proposal; it may be empty."""
        began = time.perf_counter()
        found = self.inner(input_ids, **named)
        self.seconds += time.perf_counter() - began
        self.proposed.append([int(token) for token in found])
        return found


class Session:
    """The loaded model and all that requests share."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Loads the model.

        Raises:
            Refused: the engine or the model is not there, or they cannot do what is asked.
        """
        if not Path(config["model"]).is_file():
            raise Refused("unavailable", f"the model {config['model']} does not exist")
        started = time.perf_counter()
        try:
            self.engine = importlib.import_module("llama_cpp")
            speculative = importlib.import_module("llama_cpp.llama_speculative")
        except (ImportError, OSError, RuntimeError) as err:
            raise Refused("unavailable", f"{sys.executable} cannot import llama_cpp: {err}") from err
        imported = time.perf_counter()
        lookup = config["lookup"]
        self.drafter = None if lookup is None else Watched(speculative.LlamaPromptLookupDecoding(**lookup))
        self.n_ctx = config["n_ctx"]
        # The package reads scores of every token as soon as there is a drafter, but makes room for a batch of them
        # only; unless told, it fails when the text is longer than a batch.
        options = {"logits_all": True, "draft_model": self.drafter} if self.drafter is not None else {}
        gpu = {} if config["gpu_layers"] is None else {"n_gpu_layers": config["gpu_layers"]}
        self.llama = self.engine.Llama(
            model_path=config["model"],
            n_ctx=self.n_ctx,
            n_batch=config["n_batch"],
            n_ubatch=config["n_ubatch"],
            n_threads=config["threads"],
            n_threads_batch=config["threads"],
            use_mmap=config["mmap"],
            flash_attn=config["flash_attention"],
            type_k=self._cache_type(config["cache_type_k"]),
            type_v=self._cache_type(config["cache_type_v"]),
            last_n_tokens_size=PENALTY_WINDOW,
            verbose=True,
            **gpu,
            **options,
        )
        model = self.llama.model
        kinds = {"recurrent": self.engine.llama_model_is_recurrent, "hybrid": self.engine.llama_model_is_hybrid}
        self.kind = next((name for name, test in kinds.items() if test(model)), "attention")
        if self.drafter is not None and self.kind != "attention":
            reason = f"the model is {self.kind}: its state cannot be taken back to before a refused draft token"
            raise Refused("unsupported", reason)
        vocabulary = self.engine.llama_model_get_vocab(model)
        self.end_of_text = frozenset(
            token for token in range(self.llama.n_vocab()) if self.engine.llama_vocab_is_eog(vocabulary, token)
        )
        self.passes: list[int] = []
        self._watch_passes()
        self.facts = {
            "llama_cpp_python": self.engine.__version__,
            "python": platform.python_version(),
            "system": self.engine.llama_print_system_info().decode("utf-8", "replace").strip(),
            "gpu_offload": bool(self.engine.llama_supports_gpu_offload()),
            "import_s": imported - started,
            "load_s": time.perf_counter() - imported,
            "kind": self.kind,
            "drafter_loaded": self.llama.draft_model is not None,
            "n_ctx": self.llama.n_ctx(),
            "n_vocab": self.llama.n_vocab(),
            "threads": self.llama.n_threads,
            "threads_batch": self.llama.n_threads_batch,
            "scores_bytes": int(self.llama.scores.nbytes),
        }

    def _cache_type(self, name: str) -> int:
        return int(getattr(self.engine, "GGML_TYPE_" + name.upper()))

    def _watch_passes(self) -> None:
        """Writes down how many tokens each pass was fed; the package itself counts no rounds."""
        original = self.llama.eval

        def watched(tokens: Any) -> None:
            self.passes.append(len(tokens))
            original(tokens)

        self.llama.eval = watched

    def generate(self, request: dict[str, Any]) -> dict[str, Any]:
        """One trial, from an empty context."""
        engine, llama, sampling, limit = self.engine, self.llama, request["sampling"], request["max_tokens"]
        stops = self.end_of_text if request["eos"] == "stop" else frozenset()
        rows: list[tuple[int, float, int]] = []
        self.passes.clear()
        if self.drafter is not None:
            self.drafter.proposed.clear()
            self.drafter.seconds = 0.0
        llama.reset()  # else a common beginning with the last prompt would not be evaluated again
        llama.set_seed(sampling["seed"])
        engine.llama_perf_context_reset(llama.ctx)
        processors = self._processors(mask=request["eos"] == "mask")
        started = time.perf_counter()
        ids = llama.tokenize(request["prompt"].encode("utf-8"), add_bos=True, special=True)
        self._refuse_full_context(len(ids), limit)
        stream = llama.generate(
            ids,
            temp=sampling["temperature"],
            top_k=sampling["top_k"],
            top_p=sampling["top_p"],
            min_p=sampling["min_p"],
            typical_p=1.0,
            repeat_penalty=sampling["repeat_penalty"],
            presence_penalty=sampling["presence_penalty"],
            frequency_penalty=sampling["frequency_penalty"],
            mirostat_mode=0,
            logits_processor=processors,
        )
        reason = "length"
        for token in stream:
            rows.append((int(token), time.perf_counter(), len(self.passes) - 1))
            if token in stops:
                reason = "stop"
                break
            if len(rows) == limit:
                break
        ended = time.perf_counter()
        stream.close()
        perf = engine.llama_perf_context(llama.ctx)
        return {
            "t0": started,
            "t1": ended,
            "tokens": rows,
            "passes": list(self.passes),
            "proposed": None if self.drafter is None else list(self.drafter.proposed),
            "draft_s": None if self.drafter is None else self.drafter.seconds,
            "text": llama.detokenize([token for token, _, _ in rows], prev_tokens=ids).decode("utf-8", "replace"),
            "finish_reason": reason,
            "prompt_tokens": len(ids),
            "perf": {
                "t_p_eval_ms": perf.t_p_eval_ms,
                "t_eval_ms": perf.t_eval_ms,
                "n_p_eval": perf.n_p_eval,
                "n_eval": perf.n_eval,
                "n_reused": perf.n_reused,
            },
            "end_of_text_ids": sorted(self.end_of_text),
            "llama_cpp_python": engine.__version__,
            "effective": {
                "sampling": sampling,
                "max_tokens": limit,
                "eos": request["eos"],
                "stops_at": sorted(stops),
                "processors": 0 if processors is None else len(processors),
                "penalty_window": llama.last_n_tokens_size,
                "n_ctx": llama.n_ctx(),
                "threads": llama.n_threads,
                "threads_batch": llama.n_threads_batch,
                "num_pred_tokens": 0 if self.drafter is None else self.drafter.inner.num_pred_tokens,
                "max_ngram_size": 0 if self.drafter is None else self.drafter.inner.max_ngram_size,
                "scores_bytes": self.facts["scores_bytes"],
            },
        }

    def _refuse_full_context(self, prompt: int, limit: int) -> None:
        drafted = 0 if self.drafter is None else self.drafter.inner.num_pred_tokens
        if prompt + limit + drafted > self.n_ctx:
            parts = f"{prompt} prompt tokens + {limit} output tokens + {drafted} draft tokens"
            raise Refused("unsupported", f"{parts} do not fit the context of {self.n_ctx}")

    def _processors(self, *, mask: bool) -> Any:
        """The mask of the tokens that end a text; the package has no other way to forbid a token."""
        if not mask:
            return None
        forbidden = sorted(self.end_of_text)

        def without_end_of_text(_ids: Any, scores: Any) -> Any:
            scores[forbidden] = -float("inf")
            return scores

        return self.engine.LogitsProcessorList([without_end_of_text])


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # A normal shutdown would wait for the pass under way, and report the interrupt as a fault.
        os._exit(130)

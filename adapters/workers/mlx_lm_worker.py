"""Runs MLX-LM in its own interpreter: JSON lines in on stdin, JSON lines out on stdout.

Started by absolute path as ``python mlx_lm_worker.py CONFIG`` with the standard library, mlx and mlx_lm alone.
``CONFIG`` is a JSON file: ``target`` and ``draft`` (a folder, or ``null``), ``dtype``, ``kv_bits``, ``kv_group_size``,
``prefill_step_size``. A request with ``"phases": true`` is an instrumented repeat (``mlx_lm_phases.py``), one with
``"judge": true`` tells the places at which drafts were judged (``mlx_lm_judging.py``); any other changes nothing.

After loading it says ``{"event": "ready", …}`` once, or ``{"event": "refused", "status": …, "reason": …}`` and
ends with status 3. Each request ``{"op": "generate", …}``, or ``{"op": "score", …}`` (see ``mlx_lm_scoring.py``), is
answered by one line, ``{"event": "done", …}`` or ``{"event": "error", …}``, and nothing is printed while it runs. Times
are seconds of ``time.perf_counter``, which all processes of a machine share.
"""

# ruff: noqa: ANN401  (objects of mlx are seen through importlib, so that a missing mlx is an answer, not a traceback)

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import json
import os
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

PENALTY_WINDOW = 20
"""Last tokens that each penalty looks at: mlx-lm's default, passed so that it cannot change unseen."""
QUANTIZED_KV_START = 0
"""Quantise the cache from its first token: a later switch falls on another token with a draft than without."""
QUANTIZABLE = frozenset({"KVCache"})
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
        if request.get("op") == "score":
            return {"event": "done", "trial": trial, **beside("mlx_lm_scoring").score(session, request)}
        if request.get("op") == "tokenize":
            return {"event": "done", "trial": trial, "ids": session._prompt_ids(request)}  # noqa: SLF001
        if request.get("op") != "generate":
            message = f"unknown op {request.get('op')!r}; this worker knows generate, score and tokenize"
            return {"event": "error", "trial": trial, "kind": "refused", "type": "protocol", "message": message}
        return {"event": "done", "trial": trial, **session.generate(request)}
    except Refused as refusal:
        return {"event": "error", "trial": trial, "kind": "refused", "type": refusal.status, "message": refusal.reason}
    except Exception as err:  # noqa: BLE001  (the trial boundary)
        traceback.print_exc()
        return {"event": "error", "trial": trial, "kind": "exception", "type": type(err).__name__, "message": str(err)}


def beside(name: str) -> Any:
    """A file of ours beside this one; the interpreter is isolated and does not look here by itself."""
    if name not in sys.modules:
        path = Path(__file__).resolve().parent / f"{name}.py"
        spec = importlib.util.spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise Refused("failed", f"{path} cannot be loaded; reinstall specmatrix")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


class Session:
    """The loaded models and all that requests share."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Loads the target and the draft.

        Raises:
            Refused: the pair or its caches cannot be measured rightly.
        """
        os.environ["HF_HUB_OFFLINE"] = "1"
        for role in ("target", "draft"):
            if config[role] is not None and not Path(config[role]).is_dir():
                raise Refused("unavailable", f"the {role}'s folder {config[role]} does not exist")
        started = time.perf_counter()
        try:
            self.mx = importlib.import_module("mlx.core")
            mlx_lm = importlib.import_module("mlx_lm")
            # ``mlx_lm.generate`` as an attribute is a function of that name.
            self.generation = importlib.import_module("mlx_lm.generate")
            self.samplers = importlib.import_module("mlx_lm.sample_utils")
            self.caches = caches = importlib.import_module("mlx_lm.models.cache")
        except ImportError as err:
            raise Refused("unavailable", f"{sys.executable} cannot import mlx_lm: {err}") from err
        imported = time.perf_counter()
        self.config = config
        self.model, self.tokenizer = self._load(mlx_lm, config["target"])
        self.draft: Any = None
        if config["draft"] is not None:
            self.draft, draft_tokenizer = self._load(mlx_lm, config["draft"])
            refuse_other_vocabulary(self.tokenizer.get_vocab(), draft_tokenizer.get_vocab())
        self.end_of_text = frozenset(self.tokenizer.eos_token_ids)
        target_caches = flat(caches.make_prompt_cache(self.model))
        draft_caches = flat(caches.make_prompt_cache(self.draft)) if self.draft is not None else []
        self.window = self._check_caches(target_caches, draft_caches)
        self.short_trims = 0
        self._watch_trims()
        self.mx.synchronize()
        self.versions = {"mlx": self.mx.__version__, "mlx_lm": mlx_lm.__version__}
        self.facts = {
            **self.versions,
            "python": platform.python_version(),
            "device": str(self.mx.default_device()),
            "device_name": str(self.mx.device_info().get("device_name", "")),
            # On a CPU mlx builds fused kernels with this compiler where it is found, and runs them unfused where not.
            "compiler": shutil.which("g++"),
            "import_s": imported - started,
            "load_s": time.perf_counter() - imported,
            "prompt_cache": class_names(target_caches),
            "draft_loaded": self.draft is not None,
            "draft_prompt_cache": class_names(draft_caches),
            "window": self.window,
            "dtype": self._dtypes(self.model),
            "draft_dtype": self._dtypes(self.draft) if self.draft is not None else [],
            "vocabulary": len(self.tokenizer.get_vocab()),
            "active_memory_bytes": self.mx.get_active_memory(),
        }

    def _load(self, mlx_lm: Any, folder: str) -> tuple[Any, Any]:
        model, tokenizer = mlx_lm.load(folder, tokenizer_config={"trust_remote_code": False})
        if self.config["dtype"] is not None:
            model.set_dtype(getattr(self.mx, self.config["dtype"]))
            self.mx.eval(model.parameters())
        return model, tokenizer

    def _dtypes(self, model: Any) -> list[str]:
        flatten = importlib.import_module("mlx.utils").tree_flatten
        return sorted({str(array.dtype).removeprefix("mlx.core.") for _, array in flatten(model.parameters())})

    def _check_caches(self, target: list[Any], draft: list[Any]) -> int | None:
        """The shortest attention window in tokens, if any; refuses caches that would answer wrongly."""
        if self.draft is not None:
            for role, caches in (("target", target), ("draft", draft)):
                stuck = class_names(cache for cache in caches if not cache.is_trimmable())
                if stuck:
                    reason = (
                        f"the {role}'s prompt cache ({', '.join(stuck)}) cannot be trimmed, so that refused draft "
                        "tokens would stay in it"
                    )
                    raise Refused("unsupported", reason)
        if self.config["kv_bits"] is not None:
            others = sorted(set(class_names([*target, *draft])) - QUANTIZABLE)
            if others:
                raise Refused("unsupported", f"kv_bits: mlx-lm does not quantise a {', '.join(others)}")
        windows = [cache.max_size for cache in (*target, *draft) if getattr(cache, "max_size", None) is not None]
        return min(windows, default=None)

    def _watch_trims(self) -> None:
        """Counts trims that removed less than asked: mlx-lm itself does not look at what a trim removed."""
        original = self.generation.trim_prompt_cache

        def watched(cache: list[Any], tokens: int) -> int:
            removed: int = original(cache, tokens)
            if tokens > 0 and removed != tokens:
                self.short_trims += 1
            return removed

        self.generation.trim_prompt_cache = watched

    def generate(self, request: dict[str, Any]) -> dict[str, Any]:
        """One trial, with a prompt cache of its own."""
        mx, generation = self.mx, self.generation
        sampling, limit = request["sampling"], request["max_tokens"]
        drafted = request["num_draft_tokens"]
        if drafted and self.draft is None:
            raise ValueError(f"num_draft_tokens is {drafted}, and no draft was loaded")
        arguments = self._arguments(request)
        self.tokenizer.eos_token_ids = set() if request["eos"] == "continue" else set(self.end_of_text)
        rows: list[tuple[int, float, bool]] = []
        pieces: list[str] = []
        self.short_trims = 0
        self._drain()
        mx.random.seed(sampling["seed"])
        mx.reset_peak_memory()
        active = mx.get_active_memory()
        started = time.perf_counter()
        ids = self._prompt_ids(request)
        self._refuse_full_window(len(ids), limit, drafted)
        drafts = self._drafts(request, arguments, len(ids))
        with self._phases(request, arguments, len(ids)) as (model, stopwatch):
            last: Any = None
            for last in generation.stream_generate(model, self.tokenizer, ids, **arguments):
                rows.append((int(last.token), time.perf_counter(), bool(last.from_draft)))
                pieces.append(last.text)
            ended = time.perf_counter()
        # Without a draft one more pass is under way, of which nobody waits for the result.
        self._drain()
        idle = time.perf_counter()
        return {
            "t0": started,
            "t1": ended,
            "t_idle": idle,
            "tokens": rows,
            "text": "".join(pieces),
            "finish_reason": last.finish_reason,
            "prompt_tokens": len(ids),
            "generation_tokens": last.generation_tokens,
            "mlx_generation_tps": last.generation_tps,
            "mlx_prompt_tps": last.prompt_tps,
            "peak_memory_bytes": mx.get_peak_memory(),
            "active_before_bytes": active,
            "short_trims": self.short_trims,
            "end_of_text_ids": sorted(self.end_of_text),
            **self.versions,
            "effective": self._effective(request, arguments),
            **({} if stopwatch is None else {"phases": stopwatch.read(rows[-1][1])}),
            **({} if drafts is None else {"judged": drafts.judged(beside("mlx_lm_scoring"), self, request, ids, rows)}),
        }

    def _drafts(self, request: dict[str, Any], arguments: dict[str, Any], prompt: int) -> Any:
        """What keeps the draft's scores in a distribution check; in any other request nothing is changed."""
        if not request.get("judge"):
            return None
        judging = beside("mlx_lm_judging")
        reason = judging.refusal(self, request)
        if reason:
            raise Refused("unsupported", reason)
        drafts = judging.Drafts(prompt)
        arguments["draft_model"] = drafts.watch(self.draft)
        return drafts

    @contextlib.contextmanager
    def _phases(self, request: dict[str, Any], arguments: dict[str, Any], prompt: int) -> Iterator[tuple[Any, Any]]:
        """The target to run, and the stopwatch of an instrumented repeat; in any other request nothing is changed."""
        if not request.get("phases"):
            yield self.model, None
            return
        if not request["num_draft_tokens"]:
            raise Refused("unsupported", "without a draft there are no phases to time")
        stopwatch = beside("mlx_lm_phases").Stopwatch(self.mx, prompt)
        arguments["draft_model"] = stopwatch.draft(self.draft)
        trim = self.generation.trim_prompt_cache
        self.generation.trim_prompt_cache = stopwatch.trim(trim)
        try:
            yield stopwatch.target(self.model), stopwatch
        finally:
            self.generation.trim_prompt_cache = trim

    def _drain(self) -> None:
        """Waits until the device is idle: generation has a stream of its own, which a bare synchronize leaves out."""
        self.mx.synchronize(self.generation.generation_stream)
        self.mx.synchronize()

    def _prompt_ids(self, request: dict[str, Any]) -> list[int]:
        """The prompt's tokens, by the same rule for special tokens as mlx-lm's own for a text."""
        if request.get("prompt_ids") is not None:
            return [int(token) for token in request["prompt_ids"]]
        start = self.tokenizer.bos_token
        special = start is None or not request["prompt"].startswith(start)
        return list(self.tokenizer.encode(request["prompt"], add_special_tokens=special))

    def _refuse_full_window(self, prompt: int, limit: int, drafted: int) -> None:
        if self.window is not None and drafted and prompt + limit + drafted >= self.window:
            reason = (
                f"{prompt} prompt tokens + {limit} output tokens + {drafted} draft tokens fill the attention window of "
                f"{self.window}; a full window cannot be trimmed, and mlx-lm would go on with wrong text"
            )
            raise Refused("unsupported", reason)

    def _arguments(self, request: dict[str, Any]) -> dict[str, Any]:
        """What ``stream_generate`` is given, the same with and without a draft but for the draft itself."""
        sampling = request["sampling"]
        arguments: dict[str, Any] = {
            "max_tokens": request["max_tokens"],
            "prefill_step_size": self.config["prefill_step_size"],
            "sampler": self.samplers.make_sampler(
                temp=sampling["temperature"],
                top_p=sampling["top_p"],
                min_p=sampling["min_p"],
                top_k=sampling["top_k"],
                xtc_probability=sampling["xtc_probability"],
                xtc_threshold=sampling["xtc_threshold"],
            ),
        }
        processors = self._processors(sampling, mask=request["eos"] == "mask")
        if processors:
            arguments["logits_processors"] = processors
        if self.config["kv_bits"] is not None:
            arguments["kv_bits"] = self.config["kv_bits"]
            arguments["kv_group_size"] = self.config["kv_group_size"]
            arguments["quantized_kv_start"] = QUANTIZED_KV_START
        if request["num_draft_tokens"]:
            arguments["draft_model"] = self.draft
            arguments["num_draft_tokens"] = request["num_draft_tokens"]
        return arguments

    def _processors(self, sampling: dict[str, Any], *, mask: bool) -> list[Callable[[Any, Any], Any]]:
        """Penalties, then the mask; none where all are off, since any makes a verify walk row by row."""
        repeat = sampling["repeat_penalty"]
        processors: list[Callable[[Any, Any], Any]] = self.samplers.make_logits_processors(
            repetition_penalty=None if repeat == 1 else repeat,
            repetition_context_size=PENALTY_WINDOW,
            presence_penalty=sampling["presence_penalty"] or None,
            presence_context_size=PENALTY_WINDOW,
            frequency_penalty=sampling["frequency_penalty"] or None,
            frequency_context_size=PENALTY_WINDOW,
        )
        if mask:
            forbidden = self.mx.array(sorted(self.end_of_text))

            def without_end_of_text(_tokens: Any, logits: Any) -> Any:
                logits[..., forbidden] = -float("inf")
                return logits

            processors.append(without_end_of_text)
        return processors

    def _effective(self, request: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
        """An echo of what was passed to mlx-lm, for the report's conditions."""
        return {
            "sampling": request["sampling"],
            "max_tokens": arguments["max_tokens"],
            "num_draft_tokens": arguments.get("num_draft_tokens", 0),
            "eos": request["eos"],
            "stops_at": sorted(self.tokenizer.eos_token_ids),
            "processors": len(arguments.get("logits_processors", [])),
            "penalty_window": PENALTY_WINDOW,
            "prefill_step_size": arguments["prefill_step_size"],
            "kv_bits": arguments.get("kv_bits"),
            "kv_group_size": arguments.get("kv_group_size"),
            "quantized_kv_start": arguments.get("quantized_kv_start"),
            "dtype": self.facts["dtype"],
            "draft_dtype": self.facts["draft_dtype"],
            "device": self.facts["device"],
            "compiler": self.facts["compiler"],
        }


def refuse_other_vocabulary(target: dict[str, int], draft: dict[str, int]) -> None:
    """Refuses a draft whose token ids mean something else; two vocabularies of one size may still differ.

    Raises:
        Refused: naming the first token id that differs, and both sizes.
    """
    if target == draft:
        return
    ours = {number: token for token, number in target.items()}
    theirs = {number: token for token, number in draft.items()}
    first = next(number for number in sorted(ours.keys() | theirs.keys()) if ours.get(number) != theirs.get(number))
    reason = (
        f"the draft's vocabulary is not the target's: token id {first} is {shown(ours, first)} in the target and "
        f"{shown(theirs, first)} in the draft (sizes {len(target)} and {len(draft)})"
    )
    raise Refused("unsupported", reason)


def shown(tokens: dict[int, str], number: int) -> str:
    """A token for people, or that there is none of this number."""
    return repr(tokens[number]) if number in tokens else "absent"


def flat(caches: Iterable[Any]) -> list[Any]:
    """All caches, those inside a list of caches too."""

    def walk(found: Iterable[Any]) -> Iterator[Any]:
        for cache in found:
            inner = getattr(cache, "caches", None)
            yield from walk(inner) if inner is not None else (cache,)

    return list(walk(caches))


def class_names(caches: Iterable[Any]) -> list[str]:
    """Each class once, sorted."""
    return sorted({type(cache).__name__ for cache in caches})


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # A normal shutdown would wait for the pass under way, and report the interrupt as a fault.
        os._exit(130)

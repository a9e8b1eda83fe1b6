"""Runs mlx-vlm on text in its own interpreter: JSON lines in on stdin, JSON lines out on stdout.

Started by absolute path as ``python mlx_vlm_worker.py CONFIG`` with the standard library, mlx and mlx_vlm alone.
``CONFIG`` is a JSON file: ``target`` (a folder), ``drafter`` (a folder, or ``null``), ``prefill_step_size`` (tokens, or
``null`` for the whole prompt at once) and ``seeding`` (``stream`` or ``position``).

After loading it says ``{"event": "ready", …}`` once, or ``{"event": "refused", "status": …, "reason": …}`` and ends
with status 3. Each request ``{"op": "generate", …}``, or ``{"op": "score", …}`` (see ``mlx_vlm_scoring.py``), is
answered by one line, ``{"event": "done", …}`` or ``{"event": "error", …}``, and nothing is printed while it runs. Times
are seconds of ``time.perf_counter``, which all processes of a machine share.
"""

# ruff: noqa: ANN401  (objects of mlx are seen through importlib, so that a missing mlx is an answer, not a traceback)

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import platform
import shutil
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TextIO

PENALTY_WINDOW = 20
"""Last tokens that each penalty looks at: mlx-vlm's default, passed so that it cannot change unseen."""
MTP = "mtp"
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
            rows = beside("mlx_lm_scoring")
            return {"event": "done", "trial": trial, **beside("mlx_vlm_scoring").score(session, rows, request)}
        if request.get("op") != "generate":
            message = f"unknown op {request.get('op')!r}; this worker knows generate and score"
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


class Masking:
    """A sampler that never gives the tokens that end a text.

    mlx-vlm applies no logits processor while it speculates, so the mask must stand before the sampler.
    """

    def __init__(self, mx: Any, sampler: Any, forbidden: Iterable[int]) -> None:
        self.mx, self.inner, self.forbidden = mx, sampler, list(forbidden)
        self.kept: Any = None

    def without(self, logprobs: Any) -> Any:
        """The same with the forbidden tokens at minus infinity."""
        if self.kept is None or self.kept.shape[-1] != logprobs.shape[-1]:
            self.kept = self.mx.array([token not in self.forbidden for token in range(logprobs.shape[-1])])
        return self.mx.where(self.kept, logprobs, self.mx.array(-float("inf"), logprobs.dtype))

    def __call__(self, logprobs: Any) -> Any:
        """Token ids for the last axis."""
        return self.inner(self.without(logprobs))


class MaskingByPosition(Masking):
    """The same for samplers that are told the place of each row: mlx-vlm then judges a block's rows all at once."""

    def sample_target(self, logprobs: Any, *, row_ids: list[int], positions: list[int]) -> Any:
        """Token ids, one a row; a greedy sampler takes no note of the places."""
        told = getattr(self.inner, "sample_target", None)
        masked = self.without(logprobs)
        return self.inner(masked) if told is None else told(masked, row_ids=row_ids, positions=positions)


class Stops:
    """What ends an answer: tokens of the model's own, or nothing."""

    def __init__(self, eos_token_ids: Iterable[int]) -> None:
        self.eos_token_ids = list(eos_token_ids)

    def __call__(self, token: Any) -> bool:
        """Whether this token ends the answer."""
        return int(token) in self.eos_token_ids


class Session:
    """The loaded models and all that requests share."""

    def __init__(self, config: dict[str, Any]) -> None:
        """Loads the target and the drafter.

        Raises:
            Refused: the pair cannot be measured rightly.
        """
        os.environ["HF_HUB_OFFLINE"] = "1"
        for role in ("target", "drafter"):
            if config[role] is not None and not Path(config[role]).is_dir():
                raise Refused("unavailable", f"the {role}'s folder {config[role]} does not exist")
        started = time.perf_counter()
        try:
            self.mx = importlib.import_module("mlx.core")
            version = importlib.import_module("mlx_vlm.version").__version__
            self.generation = importlib.import_module("mlx_vlm.generate")
            self.loop = importlib.import_module("mlx_vlm.generate.ar")
            self.samplers = importlib.import_module("mlx_vlm.sample_utils")
            self.speculation = importlib.import_module("mlx_vlm.speculative.utils")
            self.rounds = importlib.import_module("mlx_vlm.speculative.common")
            self.caches = importlib.import_module("mlx_vlm.models.cache")
            self.loading = loading = importlib.import_module("mlx_vlm.utils")
        except ImportError as err:
            raise Refused("unavailable", f"{sys.executable} cannot import mlx_vlm: {err}") from err
        imported = time.perf_counter()
        self.config = config
        self.model, self.processor = loading.load(config["target"], trust_remote_code=False)
        if not hasattr(self.model, "language_model"):
            raise Refused("unsupported", f"mlx-vlm loads {config['target']} as no model that writes text")
        if importlib.import_module("mlx_vlm.generate.diffusion").is_diffusion_model(self.model, {}):
            raise Refused("unsupported", "the target writes by diffusion, not token by token")
        self.tokenizer = getattr(self.processor, "tokenizer", self.processor)
        self.end_of_text = tuple(sorted({int(token) for token in self.tokenizer.stopping_criteria.eos_token_ids}))
        self.proposed: list[int] = []
        self.prompt_shown: int | None = None
        self.drafter: Any = None
        self.kind: str | None = None
        if config["drafter"] is not None:
            self._load_drafter(config["drafter"])
        self.drain()
        self.versions = {"mlx": self.mx.__version__, "mlx_vlm": version}
        self.facts = {
            **self.versions,
            "python": platform.python_version(),
            "device": str(self.mx.default_device()),
            "device_name": str(self.mx.device_info().get("device_name", "")),
            # On a CPU mlx builds fused kernels with this compiler where it is found, and runs them unfused where not.
            "compiler": shutil.which("g++"),
            "import_s": imported - started,
            "load_s": time.perf_counter() - imported,
            "prompt_cache": class_names(flat(self.caches.make_prompt_cache(self.model.language_model))),
            "draft_loaded": self.drafter is not None,
            "draft_kind": self.kind,
            "draft_type": None if self.drafter is None else str(getattr(self.drafter.config, "model_type", "")),
            "configured_block": None if self.drafter is None else int(getattr(self.drafter.config, "block_size", 0)),
            "dtype": self._dtypes(self.model),
            "draft_dtype": self._dtypes(self.drafter) if self.drafter is not None else [],
            "vocabulary": len(self.tokenizer.get_vocab()),
            "active_memory_bytes": self.mx.get_active_memory(),
        }

    def _load_drafter(self, folder: str) -> None:
        """Loads the drafter and watches what it proposes.

        Raises:
            Refused: mlx-vlm would run it as something else than an MTP drafter, or drop it and go on without.
        """
        drafters = importlib.import_module("mlx_vlm.speculative.drafters")
        try:
            self.drafter, self.kind = drafters.load_drafter(folder)
        except ValueError as err:
            raise Refused("unsupported", f"mlx-vlm cannot load {folder} as a drafter: {err}") from err
        if self.kind != MTP:
            declared = getattr(self.drafter.config, "model_type", None)
            reason = f"mlx-vlm takes {folder} (model type {declared}) for a drafter of kind {self.kind}, not {MTP}"
            raise Refused("unsupported", reason)
        try:
            drafters.validate_drafter_compatibility(self.model, self.drafter, self.kind)
        except ValueError as err:
            reason = f"mlx-vlm finds the drafter incompatible, and its command line would go on without it: {err}"
            raise Refused("unsupported", reason) from err
        self._watch_drafter()

    def _watch_drafter(self) -> None:
        """Writes down how many tokens each block has, and how much of the prompt the drafter is shown."""
        draft, prefill = self.drafter.draft_block, getattr(self.drafter, "prefill_from_target_hidden", None)

        def watched(*args: Any, **named: Any) -> Any:
            tokens = draft(*args, **named)
            self.proposed.append(int(tokens.shape[1]))
            return tokens

        def shown(prompt: Any, *args: Any, **named: Any) -> Any:
            self.prompt_shown = int(prompt.shape[1])
            return prefill(prompt, *args, **named)

        self.drafter.draft_block = watched
        if prefill is not None:
            self.drafter.prefill_from_target_hidden = shown

    def _dtypes(self, model: Any) -> list[str]:
        flatten = importlib.import_module("mlx.utils").tree_flatten
        return sorted({str(array.dtype).removeprefix("mlx.core.") for _, array in flatten(model.parameters())})

    def drain(self) -> None:
        """Waits until the device is idle: generation has streams of its own, which a bare synchronize leaves out."""
        for stream in (self.loop.generation_stream, self.rounds.generation_stream):
            self.mx.synchronize(stream)
        self.mx.synchronize()

    def prompt_ids(self, prompt: str) -> list[int]:
        """The prompt's tokens, as mlx-vlm makes them of a text."""
        special = self.loading.should_add_special_tokens(self.model.config.model_type, self.processor)
        made = self.loading.prepare_inputs(self.processor, prompts=prompt, add_special_tokens=special)
        return [int(token) for token in made["input_ids"].flatten().tolist()]

    def generate(self, request: dict[str, Any]) -> dict[str, Any]:
        """One trial, with a prompt cache of its own."""
        mx, sampling, block = self.mx, request["sampling"], request["block_size"]
        if block and self.drafter is None:
            raise ValueError(f"block_size is {block}, and no drafter was loaded")
        arguments = self._arguments(request)
        self.tokenizer.stopping_criteria = Stops(self.end_of_text if request["eos"] == "stop" else ())
        self.forget()
        rows: list[tuple[int, float, int]] = []
        pieces: list[str] = []
        self.drain()
        mx.random.seed(sampling["seed"])
        mx.reset_peak_memory()
        active = mx.get_active_memory()
        before = None if self.drafter is None else self.rounds.speculative_stats_snapshot(self.drafter)
        started = time.perf_counter()
        last: Any = None
        for last in self.generation.stream_generate(self.model, self.processor, request["prompt"], **arguments):
            pieces.append(last.text)
            # The last response closes the answer. It brings a token of its own at end of text alone.
            if last.finish_reason is None or len(last.token_ids) > len(rows):
                token = last.token if last.finish_reason is None else last.token_ids[-1]
                rows.append((int(token), time.perf_counter(), len(self.proposed)))
        ended = time.perf_counter()
        # Without a drafter one more pass is under way, of which nobody waits for the result.
        self.drain()
        idle = time.perf_counter()
        return {
            "t0": started,
            "t1": ended,
            "t_idle": idle,
            "tokens": rows,
            "text": "".join(pieces),
            "finish_reason": last.finish_reason,
            "prompt_tokens": last.prompt_tokens,
            "cached_tokens": last.cached_tokens,
            "generation_tokens": last.generation_tokens,
            "told_ids": list(last.token_ids),
            "mlx_generation_tps": last.generation_tps,
            "mlx_prompt_tps": last.prompt_tps,
            "peak_memory_bytes": mx.get_peak_memory(),
            "active_before_bytes": active,
            "speculation": self._told(before) if block else None,
            "end_of_text_ids": list(self.end_of_text),
            **self.versions,
            "effective": self._effective(request, arguments),
        }

    def forget(self) -> None:
        """Takes away what an earlier answer left behind: its rounds, and its positions in the target."""
        self.proposed.clear()
        self.prompt_shown = None
        if self.drafter is not None:
            self.drafter.accept_lens, self.drafter.draft_lens = [], []
        for name in ("_position_ids", "_rope_deltas"):
            if hasattr(self.model.language_model, name):
                setattr(self.model.language_model, name, None)

    def _told(self, before: Any) -> dict[str, Any]:
        """What mlx-vlm recorded round by round, its counters over the answer, and the line it prints of them."""
        rounds, accepted, capacity = self.rounds.speculative_stats_since(self.drafter, before)
        return {
            "proposed": list(self.proposed),
            "accepted": [int(count) for count in self.drafter.accept_lens],
            "capacity": [int(count) for count in self.drafter.draft_lens],
            "prompt_shown": self.prompt_shown,
            "counters": None if rounds is None else [rounds, accepted, capacity],
            "line": self.speculation.format_speculative_stats(self.drafter),
        }

    def _arguments(self, request: dict[str, Any]) -> dict[str, Any]:
        """What ``stream_generate`` is given, the same with and without a drafter but for the drafter itself."""
        sampling = request["sampling"]
        arguments: dict[str, Any] = {
            "max_tokens": request["max_tokens"],
            "prefill_step_size": self.config["prefill_step_size"],
            "temperature": sampling["temperature"],
            "top_p": sampling["top_p"],
            "top_k": sampling["top_k"],
            "min_p": sampling["min_p"],
            "repetition_penalty": None if sampling["repeat_penalty"] == 1 else sampling["repeat_penalty"],
            "repetition_context_size": PENALTY_WINDOW,
            "presence_penalty": sampling["presence_penalty"] or None,
            "presence_context_size": PENALTY_WINDOW,
            "frequency_penalty": sampling["frequency_penalty"] or None,
            "frequency_context_size": PENALTY_WINDOW,
        }
        by_position = self.config["seeding"] == "position" and sampling["temperature"] > 0
        if by_position:
            arguments["seed"] = sampling["seed"]
        if request["eos"] == "mask":
            arguments["sampler"] = self._masking(sampling, by_position=by_position)
        if request["block_size"]:
            arguments["draft_model"] = self.drafter
            arguments["draft_kind"] = self.kind
            arguments["draft_block_size"] = request["block_size"]
        return arguments

    def _masking(self, sampling: dict[str, Any], *, by_position: bool) -> Masking:
        """The sampler that mlx-vlm would have made, with the mask before it."""
        filters = {"top_p": sampling["top_p"], "top_k": sampling["top_k"]}
        if by_position:
            made = self.loop._PositionedTargetSampler(  # noqa: SLF001  (what it makes of the argument seed)
                temperature=sampling["temperature"], seed=sampling["seed"], **filters
            )
        else:
            made = self.samplers.make_sampler(temp=sampling["temperature"], min_p=sampling["min_p"], **filters)
        kind = MaskingByPosition if by_position or sampling["temperature"] == 0 else Masking
        return kind(self.mx, made, self.end_of_text)

    def _effective(self, request: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
        """An echo of what was passed to mlx-vlm, for the report's conditions."""
        told = {"temperature": self.samplers.clamp_temperature(arguments["temperature"])}
        sampler = arguments.get("sampler")
        return {
            "sampling": {**request["sampling"], **told},
            "max_tokens": arguments["max_tokens"],
            "block_size": arguments.get("draft_block_size", 0),
            "eos": request["eos"],
            "stops_at": list(self.tokenizer.stopping_criteria.eos_token_ids),
            "sampler": "mlx-vlm's" if sampler is None else type(sampler).__name__,
            "seeded_by": "position" if "seed" in arguments else "stream",
            "penalty_window": PENALTY_WINDOW,
            "prefill_step_size": arguments["prefill_step_size"],
            "prompt_cache": self.facts["prompt_cache"],
            "draft_kind": arguments.get("draft_kind"),
            "draft_type": self.facts["draft_type"],
            "configured_block": self.facts["configured_block"],
            "dtype": self.facts["dtype"],
            "draft_dtype": self.facts["draft_dtype"],
            "device": self.facts["device"],
            "compiler": self.facts["compiler"],
        }


def flat(caches: Iterable[Any]) -> list[Any]:
    """All caches, those inside a list of caches too."""

    def walk(found: Iterable[Any]) -> Iterator[Any]:
        for cache in found:
            inner = getattr(cache, "caches", None)
            yield from walk(inner) if inner is not None else (cache,)

    return list(walk(caches))


def class_names(caches: Iterable[Any]) -> list[str]:
    """Names of the caches' classes, each once."""
    return sorted({type(cache).__name__ for cache in caches})


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        # A normal shutdown would wait for the pass under way, and report the interrupt as a fault.
        os._exit(130)

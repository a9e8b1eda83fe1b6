"""Times the parts of MLX-LM's draft-and-verify rounds from outside, for an instrumented repeat.

Loaded by ``mlx_lm_worker.py`` for a request with ``"phases": true`` only. Without it mlx-lm waits for its device once a
round; with it once a pass, so that times of such a repeat are no times of an ordinary answer.

A round is told from prefill by what a model was fed: mlx-lm prefills all prompt tokens but the last, one model after
the other, and each round is K passes of the draft and then one of the target.
"""

# ruff: noqa: ANN401  (objects of mlx)

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Stopwatch:
    """Seconds by part of a round; made anew for every answer."""

    def __init__(self, mx: Any, prompt_tokens: int) -> None:
        self.mx = mx
        self.prefill = prompt_tokens - 1
        self.draft_s = 0.0
        self.verify_s = 0.0
        self.draft_passes = 0
        self.verify_passes = 0
        self.trims: list[tuple[float, float]] = []
        self.drafting_since: float | None = None

    def draft(self, model: Any) -> Timed:
        """The draft model, each pass seen."""
        return Timed(self.mx, model, self.prefill, self._draft_pass)

    def target(self, model: Any) -> Timed:
        """The target model, each pass seen."""
        return Timed(self.mx, model, self.prefill, self._verify_pass)

    def trim(self, original: Callable[[Any, int], int]) -> Callable[[Any, int], int]:
        """The function that takes refused tokens out of a cache, timed."""

        def timed(cache: Any, tokens: int) -> int:
            began = time.perf_counter()
            removed = original(cache, tokens)
            self.trims.append((began, time.perf_counter() - began))
            return removed

        return timed

    def _draft_pass(self, run: Callable[[], Any]) -> Any:
        if self.drafting_since is None:
            self.drafting_since = time.perf_counter()
        self.draft_passes += 1
        return run()

    def _verify_pass(self, run: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        if self.drafting_since is not None:
            # The target's input holds the draft tokens, so the draft's last pass and its sampling are over.
            self.draft_s += began - self.drafting_since
            self.drafting_since = None
        scores = run()
        self.mx.eval(scores)
        self.verify_s += time.perf_counter() - began
        self.verify_passes += 1
        return scores

    def read(self, until_s: float) -> dict[str, Any]:
        """The sums; trims that began after ``until_s``, the answer's last token, are nobody's wait."""
        return {
            "draft_s": self.draft_s,
            "verify_s": self.verify_s,
            "rollback_s": sum(took for began, took in self.trims if began <= until_s),
            "draft_passes": self.draft_passes,
            "verify_passes": self.verify_passes,
        }


class Timed:
    """A model that waits for its input before each pass of a round, and hands the pass to a stopwatch."""

    def __init__(self, mx: Any, model: Any, prefill: int, watch: Callable[[Callable[[], Any]], Any]) -> None:
        self._mx, self._model, self._prefill, self._watch = mx, model, prefill, watch
        self._fed = 0

    def __getattr__(self, name: str) -> Any:
        """Whatever mlx-lm asks of the model besides calling it."""
        return getattr(self._model, name)

    def __call__(self, inputs: Any, *args: Any, **named: Any) -> Any:
        """One pass; those of the prefill go by unseen."""
        self._fed += inputs.shape[1]
        if self._fed <= self._prefill:
            return self._model(inputs, *args, **named)
        self._mx.eval(inputs)
        return self._watch(lambda: self._model(inputs, *args, **named))

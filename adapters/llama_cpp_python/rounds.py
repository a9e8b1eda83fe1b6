"""Verify rounds of llama-cpp-python, inferred: the package itself reports neither rounds nor acceptance.

Source: llama-cpp-python 0.3.36 ``llama.py``, ``generate``. The first pass reads the prompt. Before each further pass
the drafter is asked once; the pass is fed the last token and what was proposed, and tokens are sampled from it, place
by place, until one is not the proposed one. So a pass fed ``1 + d`` tokens judged ``d`` of them, and those at the
beginning of what it emitted that equal the proposal were accepted.
"""

from __future__ import annotations

from adapters.llama_cpp_python.protocol import Done
from adapters.shared.rounds import Round
from orchestrator.schema.errors import CaptureError


def read_rounds(done: Done) -> tuple[Round, ...]:
    """One entry per pass after the prompt's, in order; of those that were fed no draft ``drafted`` is 0.

    Raises:
        CaptureError: the package cannot have emitted such tokens.
    """
    proposed = done.proposed if done.proposed is not None else ((),) * (len(done.passes) - 1)
    if len(proposed) != len(done.passes) - 1:
        raise CaptureError(f"the drafter was asked {len(proposed)} times for {len(done.passes) - 1} passes")
    return tuple(_round(done, number, proposed[number - 1]) for number in range(1, len(done.passes)))


def _round(done: Done, number: int, proposal: tuple[int, ...]) -> Round:
    handed = proposal[: done.passes[number] - 1]
    if len(handed) != done.passes[number] - 1:
        raise CaptureError(f"pass {number} was fed {done.passes[number]} tokens, {len(proposal)} were proposed")
    emitted = done.of_pass(number)
    accepted = 0
    while accepted < min(len(emitted), len(handed)) and emitted[accepted] == handed[accepted]:
        accepted += 1
    is_last = number == len(done.passes) - 1
    whole = accepted + 1
    if len(emitted) > whole or (len(emitted) < whole and not is_last):
        raise CaptureError(f"pass {number} emitted {len(emitted)} tokens, {accepted} of them as proposed")
    return Round(len(handed), accepted, closed=len(emitted) == whole)

"""Greedy identity: at temperature 0, are the token ids with speculation those without it?

The verdicts, and why a difference alone is not a failure: quantised and batched arithmetic can flip two tokens
whose scores are almost equal, with no fault in the acceptance rule. So a difference *fails* only when a replay
on the baseline showed that it is no near-tie, or where the caller vouches for exact numerics. Otherwise it is
``uninformative: differs; near-tie not adjudicated``, which neither passes nor contradicts.

=====================================================  =================
no output to compare                                   ``not_tested``
baseline disagrees with itself                         ``uninformative``
every output equal                                     ``pass``
a difference is no near-tie, by replay                 ``fail``
every difference is a near-tie, by replay              ``pass``
differences left open, no off-vs-off control           ``uninformative``
differences left open, numerics exact                  ``fail``
differences left open otherwise                        ``uninformative``
=====================================================  =================
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.exactness.neartie import Adjudication, Replay, Tie, adjudicate, tally
from orchestrator.exactness.outputs import PromptKey, by_prompt, first_difference
from orchestrator.schema.result import Divergence, GreedyIdentity, Output, Verdict
from orchestrator.schema.units import percent, plain

CHECK = "greedy identity"
NOT_ADJUDICATED = "near-tie not adjudicated"


@dataclass(frozen=True, slots=True)
class _Count:
    same: int = 0
    compared: int = 0
    tokens: int = 0
    """Up to and including the first difference: what follows a flip is another text."""


def greedy_identity(
    cell_id: str,
    base_id: str,
    outputs: Sequence[Output],
    twin_id: str | None,
    *,
    numerics_exact: bool = False,
    replays: Sequence[Replay] = (),
    jitter_nat: float | None = None,
) -> GreedyIdentity:
    """On against off by token ids, with off against off as the control.

    Args:
        cell_id: the speculative cell.
        base_id: its baseline: same engine, build, model and workload.
        outputs: of one block, all cells and phases; measured outputs with token ids are used.
        twin_id: the baseline's A/A twin, part of the control; ``None`` without one.
        numerics_exact: both arms compute the same numbers whatever the batch (f32 on one CPU path, tested), so
            that an unexplained difference is a failure.
        replays: of divergences on the baseline.
        jitter_nat: the limit from the engine's measured jitter for them.
    """
    off = by_prompt(outputs, frozenset({base_id} | ({twin_id} if twin_id else set())), first=base_id)
    references = {key: group[0] for key, group in off.items()}
    control, _ = _compare(references, {key: group[1:] for key, group in off.items()})
    on = by_prompt(outputs, frozenset({cell_id}))
    count, divergences = _compare(references, on)
    judged = tuple(adjudicate(one, replays, jitter_nat) for one in divergences)
    verdict, words = _verdict(count, control, judged, numerics_exact=numerics_exact)
    unmatched = sum(1 for key in on if key not in references)
    if unmatched:
        words += f"; {unmatched} prompts have no output of the baseline to compare with"
    return GreedyIdentity(
        cell_id,
        verdict,
        count.same,
        count.compared,
        control.same,
        control.compared,
        1000 * (count.compared - count.same) / count.tokens if count.tokens else None,
        tuple(one.told for one in judged),
        words,
    )


def _compare(
    references: Mapping[PromptKey, Output], others: Mapping[PromptKey, Sequence[Output]]
) -> tuple[_Count, tuple[Divergence, ...]]:
    same = compared = tokens = 0
    found: dict[tuple[PromptKey, tuple[int, ...]], Divergence] = {}
    for key in others.keys() & references.keys():
        reference = references[key]
        for one in others[key]:
            compared += 1
            index = first_difference(reference.token_ids, one.token_ids)
            if index is None:
                same += 1
                tokens += len(one.token_ids)
                continue
            tokens += index + 1
            length = min(len(reference.token_ids), len(one.token_ids))
            divergence = Divergence(
                one.prompt_id, index, length, reference.token_ids, one.token_ids, reference.text, one.text
            )
            found.setdefault((key, one.token_ids), divergence)
    return _Count(same, compared, tokens), tuple(found[key] for key in sorted(found))


def _verdict(
    count: _Count, control: _Count, judged: Sequence[Adjudication], *, numerics_exact: bool
) -> tuple[Verdict, str]:
    if count.compared == 0:
        return Verdict.NOT_TESTED, "not tested: no output with token ids of both the cell and its baseline"
    if control.same < control.compared:
        astray = control.compared - control.same
        rate = f"{astray} of {control.compared} outputs, {_per_1000(control)} per 1 000 tokens"
        return Verdict.UNINFORMATIVE, f"the baseline differs from itself in {rate}: says nothing about speculation"
    checked = f"control {control.same}/{control.compared} equal" if control.compared else "no control: one output each"
    head = f"{count.same}/{count.compared} outputs token for token those of the baseline"
    if count.same == count.compared:
        return Verdict.PASS, f"bit-exact: {head} ({checked})"
    kinds = tally(judged)
    differs = f"{head}, first difference at token {min(one.divergence.index for one in judged)}, "
    differs += f"{_per_1000(count)} flips per 1 000 tokens ({checked})"
    if kinds[Tie.DIVERGENT]:
        worst = next(one for one in judged if one.tie is Tie.DIVERGENT)
        return Verdict.FAIL, f"divergent: {differs}; {worst.sentence}"
    if not kinds[Tie.OPEN]:
        return Verdict.PASS, f"near-tie: {differs}; {judged[0].sentence}"
    if control.compared and numerics_exact:
        return Verdict.FAIL, f"divergent: {differs}; the arithmetic of both arms is exact, which leaves no near-tie"
    return Verdict.UNINFORMATIVE, f"differs; {NOT_ADJUDICATED}: {differs}"


def _per_1000(count: _Count) -> str:
    return plain(1000 * (count.compared - count.same) / count.tokens) if count.tokens else percent(0)

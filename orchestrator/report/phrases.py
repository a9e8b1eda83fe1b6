"""The forms of sentences that reach the page finished, from statistics, checks, the runner and the store.

They are written where they are concluded, in English, and are stored in records. A catalogue cannot look up a filled
sentence, so that its form is recognised here and its values are put into the translated form. A test reads the
sources and fails when one of their sentences has no form here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from orchestrator.report.phrases_machine import ADAPTERS, MACHINE
from orchestrator.schema.status import STATUS_RULES

STATISTICS: tuple[str, ...] = (
    "{n} pairs of session and prompt are in one arm only and left out",
    "{outcome} if it stood alone, not among {family} on one baseline (Holm p {p})",
    "{n} session: a range; an interval needs {needed}",
    "{n} sessions: a range; an interval needs {needed}",
    "no A/A twin: the noise floor is not known",
    "inside the noise floor of ±{share}",
    "the 90 % interval lies within ±{share}",
    "no interval: no spread between sessions (a counted value, or a clock too coarse)",
    "no interval: wider than any useful number",
    "range only",
    "Student's t over sessions, paired log ratios",
    "hierarchical bootstrap (sessions, then prompts), {draws} draws, seed {seed}",
    "Σ ÷ Σ; an interval needs {n} prompts",
    "Σ ÷ Σ; no interval: no spread between prompts",
    "Σ ÷ Σ, bootstrap over {n} prompts, {draws} draws, seed {seed}",
    "not comparable: length ({why})",
    "not comparable: length",
    "equal token counts in every pair of session and prompt",
    "token counts {ratio}, {how}; {most}",
    "largest difference {ratio} ({prompt})",
    "{level} % interval [{low}, {high}]",
    "range [{low}, {high}]",
    "the same in every session",
    "no A/A comparison: {why}",
    "no A/A comparison: no block has a usable twin",
    "{lost} of {all} blocks have no usable twin",
    "the canary says nothing: {why}",
    "the baseline measured {ratio} of its first value after the other cells",
    "the baseline measured {ratio} of its first value after the other cells (limit ±{share})",
    "A/A of {n} sessions: a range, no floor",
    "differs from itself by the same factor in every session",
    "equals its twin exactly",
    "A/A: the baseline {words}; no floor",
    "A/A {ratio}",
    "A/A {ratio} [{low}, {high}]",
    "A/A {ratio} [{low}, {high}], before and after",
    "confounded: {why}",
    "widest interval ±{share}, wanted ±{limit}",
    "measure again when the machine is quiet and cool, or choose order abba",
    "the 99 % interval [{low}, {high}] excludes 1 although both arms are the same",
    "{done} of at most {limit} sets",
    "{done} sets; at least {least} before stopping early",
    "no interval to judge by yet",
    "Welch's t over sessions, unpaired log values",
    "no prompt was measured in every session of both runs",
    "the first run has no positive value",
    "the second run has no positive value",
    "no session and prompt was measured in both the cell and the baseline",
    "{name} has no measured value",
    "{bad} of {all} values of {name} are not positive numbers, and a ratio needs positive ones",
    "coefficient of variation {share} ({limit} or less would be stable)",
    "coefficient of variation {share}, above {limit}: shown and not ranked",
    "coefficient of variation {share}",
    "{ratio}× its prompt's median ({prompt}, session {session}), {mads} MADs away; kept",
    "{few} and {many} values in two groups {ratio}× apart",
    "the first trial is slower in all {n} sessions, {ratio}× at the median: more warm-up is needed",
    "{ratio}× from the first session to the last (p {p})",
    "the engine's draft time is longer than the whole pass and is not used",
    "the drafter's time is a lower bound, so the verification costs at most that",
)
"""Forms of :mod:`orchestrator.stats`."""

EXACTNESS: tuple[str, ...] = (
    "not tested: the outputs were not compared",
    "not tested: a distribution check needs many short generations, and none was asked for",
    "too few generations share a prefix in both arms: nothing was compared",
    "{n} generations per arm, {contexts} contexts, {nodes} nodes",
    "the baseline differs from itself (p {p}; {size}): seeds or state leak",
    "next-token distributions differ (p {p}, Holm over contexts; {size})",
    "a lower temperature was not noticed either (p {p}; {size})",
    "no difference (p {p}; {size}); a total variation of {tv} at every compared place would have been seen with 90 % "
    "power, and the negative control was (p {control})",
    "{n} prompts have no output of the baseline to compare with",
    "not tested: no output with token ids of both the cell and its baseline",
    "the baseline differs from itself in {rate}: says nothing about speculation",
    "{astray} of {all} outputs, {rate} per 1 000 tokens",
    "control {same}/{all} equal",
    "no control: one output each",
    "{same}/{all} outputs token for token those of the baseline",
    "bit-exact: {same}/{all} outputs token for token those of the baseline ({checked})",
    "{head}, first difference at token {index}, {rate} flips per 1 000 tokens ({checked})",
    "divergent: {differs}; {why}",
    "near-tie: {differs}; {why}",
    "the arithmetic of both arms is exact, which leaves no near-tie",
    "differs; near-tie not adjudicated: {differs}",
    "near-tie not adjudicated",
    "{where}: one output ends there, which a replay cannot rank",
    "{where}: no replay on the baseline",
    "{where}: the replay does not reproduce the baseline's own token",
    "{where}: not among the baseline's top two tokens",
    "{where}: top two {gap} nat apart, {basis} jitter {limit} nat",
    "{prompt} at token {index}",
    "assumed",
    "not tested: no scored text of both arms",
    "the baseline's own text does not pass: {fault}",
    "nothing could have failed: no spread of surprisal and no limit of rank",
    "surprisal z {z}",
    "no rank beyond {rank}",
    "{n} tokens, {said}",
    "token {index} of {all} has rank {rank}, which the baseline cannot draw",
    "{n} tokens are less likely than drawn text (surprisal z {z})",
    "{n} tokens are more likely than drawn text (surprisal z {z})",
    "not tested: no two outputs with token ids of one seed",
    "{same}/{all} outputs equal the baseline's with the same seed",
    "{same}/{all} outputs equal the baseline's with the same seed (informational)",
    "{same}/{all} outputs equal the baseline's with the same seed (informational: an exact engine may differ)",
    "the baseline equals its twin in {same}/{all}: its seed does not bind",
    "not tested: {n} generations so far, next are those of the arm {arm}",
    "not tested: its contexts are not chosen yet",
    "nothing was drafted in these generations, and then any acceptance rule gives the baseline's text",
    "no context to compare: the workload's prompts offer none",
    "experiment {n}, earlier ones are in the journal",
    "{gap} nat at the compared token that varies most; the control would move {share} of the probability "
    "({n} generations of the baseline)",
    "too few contexts of {low} to {high} nat among {all}: {outside} lie outside",
    "{n} of {wanted} contexts: the workload's prompts offer no more",
    "not tested: no two generations of one seed",
    "{same}/{all} generations equal the baseline's with the same seed",
    "{same}/{all} generations equal the baseline's with the same seed (an exact engine may draw otherwise)",
    "not tested: the engine tells too small a part of the distribution",
    "not tested: no scored text of both arms: {why}",
    "{n} tokens, each the baseline's best or within {gap} nat of it ({basis} jitter)",
    "{n} of {all} tokens at the border of a truncated distribution left out",
    "not available: the engine reports no draft probabilities",
    "the baseline differs from itself (p {p}): seeds or state leak",
    "the negative control shares too few prefixes with the baseline ({size})",
    "token {index} of {all} is {gap} nat below the baseline's own, no near-tie",
    "seed-coupled equality",
    "draft-directed z",
    "nothing (control)",
    "drafter silently dropped",
    "prompt taken from a cache",
    "lenient acceptance: draft-like tokens kept",
    "a token sent twice",
    "a foreign token injected",
    "a burst stalled",
    "accepted tokens off by one in the answer",
    "accepted tokens off by one in the counters",
    "prompt taken from a cache, reported as none",
    "engagement: a drafter that proposes in every round must have proposed",
    "contamination: cached prompt tokens must be 0",
    "stream: running counts and token ids must agree",
    "counts: independent counters and the pass invariant must agree",
    "clocks: our decode rate and the engine's must agree",
    "greedy identity, differences adjudicated by replay",
    "distribution check",
    "measured",
    "greedy identity",
    "seed identity",
    "distribution",
    "cross-scoring",
    "greedy match",
    "sample match",
    "rejection",
    "heuristic",
    "synthetic",
    "unknown",
    "none",
)
"""Forms of :mod:`orchestrator.exactness`, with the names of checks and acceptance rules."""

RECORDED: tuple[str, ...] = (
    "{cell} is {status}: {why}",
    "{cell} is {status}",
    "{bad} of {all} answers of {name} break an invariant between our clock and the engine's",
    "the cell",
    "the baseline",
    "planned, not measured yet",
    "run again",
    "run again to measure it as it is now",
    "attempt {n} measured it with other settings or files than the matrix now names",
    "interrupted: {done} of {all} sets are complete",
    "run again: complete sets are kept",
    "attempt {n} began, no session ended yet",
    "trial {n} ({phase}): {why}",
    "stopped by the user; the running set starts anew",
    "{block}: attempt {n} goes on with {missing} missing sets",
    "pin: {why}",
    "{key} is {found}, pinned {wanted}",
    "not told by this engine",
    "install the pinned version, or change {key}",
    "{path}: there is no such file",
    "{what}: not found",
    "put the file there, or correct {key} in the matrix",
    "correct {key} in the matrix",
    "lower run.trials, or add prompts",
    "workload {name} has {n} prompts, a session needs {needed} different ones (a repeated prompt would be answered "
    "from a warm cache)",
    "{n} prompt tokens came from a cache; the cell asks for cold ones",
    "{n} tokens were drafted in a baseline",
    "the drafter of method {name} proposes in every round, and proposed nothing",
    "swap grew by {size} while measuring",
    "{step}: no answer in time",
    "no token arrived",
    "the engine ended before it was ready ({exit}): {last}",
    "the engine ended before it was ready ({exit})",
    "the engine process ended ({exit})",
    "the engine ended",
    "not ready within {seconds}",
    "not done within {seconds}",
    "port {port} is answered by another process than the engine that was started",
    "the connection broke: {why}",
    "no connection within {seconds}",
    "the request was not taken within {seconds}",
    "our decode rate and the engine's disagree: {ours} and {engine} tok/s; was the machine busy?",
    "target passes and bursts disagree: {passes} by the engine, {bursts} arrived",
    "{n} token ids arrived in time order, the engine's answer has {all}",
    "the method is none",
    "a baseline does not speculate",
    "nothing was drafted in this trial",
    "the answer has {n} tokens",
    "{n} burst(s) over {seconds} s: no interval to divide by",
    "{engine} does not measure it",
    "{engine} does not report it",
    "{engine} reports a rate only",
    "the first token comes from prefill",
    "Linux keeps no physical footprint of a process",
    "llama.cpp prints drafter time only as a running total of the process",
    "mlx-lm does not report it, and measuring it would add synchronisation to the timed run",
    "engine version",
    "engine build",
    "backend",
    "target file",
    "engine option {key}",
    "not foreseen",
    "the target alone",
    "no speculation",
    "verify batches can run other kernels than single tokens: quantised or GPU targets may flip near-ties",
    "with equal logits a seed gives the baseline's tokens; verify batches can run other kernels than single tokens: "
    "quantised or GPU targets may flip near-ties",
    "give a drafter with the target's own vocabulary, or a target with MTP layers",
    "llama.cpp loads GGUF files; convert the model, or correct the path",
    "take a GGUF converted with its MTP layers, or name a head file as the model's mtp",
)
"""Forms of the analysis, the store, the runner and the frequent ones of adapters."""

TWO_RUNS: tuple[str, ...] = (
    "not interleaved: the machine's drift between the two runs is not controlled",
    "first run: {why}",
    "second run: {why}",
    "not compared there",
    "inside the two runs' noise floors (±{share})",
    "no A/A twin in both runs: the noise floor is not known",
    "{outcome} if it stood alone, not among {n} cells (Holm)",
    "length: {why}",
    "the second run's answers have {ratio}× as many tokens; see the time to a common token",
    "no prompt was measured in every session of both runs",
    "the first run has no positive value",
    "the second run has no positive value",
)
"""Of :mod:`orchestrator.report.compare`."""

ANSWERS: tuple[str, ...] = (
    "{n} of {all} answers are no answer ({kind}) where the baseline's are: a broken run is not ranked",
    "{n} of {all} answers of the baseline are no answer where the cell's are: nothing to compare with",
    "{n} of {all} answers are no answer, otherwise than the baseline's: not ranked",
    "loop: the last {n} of {all} characters repeat {piece}",
    "loop: {n} of {all} tokens are the same",
    "loop: the last {n} of {all} tokens repeat {k} of them",
    "unreadable: {n} of {all} characters are no text",
    "empty: {n} characters, none of them visible",
    "loop",
    "unreadable",
    "empty",
)
"""Of :mod:`orchestrator.report.quality`, and of answers that are none."""

ENGINES: tuple[str, ...] = (
    "{what} cannot be imported ({last})",
    "{what} cannot import {module} ({last})",
    "pip install {packages}  (it compiles llama.cpp: a compiler, cmake, some minutes)",
    "{what} has no omlx ({last})",
    "{what} does not answer as {engine} does ({last})",
    "{what} does not answer as {engine} does",
    "{python} -m pip install {packages}  (on macOS {mac} instead of {linux})",
    "install llama.cpp (on a Mac: brew install llama.cpp; elsewhere: a release archive or a build) and name its "
    "llama-server as the engine's binary",
    "on a Mac with Apple silicon: brew install npanj/tap/slipstream, or clone github.com/npanj/slipstream and make, "
    "and name its launcher as the engine's binary",
    "git clone https://github.com/antirez/ds4, run make there, get a model with its download_model.sh, and name its "
    "ds4 (for mode server its ds4-server) as the engine's binary",
    "install oMLX (Mac: brew tap jundot/omlx && brew install omlx) and name its command as the engine's binary; "
    "elsewhere scripts/build-omlx-env.sh makes an interpreter with a fork for the CPU: name that as its python",
    "on a Mac with Apple silicon: python -m pip install {packages} in an environment of its own, and name its mtplx "
    "command as the engine's binary",
)
"""Why an engine is not here and how to get it, as its adapter says: the one thing of theirs that everybody reads."""

_ALL = (*STATISTICS, *EXACTNESS, *RECORDED, *TWO_RUNS, *MACHINE, *ADAPTERS, *ANSWERS, *ENGINES)
PHRASES: tuple[str, ...] = tuple(dict.fromkeys(_ALL))

_PLACE = re.compile(r"\{(\w+)\}")


def recognise(text: str, phrases: Sequence[str]) -> tuple[str, Mapping[str, str]] | None:
    """The form that the sentence was made from, with what stands in its places; ``None`` where none fits.

    Of several forms that fit, the one with the most fixed text is taken: it says most about the sentence.
    """
    for phrase, pattern in _patterns(tuple(phrases)):
        found = pattern.fullmatch(text)
        if found is not None:
            return phrase, found.groupdict()
    return None


@cache
def _patterns(phrases: tuple[str, ...]) -> tuple[tuple[str, re.Pattern[str]], ...]:
    def fixed(phrase: str) -> int:
        return len(_PLACE.sub("", phrase))

    return tuple((one, _pattern(one)) for one in sorted(phrases, key=lambda one: (-fixed(one), one)))


_SENTENCES = frozenset({"why", "differs", "checked", "size", "words", "fault", "last", "said", "how", "most", "rate"})
"""Places that may hold a sentence, with semicolons of its own."""


_NUMBERS = frozenset({"n", "all", "index", "rank", "same", "bad", "draws", "seed", "low", "high", "level", "needed"})
"""Places that hold a number and nothing else: the looser a form, the more text of others it would swallow."""


def _place(name: str) -> str:
    if name in _NUMBERS:
        return rf"(?P<{name}>-?\d[\d.,]*)"
    if name == "status":
        return f"(?P<{name}>{'|'.join(re.escape(rule.word) for rule in STATUS_RULES.values())})"
    return f"(?P<{name}>.+?)" if name in _SENTENCES else f"(?P<{name}>(?:(?!; ).)+?)"


def _pattern(phrase: str) -> re.Pattern[str]:
    parts = _PLACE.split(phrase)
    made = [_place(part) if index % 2 else re.escape(part) for index, part in enumerate(parts)]
    return re.compile("".join(made), re.DOTALL)

"""The acceptance by rung in docs/workloads.md, from a run of examples/entropy-ladder.yaml.

    python -m scripts.make_ladder RUN        writes docs/evidence/entropy-ladder.json from a run's records, and the page
    python -m scripts.make_ladder --page     writes the tables into the page from that file alone
    python -m scripts.make_ladder --check    says whether the page has them as the file tells

The file has a row per measured answer; sums, shares and their intervals are computed from it as the report does.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import pandas as pd

from orchestrator.schema.record import Phase, TrialRecord
from orchestrator.schema.result import Estimate
from orchestrator.schema.status import Status
from orchestrator.stats.acceptance import pooled
from orchestrator.store.directory import RunDirectory
from orchestrator.store.index import Index

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "docs" / "evidence" / "entropy-ladder.json"
PAGE = ROOT / "docs" / "workloads.md"
BEGIN, END = "<!-- acceptance by rung: begin, written by scripts/make_ladder.py -->", "<!-- acceptance by rung: end -->"
HEAD = ("rung", "method", "drafted", "accepted", "share", "of the answers' tokens", "tokens a pass", "loops")
COMMAND = "specmatrix run -m examples/entropy-ladder.yaml"
BASELINE = "none"


@dataclass(frozen=True, slots=True)
class Answer:
    """One measured answer.

    Args:
        workload: of the matrix: a language.
        sampling: of the matrix.
        method: of the matrix, or ``none``.
        prompt: its id.
        rung: its category.
        session: from 0.
        tokens: emitted.
        drafted: tokens proposed; ``None`` without speculation, like the next two.
        accepted: of them, accepted.
        passes: of the target.
        ids: what tells two answers apart, token by token.
        loop: whether the report calls the answer a loop.
    """

    workload: str
    sampling: str
    method: str
    prompt: str
    rung: str
    session: int
    tokens: int
    drafted: int | None
    accepted: int | None
    passes: int | None
    ids: str
    loop: bool

    @property
    def part(self) -> tuple[str, str]:
        """Workload and sampling: what has a table."""
        return self.workload, self.sampling


@dataclass(frozen=True, slots=True)
class Rung:
    """One rung of one table by one method: sums over its answers, and Σ accepted ÷ Σ drafted over its prompts."""

    name: str
    method: str
    answers: int
    tokens: int
    drafted: int
    accepted: int
    passes: int
    loops: int
    share: Estimate | None


def collected(run: Path) -> dict[str, Any]:
    """The file's content, from the records of a run: of each workload and sampling of which every cell is measured.

    Raises:
        SystemExit: there is none.
    """
    index = Index.build(RunDirectory.open(run).records())
    missing = {_part(state.id) for state in index.cells.values() if state.status is not Status.OK}
    answers = [
        _answer(state.settings["method"]["name"], trial)
        for state in index.cells.values()
        for trial in state.trials
        if trial.phase is Phase.MEASURED and _part(state.id) not in missing
    ]
    if index.matrix is None or not answers:
        raise SystemExit(f"{run}: no workload is measured whole; see specmatrix status --run {run}")
    return {
        "command": COMMAND
        + "".join(f" --only '*/{one.sampling}/{one.workload}'" for one in _firsts(answers) if missing),
        "date": index.matrix.utc[:10],
        "engines": {name: dict(found.facts) for name, found in index.matrix.engines.items()},
        "columns": [field.name for field in fields(Answer)],
        "answers": [[getattr(one, field.name) for field in fields(Answer)] for one in answers],
    }


def _part(cell: str) -> tuple[str, str]:
    sampling, workload = cell.partition("~")[0].split("/")[-2:]
    return workload, sampling


def _firsts(answers: Iterable[Answer]) -> Iterable[Answer]:
    """An answer of each table."""
    return {one.part: one for one in answers}.values()


def _answer(method: str, trial: TrialRecord) -> Answer:
    numbers = {one.metric: one.value for one in trial.observations}

    def count(metric: str) -> int | None:
        value = numbers.get(metric)
        return round(value) if isinstance(value, int | float) and method != BASELINE else None

    return Answer(
        *_part(trial.place.cell),
        method,
        trial.prompt_id,
        trial.category,
        trial.place.set_index,
        len(trial.token_ids),
        count("drafted_tokens"),
        count("accepted_tokens"),
        count("target_passes"),
        hashlib.sha256(json.dumps(trial.token_ids).encode()).hexdigest()[:8],
        trial.degenerate.startswith("loop"),
    )


def written(content: Mapping[str, Any]) -> str:
    """The file's text: a line an answer."""
    head = {key: value for key, value in content.items() if key != "answers"}
    rows = ",\n".join(json.dumps(row) for row in content["answers"])
    return f'{json.dumps(head, indent=1)[:-2]},\n "answers": [\n{rows}\n]}}\n'


def answers_of(content: Mapping[str, Any]) -> tuple[Answer, ...]:
    """The answers in the file."""
    return tuple(Answer(**dict(zip(content["columns"], row, strict=True))) for row in content["answers"])


def rungs(answers: Sequence[Answer], part: tuple[str, str]) -> Iterator[Rung]:
    """The rungs of a table, from the first, each by every speculative method."""
    mine = [one for one in answers if one.part == part and one.method != BASELINE]
    for name in sorted({one.rung for one in mine}):
        for method in dict.fromkeys(one.method for one in mine):
            yield _rung(name, method, [one for one in mine if (one.rung, one.method) == (name, method)])


def _rung(name: str, method: str, answers: Sequence[Answer]) -> Rung:
    rows = [(one.prompt, _told(one.drafted), _told(one.accepted)) for one in answers]
    frame = pd.DataFrame(rows, columns=["prompt_id", "drafted", "accepted"])
    return Rung(
        name,
        method,
        len(answers),
        sum(one.tokens for one in answers),
        sum(row[1] for row in rows),
        sum(row[2] for row in rows),
        sum(_told(one.passes) for one in answers),
        sum(one.loop for one in answers),
        pooled(frame),
    )


def _told(count: int | None) -> int:
    if count is None:
        raise SystemExit("an answer with speculation has no counts")
    return count


def same_answers(answers: Iterable[Answer], part: tuple[str, str]) -> tuple[int, int]:
    """(answers with speculation that are their baseline's of the same session token by token, all of them)."""
    mine = [one for one in answers if one.part == part]
    off = {(one.prompt, one.session): one.ids for one in mine if one.method == BASELINE}
    on = [one for one in mine if one.method != BASELINE]
    return sum(off[one.prompt, one.session] == one.ids for one in on), len(on)


def tables(content: Mapping[str, Any]) -> str:
    """What stands between the marks: a table per workload, and how they were made."""
    answers = answers_of(content)
    engines = "; ".join(
        f"{name}: " + ", ".join(f"{key} {value}" for key, value in facts.items())
        for name, facts in content["engines"].items()
    )
    lines = [
        f"`{content['command']}`, {content['date']}, {engines}; every answer's counts: `docs/evidence/{DATA.name}`."
    ]
    for first in _firsts(answers):
        equal, every = same_answers(answers, first.part)
        said = f"with speculation {equal} of {every} answers were the baseline's, token by token"
        lines += ["", f"**{', '.join(first.part)}**: {said}", "", _line(HEAD), _line("---" for _ in HEAD)]
        lines += [_line(_cells(one)) for one in rungs(answers, first.part)]
    return "\n".join(lines)


def _cells(one: Rung) -> tuple[str, ...]:
    return (
        one.name.removeprefix("rung-").replace("-", " ", 1),
        one.method,
        str(one.drafted),
        str(one.accepted),
        _share(one.share),
        f"{one.accepted / one.tokens:.0%}",
        f"{one.tokens / one.passes:.2f}",
        f"{one.loops} of {one.answers}",
    )


def _share(share: Estimate | None) -> str:
    if share is None:
        return "nothing drafted"
    if share.low is None or share.high is None:
        return f"{share.point:.0%} (no interval)"
    return f"{share.point:.0%} [{share.low:.0%}, {share.high:.0%}]"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def told(page: str) -> str:
    """What the page has between the marks."""
    return page.split(BEGIN)[1].split(END, maxsplit=1)[0].strip("\n")


def main(arguments: Sequence[str]) -> int:
    """Write, or compare; the exit status."""
    if arguments and not arguments[0].startswith("--"):
        DATA.write_text(written(collected(Path(arguments[0]))), encoding="utf-8")
    made = tables(json.loads(DATA.read_text(encoding="utf-8")))
    page = PAGE.read_text(encoding="utf-8")
    if list(arguments) == ["--check"]:
        print("the acceptance by rung is fresh" if told(page) == made else f"{PAGE} differs from {DATA}")
        return 0 if told(page) == made else 1
    before, rest = page.split(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n{made}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(f"wrote {PAGE}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

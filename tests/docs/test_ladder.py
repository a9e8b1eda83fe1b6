"""The acceptance by rung on docs/workloads.md: summed anew from the committed answers, by other code than wrote it."""

from __future__ import annotations

import copy
import json

import pytest

from orchestrator.workloads.built_in import built_in
from scripts import make_ladder

CONTENT = json.loads(make_ladder.DATA.read_text(encoding="utf-8"))
ANSWERS = [dict(zip(CONTENT["columns"], row, strict=True)) for row in CONTENT["answers"]]
SETS = {("english", "greedy"): "entropy-ladder-en", ("english", "t0.8"): "entropy-ladder-en"}
"""By workload and sampling."""
METHODS = {"none", "draft-k2", "ngram"}


def of_part(part):
    return [one for one in ANSWERS if (one["workload"], one["sampling"]) == part]


def shown(part):
    """The page's rows of a workload and a sampling, by rung and method."""
    page = make_ladder.told(make_ladder.PAGE.read_text(encoding="utf-8"))
    table = page.split(f"**{', '.join(part)}**")[1].split("**")[0]
    rows = [
        [cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines() if line.startswith("|")
    ]
    return {(row[0], row[1]): row[2:] for row in rows[2:]}


def test_the_page_is_computed_from_the_file():
    page = make_ladder.PAGE.read_text(encoding="utf-8")
    assert make_ladder.told(page) == make_ladder.tables(CONTENT)
    assert make_ladder.main(["--check"]) == 0


def test_every_method_answered_every_prompt_once_a_session():
    assert {(one["workload"], one["sampling"]) for one in ANSWERS} == set(SETS)
    for part, name in SETS.items():
        prompts = {prompt.id: prompt.category for prompt in built_in(name)}
        for session in {one["session"] for one in of_part(part)}:
            for method in METHODS:
                mine = [one for one in of_part(part) if (one["session"], one["method"]) == (session, method)]
                assert {one["prompt"]: one["rung"] for one in mine} == prompts
                assert len(mine) == len(prompts)


@pytest.mark.parametrize("part", SETS)
def test_the_shown_counts_are_the_sums_of_the_answers(part):
    rows = shown(part)
    assert len(rows) == 6 * (len(METHODS) - 1)
    for (rung, method), (drafted, accepted, share, of_answers, *_) in rows.items():
        name = f"rung-{rung.replace(' ', '-')}"
        mine = [one for one in of_part(part) if (one["method"], one["rung"]) == (method, name)]
        assert mine
        sums = [sum(one[key] for one in mine) for key in ("drafted", "accepted", "tokens")]
        assert [int(drafted), int(accepted)] == sums[:2]
        assert share.startswith(f"{sums[1] / sums[0]:.0%}" if sums[0] else "nothing drafted")
        assert of_answers == f"{sums[1] / sums[2]:.0%}"


def test_a_changed_count_changes_the_page():
    changed = copy.deepcopy(CONTENT)
    row = next(row for row in changed["answers"] if row[CONTENT["columns"].index("accepted")])
    row[CONTENT["columns"].index("accepted")] -= 1
    assert make_ladder.tables(changed) != make_ladder.tables(CONTENT)


def test_the_file_is_written_as_it_is_read():
    assert make_ladder.written(CONTENT) == make_ladder.DATA.read_text(encoding="utf-8")

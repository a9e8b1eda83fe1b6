"""Whether memory is there, short of it, and who else holds it."""

from __future__ import annotations

import pytest

from orchestrator.host.fit import Budget, Verdict, budget, gpu_limit, judge
from orchestrator.host.others import largest_others, ranked
from orchestrator.host.unavailable import UnavailableError
from orchestrator.schema.fit import MemoryNeed, MemoryPart

GB = 10**9


def need(size: int, *unknown: str) -> MemoryNeed:
    return MemoryNeed(
        (MemoryPart("weights", size, "header"), MemoryPart("buffers", GB, "rule", estimate=True)), unknown
    )


@pytest.mark.parametrize(
    ("size", "verdict"),
    [
        (20 * GB, Verdict.FITS),
        (71 * GB, Verdict.FITS),
        (72 * GB, Verdict.TIGHT),
        (91 * GB, Verdict.TIGHT),
        (92 * GB, Verdict.DOES_NOT_FIT),
    ],
)
def test_a_cell_is_refused_only_where_it_cannot_fit_whatever_of_the_reserve_runs_already(size, verdict):
    # 128 GB, 36 in use, 20 reserved: surely 72 are left, at best 92
    room = Budget(128 * GB, 36 * GB, 20 * GB)
    assert judge(need(size), room).verdict is verdict


def test_the_sentence_names_the_parts_largest_first_and_marks_estimates():
    found = judge(need(200 * GB), Budget(128 * GB, 36 * GB, 20 * GB))
    assert found.sentence == (
        "needs 201 GB (weights 200 GB, buffers ≈ 1.00 GB); at most 92.0 GB of 128 GB (36.0 GB in use now, "
        "20.0 GB reserved)"
    )


def test_the_gpu_limit_counts_beside_ram():
    found = judge(need(97 * GB), Budget(128 * GB, 0, 0, 96 * GB, "set"))
    assert found.verdict is Verdict.DOES_NOT_FIT
    assert found.sentence.endswith("the GPU may use 96.0 GB (set)")


def test_nothing_known_is_unknown_and_part_of_it_is_said():
    room = Budget(128 * GB, 0, 0)
    assert judge(MemoryNeed((), ("no header",)), room).verdict is Verdict.UNKNOWN
    assert judge(need(GB, "the cache"), room).sentence.endswith("; not counted: the cache")


def test_the_gpu_limit_is_what_is_set_or_an_estimate_or_why_not():
    assert gpu_limit(lambda: 7, 100) == (7, "iogpu.wired_limit_mb, set on this machine")
    assert gpu_limit(lambda: "default", 100)[0] == 75

    def fails():
        raise UnavailableError("no such sysctl")

    assert gpu_limit(fails, 100) == (None, "no such sysctl")


def test_this_machine_has_a_budget():
    found = budget([5, 6])
    assert 0 < found.used < found.total
    assert found.reserved == 11


def test_others_are_ranked_by_program_without_arguments():
    rows = ranked([("a", 5), ("b", 9), ("a", 6), ("c", 0)], 2)
    assert rows == [
        {"name": "a", "rss_bytes": 11, "processes": 2},
        {"name": "b", "rss_bytes": 9, "processes": 1},
    ]
    assert len(largest_others()) <= 10
    assert all(set(row) == {"name", "rss_bytes", "processes"} for row in largest_others())

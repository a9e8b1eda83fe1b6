"""Whether memory is there, short of it, and who else holds it."""

from __future__ import annotations

from dataclasses import replace

import psutil
import pytest

from orchestrator.host import fit
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
    assert gpu_limit(lambda: 7, 100) == (7, "iogpu.wired_limit_mb, set on this machine", False)
    assert gpu_limit(lambda: "default", 100)[::2] == (75, True)

    def fails():
        raise UnavailableError("no such sysctl")

    assert gpu_limit(fails, 100) == (None, "no such sysctl", False)


def test_an_estimated_limit_of_the_gpu_warns_and_refuses_nothing():
    """110 GB on 128 GiB, of which Metal recommends 110100 MiB: three quarters are 103 GB."""
    ram = 128 * 2**30
    guess = Budget(ram, 0, 0, ram * 3 // 4, "estimate", gpu_estimated=True)
    found = judge(need(109 * GB, "the cache"), guess)
    assert found.verdict is Verdict.TIGHT
    assert "the GPU may use 103 GB (estimate); not counted: the cache" in found.sentence
    told = guess.told({"llama": 110_100 * 2**20, "mlx": 110_099 * 2**20})
    assert (told.gpu_limit, told.gpu_note, told.gpu_estimated) == (110_100 * 2**20, "as llama is told it", False)
    assert judge(need(109 * GB), told).verdict is Verdict.FITS
    assert judge(need(120 * GB), told).verdict is Verdict.DOES_NOT_FIT
    assert guess.told({}) is guess


def test_parts_that_are_guessed_do_not_push_a_cell_over_the_limit_of_the_gpu():
    room = Budget(128 * GB, 0, 0, 96 * GB, "set")
    assert judge(need(96 * GB), room).verdict is Verdict.TIGHT  # and 1 GB of buffers, which is a guess


def test_what_macos_counts_as_used_is_no_ground_to_refuse():
    room = Budget(128 * GB, 100 * GB, 20 * GB, used_note="file pages")
    found = judge(need(90 * GB), room)
    assert found.verdict is Verdict.TIGHT
    assert found.sentence.endswith("are left if all that is reserved comes on top (file pages)")
    beyond = judge(need(108 * GB), room)
    assert beyond.verdict is Verdict.DOES_NOT_FIT
    assert beyond.sentence.endswith("at most 108 GB of 128 GB (20.0 GB reserved)")
    assert room.plain()["used_note"] == "file pages"
    assert judge(need(90 * GB), replace(room, used_note="")).verdict is Verdict.DOES_NOT_FIT


def test_on_macos_the_limit_is_an_estimate_until_an_engine_tells_it(monkeypatch):
    ram = psutil.virtual_memory().total  # loaded while this is still the system that it is
    monkeypatch.setattr(fit.sys, "platform", "darwin")
    monkeypatch.setattr(fit.macos, "gpu_wired_limit_bytes", lambda: "default")
    found = budget([])
    assert (found.total, found.gpu_limit, found.gpu_estimated) == (ram, round(ram * 0.75), True)
    assert found.used_note == fit.USED_ON_MACOS


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

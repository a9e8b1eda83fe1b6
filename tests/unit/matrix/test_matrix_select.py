"""Cells by id and by glob."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from matrix_samples import DOCUMENT, load

from orchestrator.matrix.expand import expand
from orchestrator.matrix.select import matching_ids, select
from orchestrator.schema.errors import SelectionError

IDS = ("a.b/m/none/g/s", "a.b/m/d4/g/s", "a.b/m/d4/t0.8/s", "c/m/d4/g/s", "a.b/m/none/g/s~twin")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["a.b/m/d4/g/s"], IDS[1:2]),
        (["a.b/*"], (IDS[0], IDS[1], IDS[2], IDS[4])),
        (["*/d4/*"], IDS[1:4]),
        (["*d4*s"], IDS[1:4]),
        (["a?b/m/d4/*"], IDS[1:3]),
        (["*~twin"], IDS[4:]),
        (["*"], IDS),
        (["c/m/d4/g/s", "a.b/m/d4/g/s", "*/d4/g/s"], (IDS[1], IDS[3])),
        ([], ()),
    ],
)
def test_ids_and_globs(patterns: list[str], expected: Any) -> None:
    assert matching_ids(IDS, patterns) == expected


def test_a_dot_is_a_dot_and_case_counts() -> None:
    for pattern in ("aXb/m/none/g/s", "A.b/*"):
        with pytest.raises(SelectionError):
            matching_ids(IDS, [pattern])


def test_what_names_nothing_is_told_with_the_nearest_ids() -> None:
    with pytest.raises(SelectionError) as caught:
        matching_ids(IDS, ["*", "a.b/m/d5/g/s", "d4", "zzz*"])
    first, second, third = str(caught.value).split("\n")
    assert first.startswith("no cell matches 'a.b/m/d5/g/s'; nearest: a.b/m/d4/g/s, ")
    assert second == "no cell matches 'd4' as a whole; for the 3 that contain it, write '*d4*'"
    assert third.startswith("no cell matches 'zzz*'; nearest: a.b/m/none/g/s, ")
    with pytest.raises(SelectionError, match="there are no cells"):
        matching_ids((), ["x"])


def test_cells_come_in_their_own_order_each_once(tmp_path: Path) -> None:
    cells = expand(load(tmp_path, DOCUMENT), str).cells
    found = select(cells, ["srv/mtp-m/*", "srv/m/d4/greedy/short", "srv/m/*/greedy/*"])
    assert [cell.id for cell in found] == [
        "srv/m/none/greedy/short",
        "srv/m/d4/greedy/short",
        "srv/m/none/greedy/short~twin",
        "srv/mtp-m/none/greedy/short",
        "srv/mtp-m/mtp2/greedy/short",
        "srv/mtp-m/none/greedy/short~twin",
    ]
    assert all(cell in cells for cell in found)

"""The runner writes down how tokens around a divergence are spelled, once, and the index gives them to the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import run_builder
from report_runs import report_of

from orchestrator.runner.token_texts import AFTER, BEFORE, record_token_texts
from orchestrator.schema.record import TokensRecord
from orchestrator.store.directory import RunDirectory

PARTING = run_builder.full_blocks()[5]


class Knowing:
    """An adapter that knows a vocabulary, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, ...]] = []

    def token_texts(self, cell: Any, ids: tuple[int, ...]) -> Mapping[int, str]:
        assert cell.id == "ds4/tiny/none/greedy/short"
        self.asked.append(ids)
        return {number: f"<{number}>" for number in ids if number % 2 == 0}


def recorded(path: Path, adapter: object, *, replays: bool) -> tuple[RunDirectory, list[TokensRecord]]:
    run_builder.write_run(path, (PARTING,), run_builder.IDENTITIES, replays=replays)
    base = run_builder.cell_of(PARTING, run_builder.NONE)
    blocks = [SimpleNamespace(id=base.block_id, baseline=base)]
    job: Any = SimpleNamespace(expansion=SimpleNamespace(blocks=blocks), adapters={"ds4": adapter})
    directory = RunDirectory.open(path)
    with directory.lock():
        for _ in range(2):
            record_token_texts(job, directory)
    return directory, [one for one in directory.records() if isinstance(one, TokensRecord)]


def test_texts_near_the_divergence_are_recorded_and_reach_the_page(tmp_path: Path) -> None:
    adapter = Knowing()
    directory, found = recorded(tmp_path / "run", adapter, replays=False)
    report = report_of(directory.path)
    part = report.analysis.by_id("ds4/tiny/mtp/greedy/short").identity.divergences[0]  # type: ignore[union-attr]
    near = slice(part.index - BEFORE, part.index + AFTER)
    wanted = set(part.baseline_ids[near]) | set(part.cell_ids[near])
    assert adapter.asked[0] == tuple(sorted(wanted))
    assert found[0].texts == {str(number): f"<{number}>" for number in sorted(wanted) if number % 2 == 0}
    # What the adapter could not tell is asked for again, and nothing is written twice.
    assert set(adapter.asked[1]) == {number for number in wanted if number % 2}
    assert len(found) == 1
    shown = next(one for one in report.view.evidence if one.divergences).divergences[0].tokens
    assert {token.off_text for token in shown if int(token.off) % 2 == 0} <= {f"<{token.off}>" for token in shown}
    assert {token.off_text for token in shown if int(token.off) % 2} == {""}


def test_an_adapter_without_a_vocabulary_leaves_no_record(tmp_path: Path) -> None:
    assert recorded(tmp_path / "run", object(), replays=False)[1] == []


def test_a_run_without_a_divergence_asks_for_nothing(tmp_path: Path) -> None:
    path = run_builder.write_run(tmp_path / "same", run_builder.full_blocks()[2:3], run_builder.IDENTITIES)
    base = run_builder.cell_of(run_builder.full_blocks()[2], run_builder.NONE)
    adapter = Knowing()
    job: Any = SimpleNamespace(
        expansion=SimpleNamespace(blocks=[SimpleNamespace(id=base.block_id, baseline=base)]),
        adapters={base.engine.adapter: adapter},
    )
    directory = RunDirectory.open(path)
    with directory.lock():
        record_token_texts(job, directory)
    assert adapter.asked == []

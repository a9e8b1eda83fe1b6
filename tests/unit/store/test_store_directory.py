from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from store_samples import BASE, HEADER, PRINTS, S1, make_run

from orchestrator.schema.codec import dump_header
from orchestrator.schema.errors import StoreError
from orchestrator.schema.record import SCHEMA_VERSION
from orchestrator.store.directory import RunDirectory, latest_run, new_run_name
from orchestrator.store.names import SLUG_LENGTH, cell_folder_name, slug


def test_a_new_run_opens_again_with_the_same_header(tmp_path: Path) -> None:
    made = make_run(tmp_path / "deep" / "run")
    found = RunDirectory.open(made.path)
    assert found.header == HEADER
    assert found.path == made.path
    assert list(found.records()) == []
    assert not found.torn
    assert sorted(entry.name for entry in made.path.iterdir()) == ["journal.jsonl", "run.json", "run.lock"]


def test_create_takes_an_empty_folder_and_what_an_interrupted_create_left(tmp_path: Path) -> None:
    for name in ("run.lock", "journal.jsonl", "run.json.part"):
        (tmp_path / name).touch()
    assert RunDirectory.open(make_run(tmp_path).path).header == HEADER


@pytest.mark.parametrize("name", ["notes.txt", "journal.jsonl", "cells"])
def test_create_refuses_a_folder_with_content_and_leaves_it_as_it_was(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir() if name == "cells" else (tmp_path / name).write_text("mine")
    with pytest.raises(StoreError, match=f"not a run .holds {name}.; choose"):
        make_run(tmp_path)
    assert [entry.name for entry in tmp_path.iterdir()] == [name]


def test_create_refuses_an_existing_run_and_a_file(tmp_path: Path) -> None:
    make_run(tmp_path / "run")
    with pytest.raises(StoreError, match="is a run already"):
        RunDirectory.create(tmp_path / "run", replace(HEADER, run="other"))
    assert RunDirectory.open(tmp_path / "run").header == HEADER
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot make a run directory there"):
        make_run(tmp_path / "file")


@pytest.mark.parametrize("missing", ["run.json", "journal.jsonl"])
def test_open_says_what_is_missing(tmp_path: Path, missing: str) -> None:
    run = make_run(tmp_path / "run")
    (run.path / missing).unlink()
    with pytest.raises(StoreError, match=f"{missing} is missing; name a folder"):
        RunDirectory.open(run.path)


def test_open_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="there is no such folder"):
        RunDirectory.open(tmp_path / "nowhere")


def test_a_newer_schema_is_refused_with_both_versions(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    newer = json.loads(dump_header(HEADER)) | {"schema": SCHEMA_VERSION + 1, "unheard_of": True}
    (run.path / "run.json").write_text(json.dumps(newer))
    with pytest.raises(StoreError, match=f"schema {SCHEMA_VERSION + 1}, this version reads up to {SCHEMA_VERSION}"):
        RunDirectory.open(run.path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"schema": 1}'])
def test_a_damaged_header_is_a_user_error(tmp_path: Path, content: bytes) -> None:
    run = make_run(tmp_path / "run")
    (run.path / "run.json").write_bytes(content)
    with pytest.raises(StoreError, match=r"run\.json"):
        RunDirectory.open(run.path)


def test_session_folders_are_new_each_time(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    folder = run.session_folder(S1, PRINTS[S1], 2, 0, 0)
    name = "eng-tiny-draft-k4-greedy-short-11111111"
    assert folder.relative_to(run.path).as_posix() == f"cells/{name}/attempt-2/session-0"
    assert list(folder.iterdir()) == []
    again = run.session_folder(S1, PRINTS[S1], 2, 0, 3)
    assert again == folder.with_name("session-0.take-3")
    with pytest.raises(StoreError, match="session-0: exists, and nothing is overwritten"):
        run.session_folder(S1, PRINTS[S1], 2, 0, 0)


def test_next_take_is_above_every_folder_of_the_set(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    assert run.next_take(PRINTS, 1, 1) == 0
    run.session_folder(BASE, PRINTS[BASE], 1, 1, 0)
    assert run.next_take(PRINTS, 1, 1) == 1
    run.session_folder(S1, PRINTS[S1], 1, 1, 4)
    run.session_folder(S1, PRINTS[S1], 1, 11, 8)
    assert run.next_take(PRINTS, 1, 1) == 5
    assert run.next_take({BASE: PRINTS[BASE]}, 1, 1) == 1
    assert run.next_take(PRINTS, 2, 1) == 0
    run.session_folder(S1, PRINTS[S1], 2, 11, 0)
    assert run.next_take(PRINTS, 2, 1) == 0
    assert run.next_take({BASE: "f" * 16}, 1, 1) == 0


@given(st.text(max_size=300))
def test_a_slug_is_safe_bounded_and_stable(text: str) -> None:
    found = slug(text)
    assert 1 <= len(found) <= SLUG_LENGTH
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert found[0] not in ".-"
    assert found[-1] not in ".-"
    assert slug(found) == found


def test_cells_with_one_slug_have_two_folders() -> None:
    names = {cell_folder_name(cell, digits * 8) for cell, digits in (("a/b", "01"), ("a-b", "02"), ("A/B", "03"))}
    assert names == {"a-b-01010101", "a-b-02020202", "a-b-03030303"}
    assert cell_folder_name("..", "ABCDEF0123456789") == "cell-abcdef01"


def test_run_names_sort_by_time() -> None:
    assert new_run_name("Quick look", "2026-11-29T15:30:05.123Z") == "20261129-153005-quick-look"
    assert new_run_name("x", "2026-11-29T23:30:05+09:00") == "20261129-143005-x"
    assert new_run_name("x", "2026-01-02T03:04:05") == "20260102-030405-x"


def test_the_latest_run_is_the_one_made_last(tmp_path: Path) -> None:
    assert latest_run(tmp_path / "nowhere") is None
    assert latest_run(tmp_path) is None
    (tmp_path / "other").mkdir()
    (tmp_path / "file").write_text("x")
    assert latest_run(tmp_path) is None
    for name, day in (("z", "01"), ("a", "03"), ("m", "02")):
        RunDirectory.create(tmp_path / name, replace(HEADER, created_utc=f"2026-11-{day}T00:00:00.000Z"))
    (tmp_path / "damaged").mkdir()
    (tmp_path / "damaged" / "run.json").write_text("{")
    assert latest_run(tmp_path) == tmp_path / "a"
    RunDirectory.create(tmp_path / "b", replace(HEADER, created_utc="2026-11-03T00:00:00.000Z"))
    assert latest_run(tmp_path) == tmp_path / "b"

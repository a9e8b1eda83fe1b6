from __future__ import annotations

import dataclasses
import errno
import os
from pathlib import Path

import pytest
from store_samples import BASE, S1, make_run, matrix, note, one_session, place, trial, whole_run

from orchestrator.schema.codec import dump_record
from orchestrator.schema.errors import StoreError
from orchestrator.store import journal

RECORDS = [matrix(), *one_session(place(BASE, 1, 0))]


def test_what_was_appended_is_read_back_equal(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    records = whole_run()
    with run.lock():
        for record in records:
            run.append(record)
    assert list(run.records()) == records
    assert not run.torn
    assert (run.path / "journal.jsonl").read_bytes().count(b"\n") == len(records)


def test_cut_at_every_byte_of_the_last_line_then_appended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "fsync", lambda _fd: None)  # tested apart, and slow
    run = make_run(tmp_path / "run")
    path = run.path / "journal.jsonl"
    kept, last = RECORDS[:2], dataclasses.replace(trial(place(S1, 1, 0), 2), observations=())
    head = "".join(map(dump_record, kept)).encode()
    line = dump_record(last).encode()
    for cut in range(len(line) + 1):
        path.write_bytes(head + line[:cut])
        whole = cut >= len(line) - 1  # a line that lacks nothing but its newline is complete
        before = [*kept, last] if whole else kept
        assert run.torn is (cut > 0 and not whole)
        assert list(run.records()) == before
        with run.lock():
            run.append(note("after the crash"))
            run.append(note("and another"))
        assert list(run.records()) == [*before, note("after the crash"), note("and another")]
        assert not run.torn
        assert path.read_bytes().startswith(head + line[:cut])  # nothing was cut off


def test_a_seal_that_was_itself_cut(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    (run.path / "journal.jsonl").write_bytes(dump_record(note()).encode() + b'{"kind":"tri\x18')
    assert run.torn
    with run.lock():
        run.append(note("on"))
    assert list(run.records()) == [note(), note("on")]


@pytest.mark.parametrize("garbage", [b"\0" * 5000, b'"kind"', b"17", b"\xff\xfe", b"[]"])
def test_a_tail_that_is_no_object_is_torn(tmp_path: Path, garbage: bytes) -> None:
    run = make_run(tmp_path / "run")
    (run.path / "journal.jsonl").write_bytes(garbage)
    assert run.torn
    assert list(run.records()) == []
    with run.lock():
        run.append(note())
    assert list(run.records()) == [note()]


@pytest.mark.parametrize(
    "damage",
    [b"\n", b"{}\n", b'{"kind": "trial"}\n', b'{"kind": "of the future"}\n', b"\xff\n", b'{"kind": "no\n'],
)
@pytest.mark.parametrize("follower", [b"", dump_record(note()).encode()])
def test_a_damaged_line_is_named_with_file_and_number(tmp_path: Path, damage: bytes, follower: bytes) -> None:
    run = make_run(tmp_path / "run")
    path = run.path / "journal.jsonl"
    path.write_bytes(dump_record(note()).encode() * 2 + damage + follower)
    read = []
    with pytest.raises(StoreError, match=r"journal\.jsonl:3: .*damaged") as caught:
        read.extend(run.records())
    assert str(path) in str(caught.value)


def test_a_reader_beside_a_writer_never_takes_the_rest_of_a_line_for_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run")
    path = run.path / "journal.jsonl"
    line = dump_record(note("half")).encode()
    path.write_bytes(dump_record(note()).encode() + line[:20])
    real = journal._is_whole

    def the_writer_goes_on(tail: bytes) -> bool:
        with path.open("ab") as file:
            file.write(line[20:])
        return real(tail)

    monkeypatch.setattr(journal, "_is_whole", the_writer_goes_on)
    assert list(run.records()) == [note()]
    monkeypatch.undo()
    assert list(run.records()) == [note(), note("half")]


@pytest.mark.parametrize("lost", [1, 2, 150_000])
def test_a_last_line_longer_than_a_chunk(tmp_path: Path, lost: int) -> None:
    run = make_run(tmp_path / "run")
    path = run.path / "journal.jsonl"
    long = note("long " * 40_000)
    text = (dump_record(note()) + dump_record(long)).encode()[:-lost]
    path.write_bytes(text)
    kept = [note(), long] if lost == 1 else [note()]
    assert run.torn is (lost > 1)
    with run.lock():
        run.append(note("next"))
    assert list(run.records()) == [*kept, note("next")]
    assert path.read_bytes() == text + (b"\n" if lost == 1 else b"\x18\n") + dump_record(note("next")).encode()


@pytest.mark.parametrize(
    "change",
    [{"arrival_curve": ((float("nan"), 1),)}, {"text": "\ud800"}],
)
def test_what_would_not_read_back_is_not_written(tmp_path: Path, change: dict[str, object]) -> None:
    run = make_run(tmp_path / "run")
    broken = dataclasses.replace(trial(place(BASE, 1, 0), 1), **change)
    with run.lock():
        run.append(note())
        with pytest.raises(StoreError, match="trial record"):
            run.append(broken)
        run.append(note("next"))
    assert list(run.records()) == [note(), note("next")]


def test_append_needs_the_lock(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with run.lock():
        pass
    with pytest.raises(RuntimeError, match="outside lock"):
        run.append(note())
    assert list(run.records()) == []


def test_a_full_disk_in_the_middle_of_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run")
    real = os.write

    def half(fd: int, data: bytes) -> int:
        if len(data) > 60:
            return real(fd, data[:60])
        raise OSError(errno.ENOSPC, "No space left on device")

    with run.lock():
        run.append(note())
        with monkeypatch.context() as patched:
            patched.setattr(os, "write", half)
            with pytest.raises(StoreError, match="No space left"):
                run.append(note("lost, as the error says"))
        assert run.torn
        run.append(note("room again"))
    assert list(run.records()) == [note(), note("room again")]


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run")
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, data[:7]))
    with run.lock():
        for record in RECORDS:
            run.append(record)
    assert list(run.records()) == RECORDS


def test_each_line_is_synced_before_append_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make_run(tmp_path / "run")
    path = run.path / "journal.jsonl"
    synced: list[int] = []
    real = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: (synced.append(os.fstat(fd).st_size), real(fd))[1])
    with run.lock():
        for record in RECORDS:
            run.append(record)
            assert synced[-1] == path.stat().st_size
    assert len(synced) == len(RECORDS)

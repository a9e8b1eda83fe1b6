from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from store_samples import make_run, note

import orchestrator
from orchestrator.schema.errors import StoreError
from orchestrator.store.directory import RunDirectory

HOLD = """
import subprocess, sys
from pathlib import Path
from orchestrator.store.directory import RunDirectory
run = RunDirectory.open(Path(sys.argv[1]))
with run.lock():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=0, stdout=subprocess.DEVNULL)
    print(child.pid, flush=True)
    child.wait()
"""


@contextmanager
def other_process(run: RunDirectory) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lock, with a child of its own, until its stdin is closed."""
    root = str(Path(orchestrator.__file__).parents[1])
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(run.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip().isdigit()
        yield process


def test_a_second_process_is_told_who_holds_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with other_process(run) as process:
        with pytest.raises(StoreError, match=rf"in use by process {process.pid} since 20\d\d-"), run.lock():
            pytest.fail("locked twice")
        holder = run.holder
        assert holder is not None
        assert holder.pid == process.pid
        assert list(run.records()) == []  # reading needs no lock
        with pytest.raises(RuntimeError, match="outside lock"):
            run.append(note())
        process.communicate("\n")
    assert process.returncode == 0
    assert run.holder is None
    with run.lock() as dead:
        assert dead is None
        run.append(note())
    assert list(run.records()) == [note()]


def test_the_lock_of_a_killed_process_is_taken_over_while_its_child_still_lives(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with other_process(run) as process:
        process.kill()
        process.wait()
        with run.lock() as dead:
            assert dead is not None
            assert dead.pid == process.pid
            run.append(note())
        assert process.stdin is not None
        process.stdin.close()  # the grandchild, which waits for a line, ends now
    assert list(run.records()) == [note()]
    with run.lock() as dead:
        assert dead is None


def test_one_process_cannot_lock_twice_either(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    again = RunDirectory.open(run.path)
    with run.lock():
        assert again.holder is not None
        assert again.holder.pid == os.getpid()
        with pytest.raises(StoreError, match=f"process {os.getpid()}"), again.lock():
            pytest.fail("locked twice")
        run.append(note())
    with again.lock():
        again.append(note("second"))
    assert list(run.records()) == [note(), note("second")]


def test_an_error_inside_frees_the_lock_and_ends_writing(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    with pytest.raises(KeyboardInterrupt), run.lock():
        raise KeyboardInterrupt
    assert run.holder is None
    with pytest.raises(RuntimeError):
        run.append(note())
    with run.lock() as dead:
        assert dead is None


@pytest.mark.parametrize("content", ["", "garbage", "[]", '{"pid": 1}', '{"pid": null, "since_utc": 3}'])
def test_a_lock_file_without_sense_is_no_obstacle(tmp_path: Path, content: str) -> None:
    run = make_run(tmp_path / "run")
    (run.path / "run.lock").write_text(content)
    with run.lock() as dead:
        assert dead is None
        assert run.holder is not None

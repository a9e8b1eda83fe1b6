from __future__ import annotations

from pathlib import Path

from orchestrator.process.logs import cleaned, read, size, tail


def test_cleaning_leaves_nothing_a_terminal_would_obey() -> None:
    assert cleaned("\x1b[1;31mred\x1b[0m \x1b]0;title\x07end\x08\x00\t\u202eok") == "red end ok"
    assert cleaned("10 %\r50 %\r100 %\r") == "100 %"
    assert cleaned("한국어 é") == "한국어 é"


def test_long_lines_are_cut() -> None:
    assert cleaned("x" * 501) == "x" * 499 + "…"
    assert cleaned("x" * 500) == "x" * 500


def test_tail_gives_the_last_whole_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"first line\nsecond\n\n  \nthird \xff\nunfinished")
    assert tail(path, 2, 1000) == ("third \ufffd", "unfinished")
    assert tail(path, 10, 24) == ("third \ufffd", "unfinished")
    assert tail(path, 0, 1000) == ()
    assert tail(tmp_path / "none", 5, 1000) == ()


def test_tail_of_one_endless_line_shows_its_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"x" * 1000 + b"the end")
    assert tail(path, 3, 10) == ("xxxthe end",)


def test_read_is_bounded_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"0123456789")
    assert read(path, 2, 100) == b"23456789"
    assert read(path, 0, 4) == b"6789"
    assert (size(path), size(tmp_path / "none"), read(tmp_path / "none")) == (10, 0, b"")

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.client.sse import split_events


def events(*chunks: bytes) -> list[tuple[float, str]]:
    found, rest = split_events([(float(index), data) for index, data in enumerate(chunks)])
    assert rest == ""
    return [(event.t_s, event.data) for event in found]


def test_several_events_in_one_chunk_share_its_stamp() -> None:
    assert events(b"", b"data: a\n\ndata: b\n\n", b"data: c\n\n") == [(1, "a"), (1, "b"), (2, "c")]


def test_an_event_is_stamped_with_the_chunk_that_completed_it() -> None:
    assert events(b"data: a", b"b\n", b"\ndata: c\n\n") == [(2, "ab"), (2, "c")]


def test_line_ends_of_every_kind() -> None:
    assert events(b"data: a\r\n\r\n", b"data: b\r\r", b"data: c\n\r\n") == [(0, "a"), (1, "b"), (2, "c")]
    assert events(b"data: a\r", b"\n\r", b"\ndata: b\n\n") == [(2, "a"), (2, "b")]


def test_comments_are_events_of_their_own() -> None:
    assert events(b": ping\n\n", b"data: a\n: in between\ndata: b\n\n", b":\n\n") == [
        (0, ": ping"), (1, ": in between"), (1, "a\nb"), (2, ":"),
    ]  # fmt: skip


def test_data_lines_are_joined_and_other_fields_left_out() -> None:
    assert events(b"event: x\nid: 7\ndata: one\ndata:two\ndata:  three\ndata\n\n") == [(0, "one\ntwo\n three\n")]


def test_blocks_without_data_are_kept_whole() -> None:
    assert events(b'error: {"code": 500}\n\n', b"noise\nmore noise\n\n") == [
        (0, 'error: {"code": 500}'), (1, "noise\nmore noise"),
    ]  # fmt: skip


def test_characters_split_across_chunks() -> None:
    whole = "data: 한국어\n\n".encode()
    assert events(*(whole[index : index + 1] for index in range(len(whole)))) == [(len(whole) - 1, "한국어")]


def test_undecodable_bytes_are_replaced_within_their_event() -> None:
    assert events(b"data: \xff\xe2\x82\n\ndata: ok\n\n") == [(0, "\ufffd\ufffd"), (0, "ok")]


def test_a_byte_order_mark_is_skipped() -> None:
    assert events(b"\xef\xbb", b"\xbfdata: a\n\n") == [(1, "a")]


def test_the_unterminated_rest_is_no_event() -> None:
    for text, rest in ((b"data: b", "data: b"), (b"data: b\n", "data: b\n"), (b"x\ny", "x\ny"), (b"\xff", "\ufffd")):
        found, left = split_events([(0.0, b"data: a\n\n"), (1.0, text)])
        assert [event.data for event in found] == ["a"]
        assert left == rest
    assert split_events([]) == ((), "")


TEXTS = st.lists(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n"), min_size=1, max_size=8), max_size=8
)


@settings(deadline=None)
@given(texts=TEXTS, cuts=st.lists(st.integers(0, 400), max_size=12), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_however_the_stream_is_cut_the_events_are_the_same(texts: list[str], cuts: list[int], end: str) -> None:
    whole = "".join(f"data: {text}{end}{end}" for text in texts).encode()
    edges = sorted({0, len(whole), *(cut for cut in cuts if cut < len(whole))})
    chunks = [whole[start:stop] for start, stop in pairwise(edges)]
    found, rest = split_events([(float(index), data) for index, data in enumerate(chunks)])
    assert [event.data for event in found] == texts
    assert rest == ""
    stamps = [event.t_s for event in found]
    assert stamps == sorted(stamps)
    done = 0
    for text, event in zip(texts, found, strict=True):
        done += len(f"data: {text}{end}{end}".encode())
        holder = next(index for index, edge in enumerate(edges[1:]) if edge >= done)
        assert event.t_s == holder

from __future__ import annotations

import json
from itertools import count

import pytest

from orchestrator.client.errors import AddressError
from orchestrator.client.http import EngineClient
from orchestrator.schema.adapter import HttpStep
from orchestrator.schema.capture import StepCapture, read_session, step_lines

LONG_S = 60.0
PATIENCE_S = (0.5, 4.0, 30.0)
"""Time-outs of an exchange that must end by them, and only after its first events: a busy machine is given more."""
TOKENS = ['{"token": 0}', '{"token": 1}', '{"token": 2}', '{"token": 3}', '{"token": 4}']


def fault(name: str, *, stream: bool = True) -> HttpStep:
    return HttpStep("request", "POST", f"/fault/{name}", {"prompt": "é"}, stream)


def data(capture: StepCapture) -> list[str]:
    return [event.data for event in capture.events]


def test_a_stream_is_recorded_event_by_event(client: EngineClient) -> None:
    capture = client.exchange(fault("none"), LONG_S, LONG_S)
    assert data(capture) == [*TOKENS, "[DONE]"]
    assert (capture.name, capture.http_status, capture.error, capture.timed_out) == ("request", 200, None, False)
    assert capture.body == '{"prompt": "é"}'
    stamps = [capture.sent_s, *(event.t_s for event in capture.events), capture.done_s]
    assert stamps == sorted(stamps)


def test_events_that_come_apart_have_stamps_apart(client: EngineClient) -> None:
    capture = client.exchange(fault("slow"), LONG_S, LONG_S)
    assert data(capture) == TOKENS
    assert len({event.t_s for event in capture.events}) == len(TOKENS)


def test_a_plain_answer_is_one_event(client: EngineClient) -> None:
    capture = client.exchange(fault("echo", stream=False), LONG_S, LONG_S)
    assert capture.complete
    assert data(capture) == ['{"prompt": "é"}']
    assert capture.sent_s < capture.events[0].t_s <= capture.done_s


def test_one_client_serves_many_requests_each_on_its_own_connection(client: EngineClient) -> None:
    for _ in range(3):
        assert data(client.exchange(fault("none"), LONG_S, LONG_S)) == [*TOKENS, "[DONE]"]
    capture = client.exchange(HttpStep("headers", "GET", "/headers"), LONG_S, LONG_S)
    headers = {name.lower(): value for name, value in json.loads(capture.text)}
    assert headers["connection"] == "close"
    assert headers["accept-encoding"] == "identity"
    assert "content-type" not in headers
    assert capture.body == ""


def test_proxies_of_the_environment_are_not_used(fault_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with EngineClient(fault_url) as direct:
        assert direct.exchange(fault("none"), LONG_S, LONG_S).complete


def test_sending_is_stamped_on_the_open_connection(client: EngineClient, monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = count(1)
    monkeypatch.setattr("orchestrator.client.http.now_s", lambda: float(next(ticks)))
    capture = client.exchange(fault("echo", stream=False), LONG_S, LONG_S)
    assert capture.sent_s == 2.0  # 1.0 is the beginning, before the connection was opened
    assert (capture.events[0].t_s, capture.done_s) == (3.0, 4.0)


@pytest.mark.parametrize(
    ("name", "events"), [("drop", TOKENS[:2]), ("crash", TOKENS[:2]), ("dropearly", []), ("nohttp", [])]
)
def test_a_broken_connection_is_an_error_and_keeps_the_events(
    client: EngineClient, name: str, events: list[str]
) -> None:
    capture = client.exchange(fault(name), LONG_S, LONG_S)
    assert data(capture) == events
    assert capture.error.startswith("the connection broke: ")
    assert not capture.timed_out
    assert capture.done_s >= capture.sent_s
    assert not capture.complete


def test_a_dead_server_is_an_error(client: EngineClient) -> None:
    client.exchange(fault("crash"), LONG_S, LONG_S)
    capture = client.exchange(fault("none"), LONG_S, LONG_S)
    assert capture.error.startswith("the connection broke: ")
    assert (capture.http_status, capture.events) == (None, ())
    assert not client.get_ready("/health")


@pytest.mark.parametrize(("name", "events"), [("silent", []), ("hang", TOKENS[:2])])
def test_silence_ends_timed_out(client: EngineClient, name: str, events: list[str]) -> None:
    for silence_s in PATIENCE_S:
        capture = client.exchange(fault(name), silence_s, LONG_S)
        assert capture.timed_out
        assert capture.error == f"silent for {silence_s:g} s"
        if data(capture) == events:
            break
    assert data(capture) == events
    assert capture.done_s is not None


@pytest.mark.parametrize("silence_s", [1.0, LONG_S])
def test_a_total_time_no_longer_than_the_silence_is_the_reason(client: EngineClient, silence_s: float) -> None:
    for _ in range(3):
        assert client.exchange(fault("silent"), silence_s, 0.1).error == "not done within 0.1 s"


@pytest.mark.parametrize(("name", "first"), [("silent", []), ("hang", TOKENS[:2]), ("keepalive", TOKENS[:1])])
def test_the_total_time_is_limited_too(client: EngineClient, name: str, first: list[str]) -> None:
    for total_s in PATIENCE_S:
        capture = client.exchange(fault(name), LONG_S, total_s)
        assert capture.timed_out
        assert capture.error == f"not done within {total_s:g} s"
        if data(capture)[: len(first)] == first:
            break
    assert data(capture)[: len(first)] == first
    assert set(data(capture)[len(first) :]) <= {": still here"}


def test_a_refusal_keeps_status_and_body(client: EngineClient) -> None:
    capture = client.exchange(fault("refuse"), LONG_S, LONG_S)
    assert capture.http_status == 400
    assert data(capture) == ['{"error": {"message": "prompt too long"}}']
    assert capture.error == 'HTTP 400: {"error": {"message": "prompt too long"}}'
    assert not capture.complete


def test_a_long_refusal_is_bounded_in_the_error_alone(client: EngineClient) -> None:
    capture = client.exchange(fault("overloaded"), LONG_S, LONG_S)
    assert capture.error == "HTTP 503: " + "x" * 500 + "…"
    assert len(capture.text) == 5000


def test_redirects_are_not_followed(client: EngineClient) -> None:
    capture = client.exchange(fault("redirect"), LONG_S, LONG_S)
    assert capture.http_status == 302
    assert capture.error.startswith("HTTP 302")


def test_an_unfinished_event_is_an_error(client: EngineClient) -> None:
    capture = client.exchange(fault("garbage"), LONG_S, LONG_S)
    assert capture.events == ()
    assert capture.error == "the stream ended inside an event: \ufffd\ufffd\x00 garbage without an end"


def test_compression_is_an_error(client: EngineClient) -> None:
    assert "compressed" in client.exchange(fault("compressed"), LONG_S, LONG_S).error


def test_the_answers_size_is_bounded(fault_url: str) -> None:
    with EngineClient(fault_url, max_answer_bytes=10_000) as small:
        capture = small.exchange(fault("big"), LONG_S, LONG_S)
    assert capture.error == "the answer is larger than 10000 bytes"
    assert 1 <= len(capture.events) <= 10
    with EngineClient(fault_url) as large:
        assert len(large.exchange(fault("big"), LONG_S, LONG_S).events) == 100


def test_ready_is_200_and_nothing_else(client: EngineClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.client.http.READY_TIMEOUT_S", LONG_S)
    assert client.get_ready("/health")
    assert not client.get_ready("/loading")
    monkeypatch.setattr("orchestrator.client.http.READY_TIMEOUT_S", 0.5)
    assert not client.get_ready("/silent-health")


@pytest.mark.parametrize(
    "address",
    ["http://192.0.2.1:80", "http://example.org", "https://127.0.0.1:1", "http://127.0.0.1@192.0.2.1", "127.0.0.1:80",
     "http://user:word@127.0.0.1:1", "http://0.0.0.0:1", "http://[::2]:1", "ftp://127.0.0.1", "http://", "http://127.0.0.1:x"],
)  # fmt: skip
def test_other_hosts_are_refused(address: str) -> None:
    with pytest.raises(AddressError, match=r"use http://127\.0\.0\.1:PORT"):
        EngineClient(address)


@pytest.mark.parametrize(
    "address", ["http://127.0.0.1:1", "http://localhost:1/", "http://[::1]:1", "http://127.8.8.8:1/v1"]
)
def test_this_host_is_taken(address: str) -> None:
    with EngineClient(address) as opened:
        assert isinstance(opened, EngineClient)


@pytest.mark.parametrize("path", ["@192.0.2.1/", "9/", "health", ""])
def test_a_path_cannot_lead_elsewhere(path: str) -> None:
    with EngineClient("http://127.0.0.1:1") as opened, pytest.raises(AddressError):
        opened.exchange(HttpStep("request", "GET", path), LONG_S, LONG_S)


def test_a_path_prefix_is_kept(fault_url: str) -> None:
    with EngineClient(fault_url + "/fault") as prefixed:
        assert prefixed.exchange(HttpStep("request", "POST", "/none", {}, True), LONG_S, LONG_S).complete


def test_a_capture_survives_the_disk(client: EngineClient) -> None:
    capture = client.exchange(fault("drop"), LONG_S, LONG_S)
    text = "".join(step_lines(0, capture))
    assert read_session(text).trials[0].steps["request"] == capture

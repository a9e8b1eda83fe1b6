"""The bottom floor: an observation cannot become a wrong number, and every status has its row."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.schema.capture import RawEvent, StepCapture, log_line, read_session, step_lines
from orchestrator.schema.cell import (
    Cell,
    EngineConfig,
    EosPolicy,
    Method,
    MethodKind,
    ModelConfig,
    Sampling,
    Workload,
    fingerprint,
)
from orchestrator.schema.codec import dump_header, dump_record, load_header, load_record
from orchestrator.schema.errors import StoreError
from orchestrator.schema.metrics import VOCABULARY, Clock, Unit
from orchestrator.schema.observation import Absence, Observation, absent, observed
from orchestrator.schema.record import NoteRecord, RunHeader
from orchestrator.schema.status import STATUS_RULES, Status, Validity
from orchestrator.schema.units import percent, plain, quantity, ratio, seconds, size


def test_every_metric_says_what_it_is():
    for name, metric in VOCABULARY.items():
        assert metric.name == name
        assert metric.id == f"{name}@{metric.version}"
        assert metric.definition.endswith(".")


@pytest.mark.parametrize(
    ("metric", "value", "unit", "missing"),
    [
        ("no_such_metric", 1.0, Unit.SECOND, None),
        ("ttft", 1.0, Unit.TOKEN, None),
        ("ttft", None, Unit.SECOND, None),
        ("ttft", 1.0, Unit.SECOND, Absence.NOT_RUN),
        ("ttft", float("nan"), Unit.SECOND, None),
        ("ttft", float("inf"), Unit.SECOND, None),
    ],
)
def test_an_observation_refuses_what_is_not_a_measurement(metric, value, unit, missing):
    with pytest.raises(ValueError):
        Observation(metric, value, unit, Clock.OURS, "s", "d", missing)


def test_zero_is_a_value_and_an_absence_is_none():
    assert observed("accepted_tokens", 0, "s").value == 0
    gone = absent("draft_time", Absence.NOT_REPORTED, "the engine does not say")
    assert gone.value is None
    assert gone.note == "the engine does not say"


def test_every_status_has_a_rule_and_only_a_measured_cell_is_ranked():
    assert set(STATUS_RULES) == set(Status)
    assert [status for status, rule in STATUS_RULES.items() if rule.ranked] == [Status.OK]
    for status, rule in STATUS_RULES.items():
        assert rule.fails_when_strict or not rule.fails_run, status
        assert rule.validity in Validity


def test_a_record_and_a_header_survive_the_round_trip():
    note = NoteRecord("interrupted", "by the user\nwith a line break", "2026-01-01T00:00:00Z")
    line = dump_record(note)
    assert line.count("\n") == 1
    assert load_record(line, "x") == note
    header = RunHeader(1, "0.1.0", "r", "now", "m.yaml", "text", {"os": "x"}, "specmatrix run")
    assert load_header(dump_header(header), "x") == header


def test_a_newer_schema_is_refused_with_what_to_do():
    header = RunHeader(1, "9", "r", "now", "m.yaml", "text", {}, "run")
    text = dump_header(dataclasses.replace(header, schema=2))
    with pytest.raises(StoreError, match="newer specmatrix"):
        load_header(text, "run.json")


STEP = StepCapture("request", 1.0, '{"a": 1}', (RawEvent(1.1, "é\n"), RawEvent(1.2, '{"x": "\u2028"}')), 1.3, 200)


def _capture_bytes():
    text = "".join(step_lines(0, STEP)) + log_line(0, 2, 5)
    return text.encode()


def test_a_capture_reads_back_what_was_written():
    session = read_session(_capture_bytes().decode(), "out", b"0123456789")
    assert session.trials[0].step("request") == STEP
    assert session.trials[0].log == "234"
    assert session.trials[0].complete


@given(st.integers(min_value=0, max_value=len(_capture_bytes())))
def test_a_capture_cut_at_any_byte_has_only_whole_facts(cut):
    session = read_session(_capture_bytes()[:cut].decode("utf-8", "replace"))
    for trial in session.trials.values():
        found = trial.steps.get("request")
        if found is not None:
            assert found.events == STEP.events[: len(found.events)]
            assert found.done_s in (None, STEP.done_s)


@given(st.text())
def test_garbage_is_no_capture(text):
    for trial in read_session(text).trials.values():
        assert trial.step("request") is None


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (seconds(0.0000123), "12.3 µs"),
        (seconds(0.0412), "41.2 ms"),
        (seconds(1.25), "1.25 s"),
        (seconds(125), "2 min 05 s"),
        (size(1.9e9), "1.90 GB"),
        (size(49_200_000), "49.2 MB"),
        (size(12), "12 B"),
        (ratio(0.738), "0.74×"),
        (percent(0.714), "71 %"),
        (plain(123.4), "123"),
        (quantity(3, Unit.TOKEN), "3"),
        (quantity(2.64, Unit.TOKEN), "2.64"),
    ],
)
def test_numbers_as_people_read_them(shown, expected):
    assert shown == expected


def test_a_policy_without_xtc_has_the_fingerprint_that_it_had_before_there_was_xtc():
    def printed(**xtc):
        sampling = Sampling("warm", 0.8, 7, 0, 1.0, 0.0, 1.0, 0.0, 0.0, **xtc)
        engine, model = EngineConfig("e", "a"), ModelConfig("m", "/m")
        workload = Workload("w", "p", 9, EosPolicy.STOP)
        return fingerprint(Cell(engine, model, Method("none", MethodKind.NONE), sampling, workload), {})

    assert printed() == printed(xtc_threshold=0.3) == "9558ea99727df2c0"
    assert len({printed(), printed(xtc_probability=0.5), printed(xtc_probability=0.5, xtc_threshold=0.3)}) == 3

"""Energy by integration over samples that enclose the interval; a sampler that is not there says so."""

from __future__ import annotations

import sys

import pytest

from orchestrator.clock import now_s
from orchestrator.host import energy as module
from orchestrator.host.energy import EnergySampler, energy, watts_of
from orchestrator.schema.observation import Absence

STEADY = [(float(t), 10.0) for t in range(11)]


def test_steady_power_times_time():
    assert energy(STEADY, 2.5, 7.25) == pytest.approx(47.5)


def test_rising_power_is_integrated_exactly_also_inside_one_period():
    ramp = [(0.0, 0.0), (1.0, 2.0), (2.0, 4.0)]
    assert energy(ramp, 0.5, 1.5) == pytest.approx(2.0)
    assert energy(ramp, 0.25, 0.75) == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("samples", "start", "end"),
    [
        ([], 1.0, 2.0),
        (STEADY, -1.0, 2.0),
        (STEADY, 9.0, 11.0),
        (STEADY, 3.0, 3.0),
        ([(0.0, 1.0), (5.0, 1.0), (6.0, 1.0)], 1.0, 5.5),
    ],
)
def test_what_is_not_enclosed_or_has_a_gap_is_not_told(samples, start, end):
    assert energy(samples, start, end) is None


@pytest.mark.parametrize(
    ("line", "watts"),
    [
        ('{"timestamp":"x","all_power":12.5,"sys_power":20.0}', 12.5),
        ('{"sys_power": 3}', 3.0),
        ('{"all_power": null}', None),
        ('{"all_power": true}', None),
        ('{"all_power": -1}', None),
        ("[1]", None),
        ("macmon 0.6", None),
    ],
)
def test_a_line_of_the_sampler(line, watts):
    assert watts_of(line) == watts


def test_without_a_sampler_the_absence_says_why(monkeypatch):
    monkeypatch.setattr(module.shutil, "which", lambda _name: None)
    sampler = EnergySampler()
    sampler.start()
    sampler.stop()
    found = sampler.decode(1.0, 2.0)
    assert found.absent is Absence.NOT_REPORTED
    assert "macmon" in found.note


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("import sys; sys.exit('no such sensor')", "ended with exit code 1 before the answer did: no such sensor"),
        ("print('{\"all_power\": 7.0}')", "ended with exit code 0 before the answer did"),
        ("import os; os.kill(os.getpid(), 9)", "ended with exit code -9 before the answer did"),
    ],
)
def test_a_sampler_that_ends_is_not_waited_for_and_its_end_is_told(monkeypatch, tmp_path, body, why):
    program = tmp_path / "macmon"
    program.write_text(f"#!{sys.executable}\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setattr(module, "LONGEST_GAP_S", 3600.0)  # waiting for a sample would not end before the test's limit
    sampler = EnergySampler(str(program))
    sampler.start()
    found = sampler.decode(now_s(), now_s() + 1.0)
    sampler.stop()
    assert found.absent is Absence.NOT_REPORTED
    assert found.note == f"{program} {why}"


def test_samples_from_before_its_end_still_count(monkeypatch, tmp_path):
    monkeypatch.setattr(module, "LONGEST_GAP_S", 3600.0)  # a busy machine may print them seconds apart
    program = tmp_path / "macmon"
    body = "import time\nfor _ in range(3):\n    print('{\"all_power\": 7.0}', flush=True)\n    time.sleep(0.02)\n"
    program.write_text(f"#!{sys.executable}\n{body}")
    program.chmod(0o755)
    sampler = EnergySampler(str(program))
    sampler.start()
    with sampler._news:
        assert sampler._news.wait_for(lambda: sampler._ended, timeout=60)
    sampler.stop()
    first, last = sampler.samples[0][0], sampler.samples[-1][0]
    middle = (first + last) / 2
    assert sampler.decode((first + middle) / 2, middle).value == pytest.approx(7.0 * (middle - first) / 2, rel=0.01)
    assert "ended with exit code 0" in sampler.decode(middle, last + 1).note


def test_a_program_that_prints_samples_is_read_until_one_follows_the_interval(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "LONGEST_GAP_S", 60.0)  # a busy machine may leave more than 2 s between two samples
    program = tmp_path / "macmon"
    body = "import sys, time\nwhile True:\n    print('{\"all_power\": 7.0}', flush=True)\n    time.sleep(0.02)\n"
    program.write_text(f"#!{sys.executable}\n{body}")
    program.chmod(0o755)
    sampler = EnergySampler(str(program))
    sampler.start()
    with sampler._news:
        assert sampler._news.wait_for(lambda: len(sampler.samples) >= 2, timeout=30)
    start = now_s()
    with sampler._news:
        assert sampler._news.wait_for(lambda: sampler.samples[-1][0] > start, timeout=30)
    found = sampler.decode(start, now_s())
    sampler.stop()
    assert found.value > 0
    assert found.metric == "energy_decode"

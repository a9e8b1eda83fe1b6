"""Pressure, heat and power: parsed from texts and folders like the system's, and read here for real on Linux."""

from __future__ import annotations

import ctypes
import sys

import pytest

from orchestrator.host import pressure, thermal
from orchestrator.host.pressure import Moment, Stalls, between, moment, parse_stalls
from orchestrator.host.state import concerns, state
from orchestrator.host.unavailable import UnavailableError
from orchestrator.schema.observation import Absence

PSI = "some avg10=0.00 avg60=1.20 avg300=0.40 total=2500000\nfull avg10=0.00 avg60=0.90 avg300=0.20 total=1500000\n"
WHY = UnavailableError("not here")


def test_stall_counters_are_read_in_seconds():
    assert parse_stalls(PSI) == Stalls(2.5, 1.5)
    with pytest.raises(UnavailableError, match="reads 'nonsense'"):
        parse_stalls("nonsense")


def values(before, after):
    return {item.metric: item for item in between(before, after)}


def test_linux_deltas_become_observations():
    found = values(Moment(100, WHY, Stalls(1.0, 0.5)), Moment(350, WHY, Stalls(1.5, 0.5)))
    assert found["trial_swap_delta"].value == 250
    assert found["memory_stall"].value == 0.0
    assert found["memory_pressure"].value == "some stalls"


@pytest.mark.parametrize(
    ("some", "full", "word"), [(1.0, 0.5, "no stalls"), (1.1, 0.5, "some stalls"), (1.1, 0.6, "full stalls")]
)
def test_the_linux_word_is_the_worst_stall(some, full, word):
    found = values(Moment(0, WHY, Stalls(1.0, 0.5)), Moment(0, WHY, Stalls(some, full)))
    assert found["memory_pressure"].value == word


def test_macos_tells_the_worse_level_of_the_two():
    found = values(Moment(0, "warning", WHY), Moment(0, "normal", WHY))
    assert found["memory_pressure"].value == "warning"
    assert found["memory_stall"].absent is Absence.NOT_REPORTED
    assert found["memory_stall"].note == "not here"


def test_what_is_not_told_is_absent_with_its_reason():
    found = values(Moment(WHY, WHY, WHY), Moment(WHY, WHY, WHY))
    assert all(item.absent is Absence.NOT_REPORTED and "not here" in item.note for item in found.values())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_this_machine_tells_its_state():
    now = moment()
    assert isinstance(now.swap, int)
    assert isinstance(now.level, UnavailableError)
    if pressure.PSI.exists():
        assert isinstance(now.stalls, Stalls)
    found = state()
    assert set(found) == {
        "load_average", "memory_available_bytes", "swap_used_bytes", "memory_pressure_level", "memory_stall_s",
        "thermal_pressure", "temperature_c", "frequency_hz", "throttle_count", "power",
    }  # fmt: skip
    assert found["memory_available_bytes"] > 0


def test_linux_zones_frequencies_and_throttle_counters(tmp_path):
    for number, (name, degrees) in enumerate([("cpu", "41000"), ("cpu", "52500"), ("nvme", "30000"), ("bad", "x")]):
        zone = tmp_path / f"sys/class/thermal/thermal_zone{number}"
        zone.mkdir(parents=True)
        (zone / "type").write_text(name)
        (zone / "temp").write_text(degrees)
    for number, khz in enumerate((1_000_000, 3_000_000)):
        cpu = tmp_path / f"sys/devices/system/cpu/cpu{number}"
        (cpu / "cpufreq").mkdir(parents=True)
        (cpu / "cpufreq/scaling_cur_freq").write_text(str(khz))
        (cpu / "thermal_throttle").mkdir()
        (cpu / "thermal_throttle/core_throttle_count").write_text("3")
    assert thermal.temperatures(tmp_path) == {"cpu": 52.5, "nvme": 30.0}
    assert thermal.frequency(tmp_path) == {"low": 1e9, "mean": 2e9, "high": 3e9}
    assert thermal.throttle_count(tmp_path) == 6


def test_a_virtual_machine_tells_less_and_says_why(tmp_path):
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/cpuinfo").write_text("cpu MHz\t\t: 2400.5\n")
    assert thermal.frequency(tmp_path)["mean"] == 2400.5e6
    (tmp_path / "proc/cpuinfo").write_text("model name : x\n")
    for read in (thermal.temperatures, thermal.frequency, thermal.throttle_count):
        with pytest.raises(UnavailableError):
            read(tmp_path)


class Notify:
    """The three functions of macOS's notify.h, as its header declares them."""

    def __init__(self, level=0, register=0, get=0):
        self.level, self.register, self.get = level, register, get
        self.cancelled = []

    def notify_register_check(self, name, token):
        assert name == b"com.apple.system.thermalpressurelevel"
        ctypes.cast(token, ctypes.POINTER(ctypes.c_int))[0] = 11
        return self.register

    def notify_get_state(self, token, state):
        assert token.value == 11
        ctypes.cast(state, ctypes.POINTER(ctypes.c_uint64))[0] = self.level
        return self.get

    def notify_cancel(self, token):
        self.cancelled.append(token.value)
        return 0


@pytest.mark.parametrize(
    ("level", "word"), [(0, "nominal"), (1, "moderate"), (2, "heavy"), (3, "trapping"), (4, "sleeping")]
)
def test_macos_thermal_pressure_is_a_word_and_the_token_is_given_back(level, word):
    library = Notify(level)
    assert thermal.pressure_level(library) == word
    assert library.cancelled == [11]


@pytest.mark.parametrize("library", [Notify(7), Notify(register=1), Notify(get=1)])
def test_macos_thermal_pressure_that_cannot_be_read_is_unavailable(library):
    with pytest.raises(UnavailableError):
        thermal.pressure_level(library)
    assert library.cancelled == ([] if library.register else [11])


def test_concerns_tell_throttling_heat_and_a_change_of_power():
    battery = {"source": "battery", "charge_percent": 90}
    start = {"thermal_pressure": "nominal", "throttle_count": 2, "power": {"source": "mains", "lowpowermode": 0}}
    end = {"thermal_pressure": "heavy", "throttle_count": 5, "power": battery}
    found = concerns(start, end)
    assert found[0] == "thermal pressure was heavy at its end"
    assert found[1] == "the processors throttled 3 times"
    assert found[2].startswith("power changed from ")
    assert concerns({"power": battery}, {"power": {**battery, "charge_percent": 80}}) == ()
    assert concerns({"power": {"powermode": 1}}, {"power": {"powermode": 1}}) == ("the machine was in low-power mode",)
    assert concerns({"throttle_count": {"unavailable": "x"}}, {"throttle_count": {"unavailable": "x"}}) == ()

"""Parsing of macOS outputs, written after the commands' documentation: nothing here has seen a Mac."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest

from orchestrator.host import macos
from orchestrator.host.macos import Run
from orchestrator.host.unavailable import UnavailableError

BATTERY = """Now drawing from 'Battery Power'
 -InternalBattery-0 (id=1234567)\t87%; discharging; 5:12 remaining present: true
"""
MAINS = """Now drawing from 'AC Power'
 -InternalBattery-0 (id=1234567)\t100%; charged; 0:00 remaining present: true
"""
DESKTOP = "Now drawing from 'AC Power'\n"
SETTINGS = """System-wide power settings:
Currently in use:
 standby              1
 Sleep On Power Button 1
 lowpowermode         1
 powermode            2
 sleep                1 (sleep prevented by caffeinate)
"""


def runner(**outputs: str) -> Run:
    """A runner that answers the last word of the command from a table, dots read as underscores."""

    def run(argv: Sequence[str]) -> str:
        return outputs[argv[-1].replace(".", "_").removeprefix("-")]

    return run


def test_power() -> None:
    found = macos.power(runner(batt=BATTERY, g=SETTINGS))
    assert found == {"source": "battery", "charge_percent": 87, "lowpowermode": 1, "powermode": 2}
    assert macos.battery(MAINS) == {"source": "mains", "charge_percent": 100}
    assert macos.battery(DESKTOP) == {"source": "mains"}
    assert macos.power_modes("Currently in use:\n womp 1\n") == {}
    with pytest.raises(UnavailableError):
        macos.battery("")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("total = 2048.00M  used = 1033.25M  free = 1014.75M  (encrypted)", 1033.25 * 2**20),
        ("total = 2048,00M  used = 1033,25M  free = 1014,75M  (encrypted)", 1033.25 * 2**20),
        ("total = 0.00M  used = 0.00M  free = 0.00M  (encrypted)", 0),
        ("total = 3.00G  used = 1.50G  free = 1.50G", 1.5 * 2**30),
    ],
)
def test_swap_in_use(text: str, value: float) -> None:
    assert macos.swap_used(text) == value


def test_swap_in_another_form_is_unavailable() -> None:
    with pytest.raises(UnavailableError, match="reads 'none'"):
        macos.swap_used("none")


def test_gpu_limit() -> None:
    assert macos.gpu_wired_limit_bytes(runner(iogpu_wired_limit_mb="49152\n")) == 49152 * 2**20
    assert macos.gpu_wired_limit_bytes(runner(iogpu_wired_limit_mb="0\n")) == "default"
    with pytest.raises(UnavailableError):
        macos.gpu_wired_limit_bytes(runner(iogpu_wired_limit_mb="lots\n"))
    with pytest.raises(UnavailableError, match="is empty"):
        macos.gpu_wired_limit_bytes(runner(iogpu_wired_limit_mb="\n"))


def test_memory_pressure() -> None:
    words = [macos.memory_pressure_level(runner(kern_memorystatus_vm_pressure_level=str(n))) for n in (1, 2, 4)]
    assert words == ["normal", "warning", "critical"]
    with pytest.raises(UnavailableError):
        macos.memory_pressure_level(runner(kern_memorystatus_vm_pressure_level="3"))


def test_names() -> None:
    run = runner(hw_model="Mac16,5\n", machdep_cpu_brand_string="Apple M4 Max\n", productVersion="26.1\n")
    assert macos.machine_model(run) == "Mac16,5"
    assert macos.cpu_brand(run) == "Apple M4 Max"
    assert macos.os_version(run) == "macOS 26.1"


def test_the_runner_reports_what_failed() -> None:
    assert macos.run([sys.executable, "-c", "import os; print(os.environ['LC_ALL'])"]) == "C\n"
    with pytest.raises(UnavailableError, match="unknown oid"):
        macos.run([sys.executable, "-c", "raise SystemExit('unknown oid')"])
    with pytest.raises(UnavailableError, match="exit code 3"):
        macos.run([sys.executable, "-c", "raise SystemExit(3)"])
    with pytest.raises(UnavailableError, match="no-such-command"):
        macos.run(["no-such-command"])

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from orchestrator.host import linux
from orchestrator.host.machine import facts
from orchestrator.host.unavailable import UnavailableError, fact

NAMES = {
    "os", "os_version", "kernel", "architecture", "machine_model", "cpu", "cores_physical", "cores_logical",
    "cores_usable", "memory_bytes", "memory_available_bytes", "memory_limit_bytes", "swap_used_bytes", "python",
    "load_average", "governor", "power", "gpu_wired_limit_bytes", "memory_pressure_level",
}  # fmt: skip


def test_every_fact_is_a_value_or_says_why_not() -> None:
    found = facts()
    assert set(found) == NAMES
    json.dumps(found)
    for name, value in found.items():
        if isinstance(value, dict) and "unavailable" in value:
            assert value["unavailable"], name
        else:
            assert value not in (None, ""), name


def test_facts_agree_with_the_system() -> None:
    found = facts()
    assert found["cores_logical"] == os.cpu_count()
    assert found["memory_bytes"] == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert found["kernel"] == os.uname().release
    assert f"{sys.version_info.major}.{sys.version_info.minor}" in found["python"]


@pytest.mark.skipif(sys.platform != "linux", reason="Linux facts")
def test_mac_facts_are_unavailable_on_linux() -> None:
    found = facts()
    assert found["gpu_wired_limit_bytes"] == {"unavailable": "the limit exists on macOS only"}
    assert found["os"] == "Linux"


def test_a_fault_becomes_a_reason() -> None:
    def refuse() -> object:
        raise UnavailableError("asleep")

    def missing() -> object:
        raise FileNotFoundError(2, "No such file", "/proc/none")

    assert fact(refuse) == {"unavailable": "asleep"}
    assert fact(missing) == {"unavailable": "/proc/none does not exist"}
    assert fact(lambda: 0) == 0
    with pytest.raises(ZeroDivisionError):
        fact(lambda: 1 // 0)


def put(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_distribution_name(tmp_path: Path) -> None:
    put(tmp_path, "etc/os-release", 'NAME="X"\nPRETTY_NAME="X Linux 13 (y)"\n')
    assert linux.os_version(tmp_path) == "X Linux 13 (y)"
    put(tmp_path, "etc/os-release", "NAME=X\n")
    with pytest.raises(UnavailableError):
        linux.os_version(tmp_path)


def test_machine_model_from_firmware_or_device_tree(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="virtual machine"):
        linux.machine_model(tmp_path)
    put(tmp_path, "proc/device-tree/model", "Board 5\0")
    assert linux.machine_model(tmp_path) == "Board 5"
    put(tmp_path, "sys/class/dmi/id/sys_vendor", "Maker\n")
    put(tmp_path, "sys/class/dmi/id/product_name", "Box 1\n")
    assert linux.machine_model(tmp_path) == "Maker Box 1"


def test_cpu_models_are_listed_once(tmp_path: Path) -> None:
    put(tmp_path, "proc/cpuinfo", "model name\t: Big\nflags: x\n\nmodel name\t: Big\n\nmodel name\t: Little\n")
    assert linux.cpu_model(tmp_path) == "Big + Little"
    put(tmp_path, "proc/cpuinfo", "processor: 0\n")
    with pytest.raises(UnavailableError):
        linux.cpu_model(tmp_path)


def test_the_tightest_memory_limit_counts(tmp_path: Path) -> None:
    put(tmp_path, "proc/self/cgroup", "0::/a/b\n")
    with pytest.raises(UnavailableError, match="no limit"):
        linux.memory_limit_bytes(tmp_path)
    put(tmp_path, "sys/fs/cgroup/a/b/memory.max", "max\n")
    put(tmp_path, "sys/fs/cgroup/a/memory.max", "4096\n")
    put(tmp_path, "sys/fs/cgroup/memory.max", "8192\n")
    assert linux.memory_limit_bytes(tmp_path) == 4096
    put(tmp_path, "proc/self/cgroup", "5:memory:/a\n")
    with pytest.raises(UnavailableError, match="version 2"):
        linux.memory_limit_bytes(tmp_path)


def test_governors_are_listed_once(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError):
        linux.governor(tmp_path)
    for core, name in enumerate(("powersave", "performance", "powersave")):
        put(tmp_path, f"sys/devices/system/cpu/cpu{core}/cpufreq/scaling_governor", name + "\n")
    assert linux.governor(tmp_path) == "performance + powersave"


@pytest.mark.parametrize(("online", "word"), [("1", "mains"), ("0", "battery")])
def test_power_source(tmp_path: Path, online: str, word: str) -> None:
    with pytest.raises(UnavailableError):
        linux.power(tmp_path)
    put(tmp_path, "sys/class/power_supply/BAT0/type", "Battery\n")
    put(tmp_path, "sys/class/power_supply/AC/type", "Mains\n")
    put(tmp_path, "sys/class/power_supply/AC/online", online + "\n")
    assert linux.power(tmp_path) == word

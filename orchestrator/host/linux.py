"""Facts that Linux tells through ``/proc`` and ``/sys``."""

from __future__ import annotations

from pathlib import Path

from orchestrator.host.unavailable import UnavailableError

_ROOT = Path("/")


def os_version(root: Path = _ROOT) -> str:
    """The distribution's own name, e.g. ``Debian GNU/Linux 13 (trixie)``."""
    for line in (root / "etc/os-release").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip().strip("\"'")
    raise UnavailableError("/etc/os-release has no PRETTY_NAME")


def machine_model(root: Path = _ROOT) -> str:
    """Vendor and product as the firmware names them (ARM boards: the device tree's model)."""
    dmi = root / "sys/class/dmi/id"
    parts = [
        (dmi / name).read_text(encoding="utf-8").strip()
        for name in ("sys_vendor", "product_name")
        if (dmi / name).is_file()
    ]
    tree = root / "proc/device-tree/model"
    if not parts and tree.is_file():
        parts = [tree.read_text(encoding="utf-8").strip("\0\n ")]
    if not parts:
        raise UnavailableError("the firmware names no product (a virtual machine or container)")
    return " ".join(parts)


def cpu_model(root: Path = _ROOT) -> str:
    """The processor's name; several names (big and little cores) joined by `` + ``."""
    names: dict[str, None] = {}
    for line in (root / "proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("model name", "Model", "Processor") and value.strip():
            names[value.strip()] = None
    if not names:
        raise UnavailableError("/proc/cpuinfo names no model")
    return " + ".join(names)


def memory_limit_bytes(root: Path = _ROOT) -> int:
    """The memory limit of our control group (v2), the tightest from here up to the root."""
    group = _control_group(root)
    base = root / "sys/fs/cgroup"
    limits: list[int] = []
    for folder in (group, *group.parents):
        try:
            text = (base / folder / "memory.max").read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            continue
        if text.isdigit():
            limits.append(int(text))
    if not limits:
        raise UnavailableError("no limit is set")
    return min(limits)


def governor(root: Path = _ROOT) -> str:
    """The frequency governor of the processors; several joined by `` + ``."""
    files = sorted((root / "sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor"))
    if not files:
        raise UnavailableError("the kernel offers no frequency governor (a virtual machine or container)")
    return " + ".join(sorted({file.read_text(encoding="utf-8").strip() for file in files}))


def power(root: Path = _ROOT) -> str:
    """``mains`` or ``battery``."""
    states: list[bool] = []
    for supply in sorted((root / "sys/class/power_supply").glob("*")):
        kind, online = supply / "type", supply / "online"
        if kind.is_file() and online.is_file() and kind.read_text(encoding="utf-8").strip() == "Mains":
            states.append(online.read_text(encoding="utf-8").strip() == "1")
    if not states:
        raise UnavailableError("no power supply is listed (a desktop, a virtual machine or a container)")
    return "mains" if any(states) else "battery"


def _control_group(root: Path) -> Path:
    for line in (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        number, _, path = line.split(":", 2)
        if number == "0":
            return Path(path.strip("/"))
    raise UnavailableError("no control group of version 2")

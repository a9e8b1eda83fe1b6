"""Facts that macOS tells through ``sysctl``, ``pmset`` and ``sw_vers``, none of which needs administrator rights.

From source only: parsing is tested on outputs written after the commands' documentation, not on a Mac.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Sequence

from orchestrator.host.unavailable import UnavailableError

Run = Callable[[Sequence[str]], str]
"""Runs a command and returns its standard output, or raises ``UnavailableError``."""

_TIMEOUT_S = 10.0
_MIB = 1024 * 1024


def run(argv: Sequence[str]) -> str:
    """The command's standard output; in the C locale, since numbers are printed in the user's otherwise."""
    try:
        done = subprocess.run(
            list(argv),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            env={"LC_ALL": "C", "PATH": "/usr/bin:/bin:/usr/sbin:/sbin"},
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        raise UnavailableError(f"{' '.join(argv)}: {err}") from err
    if done.returncode != 0:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise UnavailableError(f"{' '.join(argv)}: {words or f'exit code {done.returncode}'}")
    return done.stdout.decode("utf-8", "replace")


def sysctl(name: str, runner: Run = run) -> str:
    """The value of a kernel variable."""
    text = runner(["/usr/sbin/sysctl", "-n", name]).strip()
    if not text:
        raise UnavailableError(f"sysctl {name} is empty")
    return text


def os_version(runner: Run = run) -> str:
    """E.g. ``macOS 26.1``."""
    return f"macOS {runner(['/usr/bin/sw_vers', '-productVersion']).strip()}"


def machine_model(runner: Run = run) -> str:
    """E.g. ``Mac16,5``."""
    return sysctl("hw.model", runner)


def cpu_brand(runner: Run = run) -> str:
    """E.g. ``Apple M4 Max``."""
    return sysctl("machdep.cpu.brand_string", runner)


def gpu_wired_limit_bytes(runner: Run = run) -> int | str:
    """How much memory the GPU may wire, bytes; ``default`` (about two thirds to three quarters of RAM) when unset."""
    megabytes = _integer(sysctl("iogpu.wired_limit_mb", runner))
    return megabytes * _MIB if megabytes else "default"


def memory_pressure_level(runner: Run = run) -> str:
    """``normal``, ``warning`` or ``critical``."""
    level = _integer(sysctl("kern.memorystatus_vm_pressure_level", runner))
    words = {1: "normal", 2: "warning", 4: "critical"}
    if level not in words:
        raise UnavailableError(f"kern.memorystatus_vm_pressure_level is {level}, which has no known meaning")
    return words[level]


def swap_used(text: str) -> int:
    """Bytes in use, from the value of ``vm.swapusage``; accepts a decimal comma.

    Raises:
        UnavailableError: the text has another form.
    """
    found = re.search(r"used\s*=\s*(\d+)(?:[.,](\d+))?\s*([KMGT])", text)
    if found is None:
        raise UnavailableError(f"vm.swapusage reads {text!r}")
    whole, fraction, unit = found.groups()
    factor = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}[unit]
    return round(float(f"{whole}.{fraction or 0}") * factor)


def power(runner: Run = run) -> dict[str, object]:
    """Power source, charge, and the modes that move speed, as ``pmset`` numbers them.

    ``lowpowermode`` is 0 or 1; ``powermode`` is 0 automatic, 1 low, 2 high. What this Mac does not list is absent from
    the answer.
    """
    return {**battery(runner(["/usr/bin/pmset", "-g", "batt"])), **power_modes(runner(["/usr/bin/pmset", "-g"]))}


def battery(text: str) -> dict[str, object]:
    """``source`` (``mains`` or ``battery``) and, with a battery, ``charge_percent``, from ``pmset -g batt``.

    Raises:
        UnavailableError: the text names no power source.
    """
    source = re.search(r"Now drawing from '([^']+)'", text)
    if source is None:
        raise UnavailableError(f"pmset -g batt reads {text.strip()[:80]!r}")
    words = {"AC Power": "mains", "Battery Power": "battery"}
    found: dict[str, object] = {"source": words.get(source[1], source[1])}
    charge = re.search(r"(\d+)%", text)
    if charge is not None:
        found["charge_percent"] = int(charge[1])
    return found


def power_modes(text: str) -> dict[str, object]:
    """The settings ``lowpowermode`` and ``powermode`` of ``pmset -g``, where listed."""
    rows = re.findall(r"^\s*(lowpowermode|powermode)\s+(\d+)\b", text, re.MULTILINE)
    return {name: int(value) for name, value in rows}


def _integer(text: str) -> int:
    try:
        return int(text)
    except ValueError as err:
        raise UnavailableError(f"{text!r} is not a whole number") from err

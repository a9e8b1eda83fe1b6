"""What oMLX is: by a look into the interpreter that has it, without running any of it."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping

from adapters.shared.mlx_device import GPU_LIMIT_CODE
from orchestrator.schema.adapter import EngineIdentity, Probe, ProbeOutput
from orchestrator.schema.cell import EngineConfig

ISOLATED = ("-I", "-X", "utf8")
"""No user site, no ``PYTHON*`` variables, no folder of ours on the path: the engine's own environment alone."""

DRAFTERS = ("gemma4_assistant", "gemma4_unified_assistant", "qwen3_5_mtp")
"""Types of drafters that one version or another of oMLX's VLM MTP takes."""

SETTING, FAMILY, DRAFTER, DFLASH = "setting:", "mtp:", "drafter:", "dflash-mlx"

PROBE_CODE = f"""
import importlib.metadata as metadata, importlib.util, json, pathlib, platform, re
spec = importlib.util.find_spec("omlx")
if spec is None or not spec.origin:
    raise SystemExit("No module named 'omlx'")
root = pathlib.Path(spec.origin).parent
def text(name):
    path = root / name
    return path.read_text("utf-8") if path.is_file() else ""
def version(name):
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
names = metadata.packages_distributions().get("omlx", [])
own = re.search(r'__version__ = "([^"]+)"', text("_version.py"))
fields = re.findall(r"^    ((?:vlm_)?(?:mtp|dflash)_[a-z0-9_]+):", text("model_settings.py"), re.MULTILINE)
patches = sorted(path.stem for path in (root / "patches" / "mlx_lm_mtp").glob("*.py"))
loader = text("speculative/vlm_mtp.py")
import mlx.core as mx
{GPU_LIMIT_CODE}
print(json.dumps({{
    "omlx": own.group(1) if own else None, "distribution": names[0] if names else None,
    "packages": {{name: version(name) for name in ("mlx", "mlx-lm", "mlx-vlm", "dflash-mlx")}},
    "python": platform.python_version(), "device": str(mx.default_device()), "gpu_limit": gpu_limit(),
    "settings": sorted(set(fields)), "patches": patches,
    "drafters": [name for name in {DRAFTERS!r} if '"' + name + '"' in loader],
}}))
"""


BRIDGE_CODE = """
import re, shutil, subprocess, sys
path, code = shutil.which(sys.argv[1]), sys.argv[2]
for _ in range(3):
    head = open(path, "rb").read(4096) if path else b""
    if not head.startswith(b"#!"):
        raise SystemExit(sys.argv[1] + (" is no script" if path else " was not found"))
    text = head.decode("utf-8", "replace")
    python = re.search(r"(/[^\\s\\x22\\x27]*/python[0-9.]*)", text)
    if python:
        raise SystemExit(subprocess.run([python.group(1), "-I", "-X", "utf8", "-c", code]).returncode)
    other = re.search(r"(/[^\\s\\x22\\x27]*/bin/omlx)", text)
    path = other.group(1) if other else None
raise SystemExit("no interpreter is named in " + sys.argv[1])
"""
"""Finds the interpreter that a command is a script of, or that a wrapper's script is, and asks that one."""


def python(config: EngineConfig) -> str:
    """The interpreter that has oMLX."""
    return config.python or sys.executable


def probe_commands(config: EngineConfig) -> tuple[Probe, ...]:
    """A look at the installed package, by the interpreter that a bare ``omlx`` command is a script of; and its help."""
    if config.binary is not None and config.python is None:
        bridge = (sys.executable, *ISOLATED, "-c", BRIDGE_CODE, config.binary, PROBE_CODE)
        return (Probe("package", bridge), Probe("help", (config.binary, "serve", "--help"), 120.0))
    return (Probe("package", (python(config), *ISOLATED, "-c", PROBE_CODE)),)


def identify(config: EngineConfig, outputs: Mapping[str, ProbeOutput], hint: str) -> EngineIdentity:
    """Version and abilities, or why there is no engine."""
    output = outputs.get("package")
    found = _json(output)
    if found is None and config.binary is not None and config.python is None:
        return _command(config.binary, outputs, hint)
    if found is None:
        return EngineIdentity(unavailable=f"{python(config)} has no omlx ({last_words(output)}); {hint}")
    packages = {name: value for name, value in _mapping(found, "packages").items() if isinstance(value, str)}
    version, device = _word(found, "omlx"), _word(found, "device") or ""
    facts = {
        **packages,
        "python": _word(found, "python"),
        "omlx": version,
        "distribution": _word(found, "distribution"),
    }
    abilities = {SETTING + name for name in _words(found, "settings")} | {
        FAMILY + name for name in _words(found, "patches")
    }
    abilities |= {DRAFTER + name for name in _words(found, "drafters")} | ({DFLASH} & set(packages))
    limit = found.get("gpu_limit")
    backend = "cpu" if "cpu" in device else "metal" if sys.platform == "darwin" else device
    return EngineIdentity(
        facts={key: value for key, value in facts.items() if value},
        version=version,
        build=", ".join(f"{name} {value}" for name, value in packages.items()),
        backend=backend,
        capabilities=frozenset(abilities),
        gpu_limit_bytes=limit if isinstance(limit, int) else None,
    )


def last_words(output: ProbeOutput | None) -> str:
    """The last line of what a probe printed, or why it could not run."""
    if output is None:
        return "not probed"
    if output.error is not None:
        return output.error
    lines = [line for line in output.stderr.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit status {output.exit_code}"


def _command(binary: str, outputs: Mapping[str, ProbeOutput], hint: str) -> EngineIdentity:
    """A command that is no script, as in the app: it serves, and its version only the running server tells."""
    said = outputs.get("help")
    if said is None or said.exit_code != 0 or "--base-path" not in said.stdout:
        words = f"{binary} serve --help does not answer as oMLX does ({last_words(said)})"
        if said is not None and said.error is not None:
            words = said.error
        return EngineIdentity(unavailable=f"{words}; {hint}")
    why = last_words(outputs.get("package"))
    return EngineIdentity(build=f"version told only by the running server ({why}); name the engine's python")


def _json(output: ProbeOutput | None) -> dict[str, object] | None:
    lines = output.stdout.splitlines() if output is not None and output.exit_code == 0 else []
    try:
        found = json.loads(lines[-1] if lines else "")
    except ValueError:
        return None
    return found if isinstance(found, dict) and isinstance(found.get("settings"), list) else None


def _word(found: Mapping[str, object], key: str) -> str | None:
    value = found.get(key)
    return value if isinstance(value, str) else None


def _words(found: Mapping[str, object], key: str) -> list[str]:
    value = found.get(key)
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _mapping(found: Mapping[str, object], key: str) -> Mapping[str, object]:
    value = found.get(key)
    return value if isinstance(value, dict) else {}

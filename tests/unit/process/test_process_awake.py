"""The Mac stays awake while it measures; elsewhere nothing is started."""

from __future__ import annotations

import os
import sys

import pytest

from orchestrator.process import awake as module
from orchestrator.process.awake import awake


def test_nothing_is_started_elsewhere(monkeypatch):
    monkeypatch.setattr(module, "COMMAND", ("/nowhere/never",))
    with awake("linux") as said:
        assert said == "not needed on this system"


def test_on_a_mac_the_command_watches_our_process_and_ends_with_the_block(monkeypatch, tmp_path):
    script = tmp_path / "fake.py"
    script.write_text("import pathlib, sys, time\npathlib.Path(sys.argv[1]).write_text(sys.argv[2])\ntime.sleep(600)\n")
    started = []
    real = module.subprocess.Popen

    def popen(argv, **options):
        started.append((argv, real([sys.executable, str(script), str(tmp_path / "pid"), argv[-1]], **options)))
        return started[-1][1]

    monkeypatch.setattr(module.subprocess, "Popen", popen)
    with awake("darwin") as said:
        assert said == "caffeinate -dims"
        assert started[0][0] == ["/usr/bin/caffeinate", "-dims", "-w", str(os.getpid())]
        assert started[0][1].poll() is None
    assert started[0][1].returncode is not None


def test_a_mac_without_the_command_runs_on_and_says_so(monkeypatch):
    monkeypatch.setattr(module, "COMMAND", ("/nowhere/caffeinate",))
    with awake("darwin") as said:
        assert said.startswith("caffeinate cannot be started")


def test_the_command_ends_when_the_block_fails(monkeypatch):
    started = []
    real = module.subprocess.Popen

    def popen(argv, **options):
        started.append(real([sys.executable, "-c", "import time; time.sleep(600)"], **options))
        return started[-1]

    monkeypatch.setattr(module.subprocess, "Popen", popen)
    with pytest.raises(KeyboardInterrupt), awake("darwin"):
        raise KeyboardInterrupt
    assert started[0].returncode is not None

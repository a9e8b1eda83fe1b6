from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.client.http import EngineClient

SERVER = str(Path(__file__).parents[2] / "fake_engines" / "fault_server.py")


@pytest.fixture
def fault_url() -> Iterator[str]:
    """The address of a fresh fault server."""
    argv = [sys.executable, SERVER]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        yield json.loads(process.stdout.readline())["base_url"]
        process.kill()


@pytest.fixture
def client(fault_url: str) -> Iterator[EngineClient]:
    with EngineClient(fault_url) as opened:
        yield opened

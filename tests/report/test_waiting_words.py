"""How to get an engine is said in the reader's language, by every adapter, or is nothing but a command."""

from __future__ import annotations

import re

import pytest

from orchestrator import registry
from orchestrator.report.language.recognise import PHRASES, recognise
from orchestrator.report.language.words import Words
from orchestrator.schema.adapter import ProbeOutput
from orchestrator.schema.cell import EngineConfig

COMMAND = re.compile(r"pip install \S+")


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_every_install_hint_has_a_form(name: str) -> None:
    hint = registry.adapter(name).install_hint
    assert COMMAND.fullmatch(hint) or recognise(hint, PHRASES) is not None


@pytest.mark.parametrize("name", registry.BUILT_IN)
def test_the_sentence_of_an_engine_that_is_not_there_is_in_korean_too(name: str) -> None:
    adapter = registry.adapter(name)
    config = EngineConfig("e", name, binary="/nowhere/engine", python="/nowhere/python")
    outputs = {
        probe.name: ProbeOutput(None, "", "", f"{probe.argv[0]}: not found") for probe in adapter.probe_commands(config)
    }
    reason = adapter.identify(config, outputs).unavailable
    assert reason is not None
    said = Words("ko").said(reason)
    assert said != reason
    assert re.search("[가-힣]", said)

"""What engines and adapters say of an ordinary run, as its records hold it, is in Korean but for names."""

from __future__ import annotations

import re

import pytest

from orchestrator.report.language.phrases.refusals import REFUSALS
from orchestrator.report.language.phrases.reported import REPORTED
from orchestrator.report.language.quotes import quoted
from orchestrator.report.language.words import Words

# As recorded: of the default matrix on Linux, and of matrices with an option that an engine refuses.
RECORDED = (
    "stderr.log: drafters set up while loading",
    "0 set to −∞ by a logits processor",
    "compiled with /usr/bin/g++",
    "counted by the worker at the drafter",
    "tensors of the last 1 block(s) of the target's file",
    "3 layers in f32 × 2 draft tokens",
    "256 tokens × 1 layer(s), 32-bit floats at most",
    "MTPLX's own README at 2.12.2: exact rejection sampling with residual correction",
    "Slipstream's own decision record of 30 September 2026, in its releases from v26.10.4 on; read, never run by us",
    "whether this oMLX can hold the draft length at more than 1 is not known: its settings have no "
    "mtp_fixed_draft_depth",
    "set n_max to 1, or name the interpreter of a later version as the engine's python",
    "synth_len replaces the target's judgement by lots: the output would not be the model's text",
    "set synthetic: true to own up to it, or take it out",
    "the draft's vocabulary is not the target's: token id 2 is '!' in the target and '24' in the draft (sizes 1024 "
    "and 1024)",
    "lower workloads.tasks.trials, or add prompts",
    "lower run.trials, or add prompts",
    "silent for 2 s",
)


@pytest.mark.parametrize("text", RECORDED)
def test_a_recorded_sentence_of_an_engine_is_in_korean(text: str) -> None:
    told = Words("ko").said(text)
    assert told != text
    assert re.search(r'lang="en">[^<]* [^<]*<', quoted(told, "ko")) is None


def test_forms_are_told_apart_from_what_they_stand_beside() -> None:
    korean = Words("ko")
    filled = [form.format_map(Filled()) for form in (*REFUSALS, *REPORTED)]
    assert len(filled) == len(set(filled)) > 250
    assert [text for text in filled if korean.said(text) == text] == []


class Filled(dict[str, str]):
    """Every place holds a number, which any kind of place takes."""

    def __missing__(self, key: str) -> str:
        return "7"

"""Chat templates: what they make of a conversation, and what an untrusted one cannot do."""

from __future__ import annotations

import pytest

from orchestrator.runner import chat
from orchestrator.runner.chat import Framing, conversation, knows_thinking, render, rendered
from orchestrator.schema.chat_template import ChatTemplate
from orchestrator.workloads.errors import WorkloadError
from orchestrator.workloads.prompt import Message, Prompt

CHATML = (
    "{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}"
    "{{ '<|im_start|>system\nBe brief.<|im_end|>\n' }}{% endif %}"
    "{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n'}}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}"
    "{% if enable_thinking is defined and enable_thinking is false %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}"
)
ASKED = Prompt("p", "chat", "en", "Hello <b>&", messages=None)


def template(source=CHATML, **more):
    return ChatTemplate(source, "model", **more)


def test_a_plain_prompt_is_the_users_message_and_nothing_is_escaped():
    text = render(template(), ASKED.conversation)
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHello <b>&<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_workloads_system_prompt_takes_the_place_of_the_prompts_own():
    own = Prompt("p", "chat", "en", "x", messages=(Message("system", "old"), Message("user", "x")))
    assert conversation(own, Framing()) == own.messages
    assert conversation(own, Framing("new")) == (Message("system", "new"), Message("user", "x"))
    assert rendered(own, template(), Framing("new")).text.startswith(
        "<|im_start|>system\nnew<|im_end|>\n<|im_start|>user"
    )


def test_thinking_is_asked_for_only_where_the_workload_says_so():
    plain, off, on = (render(template(), ASKED.conversation, thinking) for thinking in (None, False, True))
    assert plain == on
    assert off == plain + "<think>\n\n</think>\n\n"
    assert knows_thinking(template())
    assert not knows_thinking(template("{{ messages[0].content }}"))


@pytest.mark.parametrize(("adds", "begin"), [(True, ""), (False, "<s>")])
def test_the_first_token_is_not_written_twice(adds, begin):
    source = "{{ bos_token }}{{ messages[0].content }}"
    assert render(template(source, bos="<s>", engine_adds_bos=adds), ASKED.conversation) == f"{begin}Hello <b>&"


def test_the_date_is_the_same_every_day():
    assert render(template("{{ strftime_now('%Y-%m-%d') }}"), ASKED.conversation) == "2026-01-01"


def test_what_marks_an_answer_for_training_changes_nothing():
    source = "{% generation %}{{ messages[0].content }}{% endgeneration %}"
    assert render(template(source), ASKED.conversation) == "Hello <b>&"


def test_json_is_plain():
    assert (
        render(template("{{ messages[0] | tojson }}"), ASKED.conversation)
        == '{"role": "user", "content": "Hello <b>&"}'
    )


@pytest.mark.parametrize(
    "source",
    [
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages.__class__.__mro__[-1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{% for x in range(99999999) %}{% endfor %}",
        "{{ 1 // 0 }}",
        "{{ messages[7].content.x }}",
        "{% if %}",
        "{% include '/etc/passwd' %}",
        "{{ 5 | dictsort }}",
        "{{ 'a' | wordwrap('x') }}",
        "{% for a in range(9) %}" * 30 + "{% endfor %}" * 30,
        "{% if 1 %}" * 150 + "{% endif %}" * 150,
        "{{ 'a' * 10 ** 9 }}",
        "{{ [1] * 9999999 }}",
        "{{ 2 ** 99999 }}",
        "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
        "{{ '\\ud800' }}",
    ],
)
def test_a_template_that_fails_or_reaches_out_is_refused_in_words(source):
    with pytest.raises(WorkloadError, match="the chat template refused"):
        render(template(source), ASKED.conversation)


def test_what_a_template_may_write_is_bounded(monkeypatch):
    monkeypatch.setattr(chat, "MOST_RENDERED_CHARS", 1000)
    with pytest.raises(WorkloadError, match="wrote more than 1000"):
        render(template("{% for x in range(9999) %}xxxxxxxxxx{% endfor %}"), ASKED.conversation)
    monkeypatch.setattr(chat, "MOST_TEMPLATE_CHARS", 5)
    with pytest.raises(WorkloadError, match="is not read"):
        render(template(), ASKED.conversation)


def test_another_template_has_another_hash():
    assert template().sha256 != template("x").sha256
    assert len(template().sha256) == 12

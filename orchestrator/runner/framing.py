"""How a prompt becomes the text that is sent: as it stands, or in the chat template of the model's own files."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.runner.chat import Framing, knows_thinking, rendered
from orchestrator.schema.adapter import Condition, Honoured, Refusal, chat_template
from orchestrator.schema.status import Status
from orchestrator.workloads.errors import WorkloadError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from orchestrator.schema.adapter import Adapter
    from orchestrator.schema.cell import Cell
    from orchestrator.workloads.prompt import Prompt

CHAT = "chat"
_SOURCE = "specmatrix"


def as_it_stands(prompt: Prompt) -> Prompt:
    """The prompt, for a model that is given raw text."""
    return prompt


def _after(prefix: str, prompt: Prompt) -> Prompt:
    return replace(prompt, text=prefix + prompt.text)


def frame_of(cell: Cell, adapter: Adapter) -> Callable[[Prompt], Prompt]:
    """What makes a prompt of the cell's workload the one that is sent.

    Raises:
        WorkloadError: the workload asks for chat, and the model's files hold no template that can be read.
    """
    workload = cell.workload
    if workload.template != CHAT:
        return as_it_stands if workload.prefix is None else partial(_after, workload.prefix)
    template = chat_template(adapter, cell)
    if template is None:
        raise WorkloadError(f"{adapter.title} finds no chat template in {cell.model.target}")
    framing = Framing(workload.system, workload.thinking)
    return lambda prompt: rendered(prompt, template, framing)


def chat_refusal(cell: Cell, adapter: Adapter, prompts: Sequence[Prompt]) -> Refusal | None:
    """Why the workload's prompts cannot be put in the model's chat template; ``None`` where they can, or are raw."""
    remedy = f"write template: raw for workload {cell.workload.name}, or take a model file with a chat template"
    try:
        frame = frame_of(cell, adapter)
        for prompt in prompts:
            frame(prompt)
    except WorkloadError as err:
        return Refusal(Status.UNSUPPORTED, str(err), remedy)
    return None


def framing_conditions(cell: Cell, adapter: Adapter) -> tuple[Condition, ...]:
    """The template, the system prompt and the thinking of the cell's requests, as we made them."""
    workload = cell.workload
    template = chat_template(adapter, cell) if workload.template == CHAT else None
    if template is None:
        effective = "none: the prompt is sent as it is"
        return (Condition("chat_template", workload.template, effective, Honoured.HONOURED, _SOURCE),)
    where = template.origin.replace("\\", "/").rsplit("/", 1)[-1]
    found = [
        Condition(
            "chat_template",
            CHAT,
            f"rendered by specmatrix, sha256 {template.sha256}, from {where}",
            Honoured.HONOURED,
            _SOURCE,
        ),
        Condition(
            "system_prompt",
            workload.system or "the prompts' own, or the template's",
            workload.system,
            Honoured.HONOURED if workload.system else Honoured.UNKNOWN,
            _SOURCE,
        ),
    ]
    if workload.thinking is not None:
        asked, knows = "on" if workload.thinking else "off", knows_thinking(template)
        effective = asked if knows else "the template knows no enable_thinking: the same text either way"
        verdict = Honoured.HONOURED if knows else Honoured.UNSUPPORTED
        found.append(Condition("thinking", asked, effective, verdict, _SOURCE))
    return tuple(found)


def framed_conditions(told: Iterable[Condition], cell: Cell, adapter: Adapter) -> tuple[Condition, ...]:
    """An adapter's conditions with ours in place of what it says of a text that it saw framed already."""
    ours = framing_conditions(cell, adapter)
    names = {one.name for one in ours}
    return (*(one for one in told if one.name not in names), *ours)

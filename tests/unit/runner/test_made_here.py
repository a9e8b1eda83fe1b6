"""Which models a report calls tiny ones made for this tool: those of the repository, not real ones that came in a package."""

from __future__ import annotations

import pytest

from orchestrator.demo.packaged import SMOLLM2
from orchestrator.matrix.types import ModelFiles, ModelSpec
from orchestrator.runner.resolved import _made_here


@pytest.mark.parametrize(
    ("target", "drafts", "made"),
    [
        ("demo:tiny-target-f16.gguf", {}, True),
        (f"demo:{SMOLLM2.name}", {}, False),
        (f"demo:{SMOLLM2.name}", {"small": "demo:smollm2-draft-q8_0.gguf"}, False),
        ("~/models/mine.gguf", {"small": "demo:tiny-draft-f16.gguf"}, False),
    ],
)
def test_the_target_decides(target, drafts, made):
    model = ModelSpec("m", None, False, {"engine": ModelFiles(target, drafts, None, False)})
    assert _made_here(model) is made

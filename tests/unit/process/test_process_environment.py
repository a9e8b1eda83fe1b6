from __future__ import annotations

import pytest

from orchestrator.process.environment import looks_secret, redacted_argv


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "--api-key", "OPENAI_API_KEY", "PASSWORD", "--hf-token", "MY_SECRET_ID", "AUTH"]
)
def test_secret_names(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize(
    "name", ["--max-tokens", "KEYBOARD", "N_TOKENS", "--keep", "AUTHOR", "PATH", "--api-key-file", "-"]
)
def test_plain_names(name: str) -> None:
    assert not looks_secret(name)


def test_argv_values_are_redacted_in_both_spellings() -> None:
    argv = ("server", "--api-key", "s1", "--hf-token=s2", "-m", "token.gguf", "--password", "--verbose")
    hidden = "<redacted>"
    assert redacted_argv(argv) == (
        "server", "--api-key", hidden, f"--hf-token={hidden}", "-m", "token.gguf", "--password", "--verbose",
    )  # fmt: skip

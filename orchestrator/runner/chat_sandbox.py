"""Jinja's sandbox as chat templates need it: with the tag that marks an answer, and without giant products."""

from __future__ import annotations

from typing import Any

from jinja2 import nodes
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

MOST_PRODUCT = 1_000_000
"""Largest size of a repeated text or list, and largest exponent."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Refuses what would fill the memory in one step: ``'a' * 10**9``."""

    intercepted_binops = frozenset({"*", "**"})

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:  # noqa: ANN401
        """The product or power, where it is small."""
        if operator == "**" and isinstance(right, int | float) and abs(right) > 64:
            raise ValueError(f"an exponent of {right}")
        for one, times in ((left, right), (right, left)):
            if isinstance(one, str | list | tuple) and isinstance(times, int) and len(one) * times > MOST_PRODUCT:
                raise ValueError(f"a repetition of {len(one) * times} elements")
        return super().call_binop(context, operator, left, right)


class Generation(Extension):
    """``{% generation %}…{% endgeneration %}``, which marks an answer for training and is nothing else here."""

    tags = {"generation"}  # noqa: RUF012  (Jinja declares it so)

    def parse(self, parser: Parser) -> list[nodes.Node]:
        """The body as it stands."""
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)

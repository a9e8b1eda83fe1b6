"""Turns what matplotlib writes into an inline figure that serves light and dark, beside others on one page.

Three traps: the XML prologue must go, ids of two figures must not meet, and matplotlib's ``<style>`` speaks of the
whole page. Figures are drawn in sentinel colours that become CSS variables here.
"""

from __future__ import annotations

import re
from html import escape

SENTINELS: dict[str, str] = {
    "#a1b200": "--ink",
    "#a1b201": "--mute",
    "#a1b202": "--line",
    "#a1b203": "--band",
    "#a1b204": "--good",
    "#a1b205": "--bad",
    "#a1b206": "--flat",
    "#a1b207": "--accent",
    "#a1b208": "--card",
    "#a1b210": "--s0",
    "#a1b211": "--s1",
    "#a1b212": "--s2",
    "#a1b213": "--s3",
    "#a1b214": "--s4",
    "#a1b215": "--s5",
}
"""Colour that a figure is drawn in → the CSS variable that it becomes."""

COLOUR: dict[str, str] = {variable.removeprefix("--"): colour for colour, variable in SENTINELS.items()}
"""Sentinel by the variable's name, for drawing."""

_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_NOTHING = re.compile(r" ?font-family: [^;\"]+;?| ?transform=\"rotate\(-?0(?: [^)]*)?\)\"")
"""The page's own font is used, and text that is not turned needs no turning."""
_TAG = re.compile(r"<[^>]*>")
_REFERENCE = re.compile(r"(?:xlink:)?href=\"#([^\"]+)\"|url\(#([^)]+)\)")


def inline(raw: str, figure_id: str, title: str) -> str:
    """The ``<svg>`` element alone, ready for a page.

    Only what stands inside tags is rewritten: labels hold names that people chose.

    Args:
        raw: what ``savefig`` wrote.
        figure_id: unique on the page; prefixed to every id inside.
        title: what the figure shows, for those who do not see it.
    """
    body = raw[raw.index("<svg") :].rstrip()
    for part in (r"<metadata>.*?</metadata>", r"<style[^>]*>.*?</style>", r"<!--.*?-->", r"<defs>\s*</defs>"):
        body = re.sub(part, "", body, flags=re.DOTALL)
    tags = _TAG.findall(body)
    used = {first or second for tag in tags for first, second in _REFERENCE.findall(tag)}
    body = _TAG.sub(lambda match: _tag(match.group(), figure_id, used), body)
    body = re.sub(r">\s+<", "><", body)
    head, rest = body.split(">", 1)
    box = re.search(r'viewBox="([^"]+)"', head)
    view = box.group(1) if box else "0 0 1 1"
    name = f"{figure_id}-t"
    return f'<svg viewBox="{view}" role="img" aria-labelledby="{name}"><title id="{name}">{escape(title)}</title>{rest}'


def _tag(tag: str, figure_id: str, used: set[str]) -> str:
    """One tag: ids that something refers to under the figure's name, colours as variables, short numbers."""

    def rename(match: re.Match[str]) -> str:
        return f' id="{figure_id}-{match.group(1)}"' if match.group(1) in used else ""

    tag = re.sub(r"\sid=\"([^\"]+)\"", rename, tag)
    tag = re.sub(r"(?:xlink:)?href=\"#([^\"]+)\"", rf'href="#{figure_id}-\1"', tag)
    tag = re.sub(r"url\(#([^)]+)\)", rf"url(#{figure_id}-\1)", tag)
    for colour, variable in SENTINELS.items():
        tag = tag.replace(colour, f"var({variable})")
    tag = _NOTHING.sub("", tag)
    tag = _NUMBER.sub(lambda match: _short(match.group()), tag)
    return re.sub(r"\s*\n\s*", " ", tag)


def _short(number: str) -> str:
    shown = f"{float(number):.2f}".rstrip("0").rstrip(".")
    return "0" if shown == "-0" else shown

"""The page from the view-model: Jinja2 with everything escaped, nothing undefined and nothing computed."""

from __future__ import annotations

import base64
import hashlib
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from orchestrator.report.language.quotes import quoted
from orchestrator.report.language.words import Words
from orchestrator.report.model.page import ReportView

if TYPE_CHECKING:
    import gettext

HERE = Path(__file__).parent.parent
_JSON_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
"""What could end or open a tag inside a script element; the JSON itself is ASCII."""


def render_html(view: ReportView, words: Words | None = None) -> str:
    """One self-contained page; the same view gives the same bytes.

    Args:
        view: the page's content.
        words: the language's catalogue, for the headings that stand in templates.
    """
    words = words or Words(view.language)
    script = _asset("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _environment(words.translations, None, words.language).get_template("report.html.j2")
    return page.render(
        view=view,
        policy=policy,
        css=Markup(_asset("report.css")),  # noqa: S704  (our own file)
        script=Markup(script),  # noqa: S704  (our own file)
        data=Markup(_inert(view.data_json)),  # noqa: S704  (escaped here)
    )


def _inert(data: str) -> str:
    for char, escape in _JSON_ESCAPES.items():
        data = data.replace(char, escape)
    return data


def render_page(template: str, words: Words, folder: Path | None = None, **values: object) -> str:
    """Another page in the report's style, from one of our templates; ``folder`` holds templates of another package."""
    environment = _environment(words.translations, folder, words.language)
    return environment.get_template(template).render(css=Markup(_asset("report.css")), **values)  # noqa: S704  (ours)


@lru_cache(maxsize=4)
def _environment(translations: gettext.NullTranslations, folder: Path | None, language: str) -> Environment:
    """Kept for each catalogue: compiling the templates takes as long as filling them."""
    folders = [HERE / "templates"] if folder is None else [folder, HERE / "templates"]
    found = Environment(
        loader=FileSystemLoader(folders), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, extensions=["jinja2.ext.i18n"],
    )  # fmt: skip
    installer: Any = found
    installer.install_gettext_translations(translations, newstyle=True)
    found.filters["svg"] = _svg
    found.filters["told"] = partial(quoted, language=language)
    return found


def _svg(drawn: str) -> Markup:
    """A figure of ours: matplotlib escapes its labels, and :mod:`..figures.svg` rewrites its tags only."""
    return Markup(drawn)  # noqa: S704


@cache
def _asset(name: str) -> str:
    return (HERE / "assets" / name).read_text(encoding="utf-8").strip()

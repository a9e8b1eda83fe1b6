"""Brings the report's catalogues up to date: collects every message, keeps translations, writes .po and .mo.

    python scripts/update_catalogues.py            writes orchestrator/report/locales/…
    python scripts/update_catalogues.py --check    writes nothing; 1 when something is missing, fuzzy or out of date

Messages are the literals given to ``say``, ``rich``, ``count`` and ``mark``, those assigned to ``message``, the
``_("…")`` of the templates, the words of the vocabulary and of the status table, and the forms of finished sentences.
Both files are committed: a page in Korean needs no build step and no Babel.
"""

from __future__ import annotations

import ast
import io
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from orchestrator.exactness.groups import Mark  # noqa: E402
from orchestrator.report.language.recognise import PHRASES  # noqa: E402
from orchestrator.report.language.words import DOMAIN, LANGUAGES, LOCALES  # noqa: E402
from orchestrator.schema.adapter import Honoured, Verified  # noqa: E402
from orchestrator.schema.metrics import VOCABULARY  # noqa: E402
from orchestrator.schema.result import Outcome  # noqa: E402
from orchestrator.schema.status import STATUS_RULES, Validity  # noqa: E402
from orchestrator.stats.stability import FlagKind  # noqa: E402

PACKAGES = (ROOT / "orchestrator" / "report", ROOT / "orchestrator" / "serve")
CALLS = {"say": 1, "rich": 1, "mark": 1, "count": 2}
"""By name, how many leading arguments are messages."""
Message = str | tuple[str, str]
FIXED = datetime(2026, 1, 1, tzinfo=UTC)
"""In place of the moment of writing, so that the same messages give the same bytes."""


def messages() -> dict[Message, str]:
    """Every message with the file that it stands in, in a fixed order."""
    found: dict[Message, str] = {}
    for path in sorted(path for package in PACKAGES for path in package.rglob("*.py")):
        for message in _of_module(ast.parse(path.read_text(encoding="utf-8"))):
            found.setdefault(message, _place(path))
    for package in PACKAGES:
        templates = extract_from_dir(
            package / "templates",
            [("**.j2", "jinja2.ext:babel_extract")],
            {"**.j2": {"trim_blocks": "true", "lstrip_blocks": "true"}},
        )
        for name, _, message, _, _ in sorted(templates, key=lambda row: (row[0], row[1])):
            found.setdefault(message, f"templates/{name}")
    for metric in VOCABULARY.values():
        found.setdefault(metric.definition, "orchestrator/schema/metrics.py")
    for rule in STATUS_RULES.values():
        found.setdefault(rule.word, "orchestrator/schema/status.py")
        found.setdefault(rule.meaning, "orchestrator/schema/status.py")
    for kind in (Outcome, Validity, Honoured, FlagKind, Mark, Verified):
        for member in kind:
            found.setdefault(member.value, f"enumeration {kind.__name__}")
    for phrase in PHRASES:
        found.setdefault(phrase, "language/phrases")
    return found


def _place(path: Path) -> str:
    """Where a message stands, from its package on: two packages have modules of one name."""
    return next(path.relative_to(one).as_posix() for one in PACKAGES if path.is_relative_to(one))


def _of_module(tree: ast.Module) -> Iterator[Message]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            texts = [_text(one) for one in node.args[: CALLS.get(name, 0)]]
            if len(texts) == 2 and texts[0] is not None and texts[1] is not None:
                yield (texts[0], texts[1])
            elif len(texts) == 1 and texts[0] is not None:
                yield texts[0]
        elif isinstance(node, ast.Assign) and [getattr(one, "id", "") for one in node.targets] == ["message"]:
            yield from (text for one in ast.walk(node.value) if (text := _text(one)) is not None and " " in text)


def _text(node: ast.expr | ast.AST) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value else None


def catalogue(language: str) -> Catalog:
    """All messages with the translations that are there already; what is new stands empty."""
    path = LOCALES / language / "LC_MESSAGES" / f"{DOMAIN}.po"
    old = read_po(io.BytesIO(path.read_bytes()), locale=language) if path.exists() else Catalog(locale=language)
    made = Catalog(
        locale=language, domain=DOMAIN, project="specmatrix", version="report", creation_date=FIXED,
        revision_date=FIXED, last_translator="specmatrix", language_team=language, fuzzy=False,
        copyright_holder="specmatrix", header_comment=f"# The report of specmatrix: {language}.",
    )  # fmt: skip
    for message, place in sorted(messages().items(), key=lambda item: (item[1], str(item[0]))):
        key = message[0] if isinstance(message, tuple) else message
        known = old.get(key)
        string = known.string if known is not None and not known.fuzzy else ""
        if isinstance(message, tuple) and isinstance(string, str):
            string = (string,) * made.num_plurals
        made.add(message, string, locations=[(place, None)])
    return made


def missing(found: Catalog) -> list[str]:
    """Messages without a translation, or with a fuzzy one."""
    return [
        str(one.id) for one in found
        if one.id and (one.fuzzy or not one.string or (isinstance(one.string, tuple) and not all(one.string)))
    ]  # fmt: skip


def files(found: Catalog, language: str) -> dict[Path, bytes]:
    """The bytes of .po and .mo."""
    folder = LOCALES / language / "LC_MESSAGES"
    text, compiled = io.BytesIO(), io.BytesIO()
    write_po(text, found, width=118, sort_output=False, include_lineno=False)
    write_mo(compiled, found)
    return {folder / f"{DOMAIN}.po": text.getvalue(), folder / f"{DOMAIN}.mo": compiled.getvalue()}


def main(arguments: list[str]) -> int:
    """Writes or checks; prints what is missing."""
    check = "--check" in arguments
    wrong = False
    for language in LANGUAGES:
        if language == "en":
            continue
        found = catalogue(language)
        for path, data in files(found, language).items():
            if check and (not path.exists() or path.read_bytes() != data):
                print(f"{path.relative_to(ROOT)}: out of date; run python scripts/update_catalogues.py")
                wrong = True
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        lost = missing(found)
        print(f"{language}: {len(found)} messages, {len(lost)} without a translation")
        for one in lost:
            print(f"  {one}")
        wrong = wrong or bool(lost)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

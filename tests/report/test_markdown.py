"""``report.md`` and the other formats: rendered as a forge would, hostile text stays text."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report_runs import Report

from orchestrator.cli.commands import write_reports
from orchestrator.report.language.words import Words
from orchestrator.report.output import markdown
from orchestrator.report.output.formats import Format, write_formats
from orchestrator.report.output.markdown import report_markdown
from orchestrator.schema.errors import SpecmatrixError

FORGE = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
OURS = {
    "h1",
    "h2",
    "h3",
    "p",
    "ul",
    "ol",
    "li",
    "strong",
    "code",
    "pre",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "br",
}
OURS |= {"sup", "blockquote"}
HOSTILE = (
    "<script>alert(1)</script>",
    "[x](http://evil.example)",
    "![x](http://evil.example/a.png)",
    "**bold** _em_ ~~gone~~ `code`",
    "a | b || c",
    "# head",
    "- item",
    "1. item",
    "> quote",
    "&lt;b&gt; &amp;",
    "$x$",
    "***",
    "```\nfence",
    "    code",
    "\\",
    "<!-- comment",
    "a\n\n# b",
    "=====",
)


class Seen(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.text += data


def seen(text: str) -> Seen:
    found = Seen()
    found.feed(FORGE.render(text))
    return found


def test_the_report_holds_the_answer_validity_every_group_and_failing_cells(full: Report) -> None:
    text = report_markdown(full.view, Words())
    for one in full.view.decisions:
        assert f"**{one.icon} {one.word}**" in text
    for group in full.view.groups:
        assert (f"## {group.title}\n" in text) == bool(group.panels)
        for panel in group.panels:
            rows = [line for line in markdown.table(panel.table).splitlines() if line.startswith("| ")]
            assert len(rows) == len(panel.table.rows) + 2
            assert all(row in text for row in rows)
    for trouble in (*full.view.troubles, *full.view.waiting):
        assert markdown.code(trouble.command) in text
    assert f"Validity: {full.view.validity.icon} {full.view.validity.word}" in text
    assert report_markdown(full.view, Words()) == text


def test_a_forge_makes_nothing_of_it_but_what_we_wrote(full: Report) -> None:
    text = report_markdown(full.view, Words())
    found = seen(text)
    assert set(found.tags) <= OURS
    answers = sum(len(one.tables) + len(one.categories) for one in full.view.quality)
    waiting = int(full.view.to_measure is not None)
    assert found.tags.count("table") == answers + waiting + sum(len(group.panels) for group in full.view.groups)
    assert "alert(" in found.text


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(text: str) -> None:
    flat = " ".join(text.split())
    for made in (markdown.escape(text), f"- {markdown.escape(text)}", f"| {markdown.escape(text)} |\n| --- |"):
        found = seen(made)
        assert set(found.tags) <= {"p", "ul", "li", "table", "thead", "tr", "th"}, made
        assert " ".join(found.text.split()) == flat
    assert " ".join(seen(f"x {markdown.code(text)} y").text.split()) == f"x {flat} y"


@given(st.text(alphabet=st.sampled_from("ab<>&[]()*_`|~#-+=1.\\!@:/$ \n"), max_size=24))
def test_no_text_becomes_markup(text: str) -> None:
    found = seen("x: " + markdown.escape(text))
    assert set(found.tags) <= {"p"}
    assert re.sub(r"\s", "", found.text) == re.sub(r"\s", "", "x:" + text)


def test_mentions_issues_and_addresses_are_taken_apart() -> None:
    text = markdown.escape("@all see #12, GH-3, http://a.b and www.a.b")
    assert not re.search(r"@\w|#\d|GH-\d|\w://|www\.\w", text)


def test_a_log_cannot_end_its_block() -> None:
    found = seen(markdown.block(["```", "<b>", "````", "# x"]))
    assert found.tags == ["pre", "code"]
    assert found.text.rstrip("\n").splitlines() == ["```", "<b>", "````", "# x"]


def test_formats_write_what_was_asked_for_and_nothing_else(full: Report, tmp_path: Path) -> None:
    before = {path.name for path in full.path.iterdir()}
    made = write_formats(full.path, [Format.CSV, Format.PARQUET, Format.JSON, Format.MD], output=tmp_path / "out")
    assert [path.name for path in made] == ["metrics.csv", "metrics.parquet", "summary.json", "report.md"]
    assert {path.name for path in (tmp_path / "out").iterdir()} == {path.name for path in made}
    assert {path.name for path in full.path.iterdir()} == before
    assert len(pd.read_parquet(made[1])) == len(pd.read_csv(made[0]))
    assert json.loads(made[2].read_text(encoding="utf-8"))["run"] == full.header.run
    single = write_formats(full.path, [Format.MD], output=tmp_path / "pr.md")
    assert single == (tmp_path / "pr.md",)
    assert single[0].read_text(encoding="utf-8") == made[3].read_text(encoding="utf-8")


def test_an_unknown_format_and_a_place_without_a_format_are_refused(full: Report, tmp_path: Path) -> None:
    with pytest.raises(SpecmatrixError, match="html, md, json, csv, parquet"):
        write_reports(full.path.parent, full.path, None, ["pdf"], None)
    with pytest.raises(SpecmatrixError, match="--format html"):
        write_reports(full.path.parent, full.path, None, [], tmp_path / "x")

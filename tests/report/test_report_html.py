"""The page as a browser gets it: self-contained, well-formed, unmoved by hostile text, the same every time."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import shlex
import shutil
from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest
import run_builder
from report_runs import Report

from orchestrator.report.data import summary
from orchestrator.report.output.render import render_html
from orchestrator.report.output.write import write_report
from orchestrator.report.page.view import build_view

VOID = {"meta", "br", "link", "img", "input", "hr"}


@dataclass
class Page(HTMLParser):
    """Tags with their attributes, text outside scripts and styles, and whether all tags close in order."""

    tags: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    data: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}")
        if tag in self.open:
            while self.open and self.open.pop() != tag:
                pass

    def handle_data(self, data: str) -> None:
        inside = self.open[-1] if self.open else ""
        if inside == "script":
            self.data += data
        elif inside != "style":
            self.text.append(data)


def parse(html: str) -> Page:
    page = Page()
    page.feed(html)
    page.close()
    return page


@pytest.fixture(params=["full", "empty", "bare", "interrupted"])
def page(request: pytest.FixtureRequest) -> Page:
    report: Report = request.getfixturevalue(request.param)
    return parse(report.html)


def test_tags_close_in_order(page: Page) -> None:
    assert (page.faults, page.open) == ([], [])


def test_ids_are_unique_and_references_lead_somewhere(page: Page) -> None:
    ids = Counter(attributes["id"] for _, attributes in page.tags if "id" in attributes)
    assert [name for name, count in ids.items() if count > 1] == []
    wanted = set()
    for _, attributes in page.tags:
        wanted |= {attributes["href"][1:]} if attributes.get("href", "").startswith("#") else set()
        wanted |= set(attributes.get("aria-labelledby", "").split())
        for value in attributes.values():
            wanted |= set(re.findall(r"url\(#([^)]+)\)", value))
    assert wanted - set(ids) == set()
    assert len(wanted) > 10


def test_nothing_is_fetched(page: Page) -> None:
    policy = next(a["content"] for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none';")
    assert "unsafe-eval" not in policy
    assert "http" not in policy
    for tag, attributes in page.tags:
        assert tag not in ("link", "iframe", "object", "embed", "img", "base", "form")
        for name in ("src", "srcset", "data", "action", "poster", "background"):
            assert name not in attributes
        href = attributes.get("href", "")
        named = re.fullmatch(r"[a-z]+\.(csv|parquet|json|jsonl)", href)
        inside = href.startswith("data:text/csv;charset=utf-8,") and "download" in attributes
        assert href == "" or href[0] == "#" or named or inside
        assert "url(" not in attributes.get("style", "")
        assert not any(name.startswith("on") for name in attributes)


def test_styles_and_figures_name_no_address(full: Report) -> None:
    css = full.html.split("<style>")[1].split("</style>")[0]
    assert "url(" not in css
    assert "@import" not in css
    assert "xmlns" not in full.html
    assert re.findall(r"<svg[^>]*>", full.html)
    assert "#a1b2" not in full.html


def test_one_h1_and_no_level_is_skipped(page: Page) -> None:
    levels = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert levels.count(1) == 1
    assert levels[0] == 1
    assert all(later <= earlier + 1 for earlier, later in pairwise(levels))


def test_figures_have_names_captions_and_tables(full: Report) -> None:
    page = parse(full.html)
    figures = sum(tag == "figure" for tag, _ in page.tags)
    drawn = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert figures == len(drawn) == sum(tag == "figcaption" for tag, _ in page.tags)
    assert figures >= 20
    assert all(attributes["role"] == "img" for attributes in drawn)
    tables = sum(tag == "table" for tag, _ in page.tags)
    assert tables == sum(tag == "caption" for tag, _ in page.tags)
    assert tables > figures
    heads = [attributes for tag, attributes in page.tags if tag == "th"]
    assert all(attributes.get("scope") in ("col", "row") for attributes in heads)


def test_the_language_and_the_main_landmarks_are_set(page: Page) -> None:
    assert dict(page.tags)["html"] == {"lang": "en"}
    assert [tag for tag, _ in page.tags if tag in ("main", "header", "footer", "nav")] == [
        "header",
        "nav",
        "main",
        "footer",
    ]


def test_data_inside_the_page_is_json_with_every_raw_value(full: Report) -> None:
    match = re.search(r'<script type="application/json" id="data" data-whole>(.*?)</script>', full.html, re.DOTALL)
    assert match
    data = json.loads(match.group(1))
    assert data["summary_version"] == 1
    cell = next(one for one in data["cells"] if one["id"] == "mlx-lm/tiny/draft-k4/greedy/short")
    assert len(cell["values"]["e2e_latency"]["values"]) == 12
    assert cell["comparisons"]["e2e_latency"]["outcome"] == "lower"


def test_hostile_logs_are_harmless(full: Report) -> None:
    page = parse(full.html)
    text = "".join(page.text)
    assert "<script>alert('x')</script>" in text  # as text, not as a tag
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert "{{ 7*7 }}" in text
    assert "red  bell␇ nul␀ " in text
    for char in "\x00\x07\x1b\u202e\u202c":
        assert char not in full.html
    assert "⟨U+202E⟩gnp.exe⟨U+202C⟩" in text


HOSTILE = [
    "</style><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$\\frac{1}{2}$ & <b>bold</b>",
    "오늘 날씨가 좋아서",
    "a'; rm -rf / #",
    "x\u202ey\x1b[31mz\x00",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_and_answers_are_harmless(name: str, tmp_path: Path) -> None:
    block = run_builder.full_blocks()[5]
    engine = dataclasses.replace(block.engine, name=name)
    cell = dataclasses.replace(
        block.cells[0], method=dataclasses.replace(block.cells[0].method, name=name), text=name * 3
    )
    failing = dataclasses.replace(
        cell, method=dataclasses.replace(cell.method, name=name + "2"), fate=run_builder.Status.FAILED, reason=name
    )
    block = dataclasses.replace(block, engine=engine, cells=(cell, failing))
    path = run_builder.write_run(tmp_path / "run", (block,), {name: run_builder.IDENTITIES["ds4"]})
    html = write_report(path).read_text(encoding="utf-8")
    page = parse(html)
    assert (page.faults, page.open) == ([], [])
    assert sum(tag == "script" for tag, _ in page.tags) == 2
    assert all(tag not in ("img", "b1") for tag, _ in page.tags)
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\u202a-\u202e\u2066-\u2069]", html)
    summary, figures = ((path / one).read_text(encoding="utf-8") for one in ("summary.json", "metrics.csv"))
    assert not re.search("[\u202a-\u202e\u2066-\u2069]", summary + figures)
    assert any(cell["id"].startswith(name) for cell in json.loads(summary)["cells"])
    commands = [text for text in page.text if text.startswith("specmatrix rerun ")]
    assert commands
    if name.isprintable():
        assert shlex.split(commands[-1])[2] == f"{name}/tiny/{name}2/greedy/short"


def test_a_huge_line_is_bounded(tmp_path: Path) -> None:
    block = run_builder.full_blocks()[1]
    huge = dataclasses.replace(block.cells[1], log=("x" * 5_000_000, "last"), reason="y" * 5_000_000)
    block = dataclasses.replace(block, cells=(huge,), sets=1)
    path = run_builder.write_run(tmp_path / "run", (block,), run_builder.IDENTITIES)
    html = write_report(path).read_text(encoding="utf-8")
    assert "last\n" in html
    assert html.count("x" * 300) >= 1
    visible = html.split('<script type="application/json"')[0]
    assert len(visible) < 300_000


def test_the_same_records_give_the_same_bytes(full: Report, tmp_path: Path) -> None:
    copy = tmp_path / "full"
    shutil.copytree(full.path, copy)
    first = {
        name: (write_report(copy).parent / name).read_bytes() for name in ("report.html", "summary.json", "metrics.csv")
    }
    write_report(copy)
    assert {name: (copy / name).read_bytes() for name in first} == first
    assert first["report.html"].decode() == full.html == render_html(full.view)


def test_the_files_beside_the_page_are_there_and_no_draft_is_left(full: Report, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(full.path, copy)
    page = write_report(copy)
    assert page == copy / "report.html"
    assert sorted(entry.name for entry in copy.iterdir()) == [
        "categories.csv", "journal.jsonl", "metrics.csv", "metrics.parquet", "report.html", "run.json", "summary.json",
    ]  # fmt: skip
    links = {
        a["href"]
        for t, a in parse(page.read_text(encoding="utf-8")).tags
        if t == "a" and not a["href"].startswith(("#", "data:"))
    }
    assert links == {"categories.csv", "metrics.csv", "metrics.parquet", "summary.json", "journal.jsonl", "run.json"}
    assert json.loads((copy / "summary.json").read_text(encoding="utf-8"))["validity"] == "INCONCLUSIVE"


def test_the_figures_inside_the_page_are_csv_with_every_cell_and_no_formula(
    full: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that holds every value as JSON makes the CSV of it with its script; a larger one has it as an address."""
    assert not any(a["href"].startswith("data:") for t, a in parse(full.html).tags if t == "a")
    monkeypatch.setattr(summary, "WHOLE_CELLS", 1)
    page = render_html(build_view(full.analysis, full.header, full.index))
    address = next(a["href"] for t, a in parse(page).tags if t == "a" and a["href"].startswith("data:"))
    rows = list(csv.DictReader(io.StringIO(unquote(address.split(",", 1)[1]))))
    assert {row["cell"] for row in rows} == {cell.id for cell in full.analysis.cells}
    one = next(r for r in rows if (r["cell"], r["metric"]) == ("mlx-lm/tiny/draft-k4/greedy/short", "e2e_latency"))
    cell = full.analysis.by_id(one["cell"])
    assert float(one["median"]) == pytest.approx(cell.summaries["e2e_latency"].median)
    assert (one["unit"], one["n"], one["outcome"], one["absent"]) == ("s", "12", "lower", "")
    absent = [row for row in rows if row["absent"]]
    assert absent
    assert all(row["median"] == "" for row in absent)
    block = run_builder.full_blocks()[5]
    block = dataclasses.replace(block, engine=dataclasses.replace(block.engine, name="=cmd()"))
    path = run_builder.write_run(tmp_path / "run", (block,), {"=cmd()": run_builder.IDENTITIES["ds4"]})
    html = write_report(path).read_text(encoding="utf-8")
    told = unquote(next(a["href"] for t, a in parse(html).tags if t == "a" and a["href"].startswith("data:")))
    assert "\n'=cmd()/" in told
    assert "\n=cmd()" not in told


def test_rows_carry_the_numbers_they_are_sorted_by(full: Report) -> None:
    page = parse(full.html)
    tables = [a["data-sortable"] for t, a in page.tags if t == "table" and "data-sortable" in a]
    assert len(tables) == sum(len(group.panels) for group in full.view.groups)
    keys = [float(a["data-s"]) for t, a in page.tags if t == "td" and "data-s" in a]
    assert len(keys) > 40
    assert sum("data-row" in a for t, a in page.tags if t == "tr") > len(tables)

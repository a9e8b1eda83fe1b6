"""The page in Debian's Chromium: no accessibility violation, no script of others, no fetch, and its own script at work.

Needs Chromium and axe-core (``SPECMATRIX_AXE`` names axe.min.js). Where they are missing the tests skip, unless
``SPECMATRIX_REQUIRE_BROWSER=1`` says that they must run.
"""

from __future__ import annotations

import base64
import csv
import dataclasses
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest
import run_builder
from report_runs import Report

from orchestrator.report.compare.runs import compare_runs
from orchestrator.report.compare.view import compare_view
from orchestrator.report.compare.write import compare_html
from orchestrator.report.data.export import COLUMNS, figures_csv
from orchestrator.report.language.words import Words
from orchestrator.report.output.write import write_report
from orchestrator.serve import page
from orchestrator.serve.server import make_site
from orchestrator.store.directory import RunDirectory
from orchestrator.store.lock import Holder
from orchestrator.store.running import Running

pytestmark = pytest.mark.browser

SETTLE = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
TAGS = '{type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}'
AXE = """axe.run(document, {resultTypes: ["violations"], runOnly: TAGS}).then((found) =>
[found.violations.map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.target.join(" ") + ": " +
node.failureSummary)]), found.passes.length])"""


def required(what: str) -> None:
    if os.environ.get("SPECMATRIX_REQUIRE_BROWSER") == "1":
        pytest.fail(f"{what}, and SPECMATRIX_REQUIRE_BROWSER=1 wants the browser tests")
    pytest.skip(what)


@pytest.fixture(scope="module")
def browser() -> Iterator[chromium.Chromium]:
    path = chromium.find()
    if path is None:
        required("no Chromium was found")
    with chromium.Chromium(str(path)) as found:
        yield found


@pytest.fixture(scope="module")
def axe() -> str:
    path = Path(os.environ.get("SPECMATRIX_AXE", ""))
    if not path.is_file():
        required("axe-core was not found: SPECMATRIX_AXE must name axe.min.js")
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def pages(full: Report, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The full run in both languages, with memory samples beside its sessions."""
    found = {}
    for language in ("en", "ko"):
        path = run_builder.full_run(tmp_path_factory.mktemp("pages") / language)
        samples = "".join(f'{{"t_s": {n / 5}, "rss_bytes": {90_000_000 + n * 10_000}}}\\n' for n in range(30))
        for folder in {session.folder for cell in full.analysis.cells for session in cell.state.sessions}:
            (path / folder).mkdir(parents=True, exist_ok=True)
            (path / folder / "memory.jsonl").write_text(samples.replace("\\n", "\n"), encoding="utf-8")
        found[language] = write_report(path, language)
    return found


@pytest.fixture(scope="module")
def others(full: Report, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The other pages by name and language: two runs compared, and what ``serve`` answers."""
    folder = tmp_path_factory.mktemp("others")
    later = run_builder.write_run(
        folder / "later", tuple(dataclasses.replace(block, sets=5) for block in run_builder.full_blocks()[:4]),
        {**run_builder.IDENTITIES, "mlx-lm": dataclasses.replace(run_builder.IDENTITIES["mlx-lm"], version="0.33.0")},
    )  # fmt: skip
    compared = compare_runs(full.path, later)
    found = {}
    for language in ("en", "ko"):
        words = Words(language)
        site = make_site(RunDirectory.open(full.path), 4711, None, language)
        shot, _, tag = site.look()
        holder, cell = Holder(7, "2026-11-29T09:00:00.000Z"), shot.cells[2].id
        now = Running(7, cell, 2, 1, 4, 6, "2026-11-29T09:03:00.000Z")
        moving = dataclasses.replace(shot, holder=holder, running=now, left_s=75.0)
        pages = {
            "compare": compare_html(compare_view(compared, words), words),
            "serve": page.page_html(page.live_view(shot, None, full.path, words), site.title, tag, words),
            "running": page.page_html(page.live_view(moving, None, full.path, words), site.title, tag, words),
            "confirm": page.confirm_html(cell, "token", site.title, words),
            "refused": page.refused_html("the run is in use by process 7", site.title, words),
        }
        for name, html in pages.items():
            found[f"{name}-{language}"] = folder / f"{name}-{language}.html"
            found[f"{name}-{language}"].write_text(html, encoding="utf-8")
    return found


def judged(browser: chromium.Chromium, axe: str, path: Path, language: str, *, dark: bool, width: int = 1280) -> int:
    """How many of axe's rules the page passes; none may be violated."""
    browser.show(width=width, dark=dark)
    browser.open(path)
    assert browser.ask("document.documentElement.lang") == language
    assert browser.ask('matchMedia("(prefers-color-scheme: dark)").matches') == dark
    # Folded and far parts are judged too.
    browser.ask('document.querySelectorAll("details").forEach((one) => { one.open = true; })')
    browser.ask('document.body.append(Object.assign(document.createElement("style"), {textContent: '
                '".panel,.block,section{content-visibility:visible!important}"}))')  # fmt: skip
    browser.ask(SETTLE)
    browser.ask(axe + ";0")
    violations, passes = browser.ask(AXE.replace("TAGS", TAGS))
    assert violations == [], "\n".join(f"{name}: {nodes}" for name, nodes in violations)
    return int(passes)


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_violation(
    browser: chromium.Chromium, axe: str, pages: dict[str, Path], language: str, dark: bool
) -> None:
    assert judged(browser, axe, pages[language], language, dark=dark) >= 20


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_violation_on_the_other_pages(
    browser: chromium.Chromium, axe: str, others: dict[str, Path], language: str, dark: bool
) -> None:
    mine = {name: path for name, path in others.items() if name.endswith(language)}
    assert len(mine) == 5
    for name, path in mine.items():
        assert judged(browser, axe, path, language, dark=dark) >= 10, name


def test_axe_would_find_what_is_wrong(
    browser: chromium.Chromium, axe: str, others: dict[str, Path], tmp_path: Path
) -> None:
    """Without this the tests above could not fail: a page is broken on purpose, its colours in the dark alone."""
    html = others["serve-en"].read_text(encoding="utf-8")
    poor = "<style>@media (prefers-color-scheme:dark){.mute{color:#333!important}}</style></head>"
    page_ = tmp_path / "poor.html"
    page_.write_text(html.replace("</head>", poor, 1), encoding="utf-8")
    assert judged(browser, axe, page_, "en", dark=False) >= 10
    with pytest.raises(AssertionError, match="color-contrast"):
        judged(browser, axe, page_, "en", dark=True)


SMALL = """[...document.querySelectorAll(".tbl .main > a")].map((one) => one.getBoundingClientRect())
  .map((box) => Math.min(box.width, box.height))"""


def test_links_in_tables_are_large_enough_to_hit(browser: chromium.Chromium, axe: str, tmp_path: Path) -> None:
    """Evidence of an answer and the cell behind a figure, with several models and all folds open (WCAG 2.5.8)."""
    blocks = tuple(dataclasses.replace(run_builder.full_blocks()[n], attempts=1) for n in (0, 2))
    large = [dataclasses.replace(one, model=dataclasses.replace(one.model, name="large")) for one in blocks]
    path = run_builder.write_run(tmp_path / "models", (*blocks, *large), run_builder.IDENTITIES)
    made = write_report(path, "en")
    assert judged(browser, axe, made, "en", dark=False, width=1440) >= 20
    for anchor, least in (("#evidence/", 6), ("#cell/", 4)):
        hits = browser.ask(SMALL.replace("> a", f"> a[href^='{anchor}']"))
        assert len(hits) >= least, anchor
        assert min(hits) >= 24, anchor
    assert min(browser.ask(SMALL)) >= 24


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("width", [360, 720, 1440])
def test_nothing_is_wider_than_the_window(
    browser: chromium.Chromium, pages: dict[str, Path], language: str, width: int
) -> None:
    browser.show(width=width, dark=False)
    browser.open(pages[language])
    browser.ask('document.querySelectorAll("details").forEach((one) => { one.open = true; })')
    assert browser.ask("[document.documentElement.scrollWidth, innerWidth]") == [width, width]
    assert browser.complaints() == []


SPILT = """[...document.querySelectorAll("body *")].filter((one) => {
  const style = getComputedStyle(one);
  if (style.visibility === "hidden" || !one.getClientRects().length || one.closest("svg, .skip")) return false;
  const cut = ["hidden", "clip"].includes(style.overflowX) && one.scrollWidth > one.clientWidth + 1;
  if (cut && one.textContent.trim()) return true;
  for (let above = one.parentElement; above; above = above.parentElement)
    if (["auto", "scroll"].includes(getComputedStyle(above).overflowX)) return false;
  return one.getBoundingClientRect().right > innerWidth + 1;
}).map((one) => one.outerHTML.slice(0, 120))"""
"""What is cut off, or stands beyond the window where nobody can scroll to it."""


@pytest.mark.parametrize("language", ["en", "ko"])
def test_at_200_percent_nothing_is_cut_and_only_tables_scroll_sideways(
    browser: chromium.Chromium, pages: dict[str, Path], others: dict[str, Path], language: str
) -> None:
    """A window of 1440 × 900 at 200 %: half as many CSS pixels, each twice as large."""
    browser.show(width=720, height=450, dark=False, scale=2.0)
    for path in (pages[language], others[f"compare-{language}"], others[f"running-{language}"]):
        browser.open(path)
        browser.ask('document.querySelectorAll("details").forEach((one) => { one.open = true; })')
        browser.ask(SETTLE)
        assert browser.ask("[document.documentElement.scrollWidth, innerWidth, devicePixelRatio]") == [720, 720, 2]
        assert browser.ask(SPILT) == [], path.name
        # What scrolls by itself can be reached with the keyboard.
        assert (
            browser.ask("""[...document.querySelectorAll(".tbl, .tokens, pre")].filter((one) =>
            one.scrollWidth > one.clientWidth + 1 && one.tabIndex < 0).length""")
            == 0
        )
    browser.show(width=1280, dark=False)


A4 = 718
"""CSS pixels between the margins of a page of A4."""
PAPER = "[document.body, ...document.querySelectorAll('.card, td, th, pre')].map((one) => getComputedStyle(one))"


@pytest.mark.parametrize("language", ["en", "ko"])
def test_on_paper_everything_is_there_in_dark_ink_on_white_and_no_table_is_cut(
    browser: chromium.Chromium, pages: dict[str, Path], language: str
) -> None:
    browser.show(width=A4, dark=True)
    browser.open(pages[language])
    dark = browser.ask("getComputedStyle(document.body).backgroundColor")
    theme = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.call("Emulation.setEmulatedMedia", media="print", features=theme)
    try:
        browser.ask(SETTLE)
        assert browser.ask("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)" != dark
        inks = browser.ask(f"[...new Set({PAPER}.map((one) => one.color))]")
        assert inks
        assert all(sum(map(int, re.findall(r"\d+", ink)[:3])) < 3 * 128 for ink in inks), inks
        assert browser.ask("[document.documentElement.scrollWidth, innerWidth]") == [A4, A4]
        assert (
            browser.ask("""[...document.querySelectorAll("table")].filter((one) =>
            one.getBoundingClientRect().right > one.parentElement.getBoundingClientRect().right + 1)
            .map((one) => one.textContent.trim().slice(0, 60))""")
            == []
        )
        assert browser.ask(SPILT) == []
        folded = 'document.querySelectorAll("details:not([open])")'
        assert browser.ask(f"{folded}.length") > 20
        assert browser.ask(f"[...{folded}].filter((one) => one.lastElementChild.getBoundingClientRect().height === 0)"
                           ".length") == 0  # fmt: skip
        for hidden in (".top", ".tools", ".skip", "button"):
            assert browser.ask(f'[...document.querySelectorAll("{hidden}")].every((one) => '
                               "one.getClientRects().length === 0)"), hidden  # fmt: skip
        made = browser.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)
    finally:
        browser.call("Emulation.setEmulatedMedia", media="", features=[])
        browser.show(width=1280, dark=False)
    paper = base64.b64decode(made["data"])
    assert paper.startswith(b"%PDF")
    assert paper.count(b"/Type /Page\n") > 10


def test_the_first_key_leads_to_the_answer_and_every_stop_is_visible(
    browser: chromium.Chromium, pages: dict[str, Path]
) -> None:
    browser.show(width=1280, dark=False)
    browser.open(pages["en"])
    browser.press("Tab", 9)
    assert browser.ask("document.activeElement.className") == "skip"
    assert browser.ask("document.activeElement.getBoundingClientRect().left") >= 0
    for _ in range(12):
        browser.press("Tab", 9)
        style = browser.ask("getComputedStyle(document.activeElement).outlineStyle")
        assert style == "solid", browser.ask("document.activeElement.outerHTML")


def test_sorting_filtering_and_the_address_hold_together(browser: chromium.Chromium, pages: dict[str, Path]) -> None:
    browser.show(width=1440, dark=False)
    browser.open(pages["en"])
    order = '[...document.querySelectorAll("table[data-sortable] tbody")][0]'
    keys = f"[...{order}.rows].filter((row) => 'row' in row.dataset).map((row) => row.cells[1].dataset.s ?? '')"
    before = browser.ask(keys)
    head = 'document.querySelector("table[data-sortable] thead th:nth-child(2)")'
    browser.ask(f'{head}.querySelector("button.sort").click()')
    assert browser.ask(f'{head}.getAttribute("aria-sort")') == "ascending"
    known = [float(one) for one in browser.ask(keys) if one]
    assert known == sorted(known)
    assert len(known) > 2
    assert before != browser.ask(keys)
    assert browser.ask(f"'base' === {order}.rows[0].className")
    browser.ask('(() => { const input = document.querySelector("#filter"); input.value = "mlx-lm draft"; '
                'input.dispatchEvent(new Event("input")); })()')  # fmt: skip
    shown = browser.ask('[...document.querySelectorAll("[data-row]")].filter((row) => !row.hidden).length')
    everything = browser.ask('document.querySelectorAll("[data-row]").length')
    assert 0 < shown < everything
    assert browser.ask('document.querySelector("#filtered").textContent').endswith(f": {shown}")
    address = browser.ask("location.hash")
    assert address.startswith("#~")
    browser.open(pages["en"], fragment=address)
    assert browser.ask('[...document.querySelectorAll("[data-row]")].filter((row) => !row.hidden).length') == shown
    assert browser.ask(f'{head}.getAttribute("aria-sort")') == "ascending"
    for _ in range(2):
        browser.ask(f'{head}.querySelector("button.sort").click()')
    assert browser.ask(keys) == before
    assert browser.ask(f'{head}.getAttribute("aria-sort")') == "none"
    assert browser.complaints() == []


@pytest.mark.parametrize(
    "told", ["%25E0:1:ascending", "{id}:999:ascending", "{id}:x:ascending", "{id}:1:sideways", ":::"]
)
def test_an_address_that_names_no_order_changes_nothing(
    browser: chromium.Chromium, pages: dict[str, Path], told: str
) -> None:
    browser.show(width=1440, dark=False)
    browser.open(pages["en"])
    order = '[...document.querySelector("table[data-sortable]").tBodies[0].rows].map((row) => row.id)'
    heads = '[...document.querySelectorAll("table[data-sortable] th")].map((one) => one.getAttribute("aria-sort"))'
    before, unsorted = browser.ask(order), browser.ask(heads)
    name = browser.ask('encodeURIComponent(encodeURIComponent('
                       'document.querySelector("table[data-sortable]").dataset.sortable))')  # fmt: skip
    browser.open(pages["en"], fragment="#~s=" + told.format(id=name))
    assert browser.ask(order) == before
    assert browser.ask(heads) == unsorted
    # What stands behind it in the script still runs.
    assert browser.ask('document.querySelectorAll("#downloads button").length') == 3
    assert browser.complaints() == []


def test_a_name_in_the_raw_values_computes_nothing(browser: chromium.Chromium, pages: dict[str, Path]) -> None:
    browser.open(pages["en"])
    for text in ("=1", "+1", "-1", "@a", "\t=1", "\r=1", "\n=1", "\uff1d1"):
        assert browser.ask(f"cell({json.dumps(text)})") == f'"\'{text}"'
    assert browser.ask("cell('a=\"1\"')") == '"a=""1"""'


def test_the_name_of_a_model_leaves_its_rows_and_its_baselines_alone(
    browser: chromium.Chromium, tmp_path: Path
) -> None:
    gain = dataclasses.replace(run_builder.full_blocks()[2], attempts=1)
    other = dataclasses.replace(gain, model=dataclasses.replace(gain.model, name="large"))
    page_ = write_report(run_builder.write_run(tmp_path / "two", (gain, other), run_builder.IDENTITIES), "en")
    rows = '[...document.querySelector("table[data-sortable]").tBodies[0].rows]'
    shown = f"{rows}.filter((row) => !row.hidden).map((row) => row.cells[0].textContent)"
    browser.show(width=1440, dark=False)
    browser.open(page_)
    assert len(browser.ask(shown)) == 6
    browser.open(page_, fragment="#~q=large")
    left = browser.ask(shown)
    assert len(left) == 3
    assert all("large" in text for text in left)
    # A baseline stays beside each row that is left, although it does not hold the word itself.
    browser.open(page_, fragment="#~q=large+draft-k4")
    assert [row.split("·")[0].strip() for row in browser.ask(shown)] == ["mlx-lmnone", "draft-k4mlx-lm"]
    assert browser.complaints() == []


KEPT = """new Promise((done) => {
  URL.createObjectURL = (blob) => { blob.text().then(done); return "blob:kept"; };
  URL.revokeObjectURL = () => {};
  HTMLAnchorElement.prototype.click = () => {};
  [...document.querySelectorAll("#downloads button")].find((one) => one.textContent === "NAME").click();
})"""


def test_the_figures_come_out_of_the_page_as_csv(
    browser: chromium.Chromium, pages: dict[str, Path], full: Report
) -> None:
    browser.open(pages["en"])
    made = list(csv.reader(io.StringIO(browser.ask(KEPT.replace("NAME", "figures.csv")))))
    wanted = list(csv.reader(io.StringIO(figures_csv(full.analysis))))
    assert made[0] == wanted[0] == list(COLUMNS)
    assert len(made) == len(wanted) > 500
    for one, other in zip(made[1:], wanted[1:], strict=True):
        for name, told, meant in zip(COLUMNS, one, other, strict=True):
            if name in ("median", "mad", "ratio", "low", "high") and meant:
                assert float(told) == pytest.approx(float(meant), rel=1e-5), (one, other)
            else:
                assert told == meant, (name, one, other)
    assert browser.complaints() == []


def test_without_scripts_everything_is_there(browser: chromium.Chromium, pages: dict[str, Path]) -> None:
    browser.show(width=1280, dark=False)
    browser.open(pages["en"])
    text = """(() => { const main = document.querySelector("main").cloneNode(true);
        main.querySelectorAll("button, output").forEach((one) => one.remove());
        return main.textContent.replace(/\\s+/g, " ").trim(); })()"""
    whole = browser.ask(text)
    browser.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        browser.open(pages["en"])
    finally:
        browser.call("Emulation.setScriptExecutionDisabled", value=False)
    assert len(whole) > 10_000
    assert browser.ask(text) == whole
    assert browser.ask('document.querySelectorAll("button").length') == 0
    assert browser.ask('document.querySelector("#tools").hidden')


EVIL = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=2</script>",
    '"><img src=x onerror="window.pwned=3">',
    "<svg onload=window.pwned=4>",
    "javascript:window.pwned=5",
    "{{ 7*7 }}{% raw %}",
    "\x1b]8;;http://evil\x1b\\link\x1b[31mred",
    "\u202etxt.exe\u2066",
    "nul\x00bell\x07",
    "]]>--!><!--",
)


def test_hostile_text_runs_nothing_and_fetches_nothing(browser: chromium.Chromium, tmp_path: Path) -> None:
    evil = "".join(EVIL)
    block = run_builder.full_blocks()[5]
    engine = dataclasses.replace(block.engine, name=EVIL[2])
    first = block.cells[0]
    told = dataclasses.replace(first, method=dataclasses.replace(first.method, name=EVIL[0]), text=evil * 20)
    failing = dataclasses.replace(
        first, method=dataclasses.replace(first.method, name=evil), fate=run_builder.Status.FAILED, reason=evil,
        remedy=EVIL[1], log=(*EVIL, "x" * 5_000_000 + EVIL[1]),
    )  # fmt: skip
    block = dataclasses.replace(block, engine=engine, cells=(told, failing))
    identity = dataclasses.replace(run_builder.IDENTITIES["ds4"], version=evil, facts={"evil": evil})
    path = run_builder.write_run(
        tmp_path / "run", (block,), {EVIL[2]: identity}, notes=(evil,), host={"cpu": evil, EVIL[1]: evil}
    )
    browser.show(width=1280, dark=False)
    for language in ("en", "ko"):
        made = write_report(path, language)
        assert made.stat().st_size < 3_000_000
        browser.open(made)
        browser.ask('document.querySelectorAll("details").forEach((one) => { one.open = true; })')
        browser.ask(SETTLE)
        assert browser.ask("window.pwned === undefined")
        assert browser.ask('document.querySelectorAll("script").length') == 2
        assert browser.ask('document.querySelectorAll("img, iframe, object, embed, [onload], [onerror]").length') == 0
        assert browser.ask("[...document.links].every((one) => /^(file|data:text.csv)/.test(one.href))")
        assert browser.ask('document.querySelector("#failing").textContent.includes("<script>window.pwned=1")')
        assert browser.complaints() == []


def test_the_policy_would_stop_a_script_that_got_in(browser: chromium.Chromium, full: Report, tmp_path: Path) -> None:
    """Without this the test above could not fail: the page is broken on purpose."""
    broken = full.html.replace("</main>", "<script>window.pwned=1</script><img src='https://evil.invalid/x'></main>", 1)
    assert broken != full.html
    spoilt = tmp_path / "broken.html"
    spoilt.write_text(broken, encoding="utf-8")
    browser.open(spoilt)
    assert browser.ask("window.pwned === undefined")
    complaints: list[Any] = browser.complaints()
    assert any("Content Security Policy" in one for one in complaints)

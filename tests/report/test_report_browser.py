"""The page in Debian's Chromium: no accessibility violation, no script of others, no fetch, and its own script at work.

Needs Chromium and axe-core (``SPECMATRIX_AXE`` names axe.min.js). Where they are missing the tests skip, unless
``SPECMATRIX_REQUIRE_BROWSER=1`` says that they must run.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import pytest
import run_builder
from report_runs import Report

from orchestrator.report.write import write_report

pytestmark = pytest.mark.browser

SETTLE = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
TAGS = '{type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}'
COLOURS = '{type: "rule", values: ["color-contrast"]}'
"""In the dark only the colours differ; the rest was judged in the light, and a run over the whole page is dear."""
AXE = """axe.run(document, {resultTypes: ["violations"], runOnly: RULES}).then((found) =>
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


@pytest.mark.parametrize("language", ["en", "ko"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_no_violation(
    browser: chromium.Chromium, axe: str, pages: dict[str, Path], language: str, dark: bool
) -> None:
    browser.show(width=1280, dark=dark)
    browser.open(pages[language])
    assert browser.ask("document.documentElement.lang") == language
    # Folded and far parts are judged too.
    browser.ask('document.querySelectorAll("details").forEach((one) => { one.open = true; })')
    browser.ask('document.body.append(Object.assign(document.createElement("style"), {textContent: '
                '".panel,.block,section{content-visibility:visible!important}"}))')  # fmt: skip
    browser.ask(SETTLE)
    browser.ask(axe + ";0")
    violations, passes = browser.ask(AXE.replace("RULES", COLOURS if dark else TAGS))
    assert violations == [], "\n".join(f"{name}: {nodes}" for name, nodes in violations)
    assert passes >= (1 if dark else 20)


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
        page = write_report(path, language)
        assert page.stat().st_size < 3_000_000
        browser.open(page)
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
    page = tmp_path / "broken.html"
    page.write_text(broken, encoding="utf-8")
    browser.open(page)
    assert browser.ask("window.pwned === undefined")
    complaints: list[Any] = browser.complaints()
    assert any("Content Security Policy" in one for one in complaints)

"""The whole page in Korean: nothing missing, nothing fuzzy, and no English but names, units and recorded text."""

from __future__ import annotations

import ast
import dataclasses
import importlib.util
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
import run_builder
from report_runs import Report

from orchestrator.report.compare.runs import compare_runs
from orchestrator.report.compare.view import compare_view
from orchestrator.report.compare.write import compare_html
from orchestrator.report.language.recognise import PHRASES, recognise
from orchestrator.report.language.words import LANGUAGES, Words
from orchestrator.report.output.render import render_html
from orchestrator.report.page.view import build_view
from orchestrator.serve import page
from orchestrator.serve.server import make_site
from orchestrator.store.directory import RunDirectory
from orchestrator.store.lock import Holder
from orchestrator.store.running import Running

ROOT = Path(__file__).resolve().parents[2]


def script() -> object:
    pytest.importorskip("babel")
    path = ROOT / "scripts" / "update_catalogues.py"
    spec = importlib.util.spec_from_file_location("update_catalogues", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_catalogues_are_complete_and_compiled(language: str) -> None:
    update = script()
    found = update.catalogue(language)  # type: ignore[attr-defined]
    assert len(found) > 500
    assert update.missing(found) == []  # type: ignore[attr-defined]
    for path, data in update.files(found, language).items():  # type: ignore[attr-defined]
        assert path.read_bytes() == data, f"{path.name}: run python scripts/update_catalogues.py"


@pytest.mark.parametrize("language", [one for one in LANGUAGES if one != "en"])
def test_translations_have_the_places_and_the_marks_of_their_message(language: str) -> None:
    for one in script().catalogue(language):  # type: ignore[attr-defined]
        if not one.id:
            continue
        messages = one.id if isinstance(one.id, tuple) else (one.id,)
        for string in one.string if isinstance(one.string, tuple) else (one.string,):
            assert places(string) == places(messages[-1]), messages
            assert string.count("**") == messages[-1].count("**"), messages
            assert (string[0] == " ", string[-1] == " ") == (messages[-1][0] == " ", messages[-1][-1] == " "), messages


def places(text: str) -> set[str]:
    return set(re.findall(r"\{(\w*)\}", text))


BUILT_HERE = {
    "speedup.py": "the report words a decomposition from its fields",
    "groups.py": "the report shows the claim and the checks, not the sentence that joins them",
}


def test_every_sentence_of_statistics_and_checks_has_a_form() -> None:
    unknown = []
    for folder in ("stats", "exactness"):
        for path in sorted((ROOT / "orchestrator" / folder).rglob("*.py")):
            if path.name in BUILT_HERE:
                continue
            told = sentences(ast.parse(path.read_text(encoding="utf-8")))
            unknown += [f"{path.name}: {text}" for text in told if not known_form(text)]
    assert unknown == []


def sentences(tree: ast.Module) -> list[str]:
    """String literals of several words that are no docstring and no error, f-strings with their places as 0."""
    skipped: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise | ast.Assert):
            skipped |= {id(inner) for inner in ast.walk(node)}
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            skipped.add(id(node.value))
    found = []
    for node in ast.walk(tree):
        if id(node) in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            skipped |= {id(inner) for inner in ast.walk(node)}
            parts = ["0" if isinstance(part, ast.FormattedValue) else str(part.value) for part in node.values]  # type: ignore[attr-defined]
            found.append("".join(parts).strip("; .,("))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
    return [text for text in dict.fromkeys(found) if text.count(" ") > 1 and len(re.findall("[a-z]{2,}", text)) > 2]


def known_form(text: str) -> bool:
    """Whether a form fits the literal: as it is, as the rest of a joined sentence, or as a piece of a known whole."""
    text = text.removeprefix("0; ").removesuffix("0") or text
    tried = (text, text.replace("0", "[0, 0]"))
    return any(recognise(one, PHRASES) for one in tried) or Words("ko").said(text) != text or part_of_a_form(text)


def part_of_a_form(text: str) -> bool:
    """Whether the literal is a piece that a sentence is put together from, and the whole has a form."""
    pattern = re.compile(re.escape(text).replace("0", r"(?:0|\{\w+\}|\w+)"))
    return any(pattern.search(phrase) for phrase in PHRASES)


class Visible(HTMLParser):
    """Everything a reader meets: text, titles, labels and what the script says."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.inside: list[str] = []
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = ("title", "aria-label", "placeholder", "data-copy", "data-copied", "data-sort", "data-shown")
        self.found += [value for name, value in attrs if name in names and value]
        if tag not in ("meta", "br", "input", "hr"):
            self.inside.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        # Code and logs are quoted as they are; figures hold names, numbers and units.
        if not set(self.inside) & {"script", "style", "pre", "code", "svg"} and data.strip():
            self.found.append(data.strip())


UNITS = {"ms", "MB", "GB", "kB", "tok", "MAD", "TTFT", "nat", "UTC", "CPU", "GPU", "sha", "JSON", "CSV", "csv", "json"}
TERMS = {
    "specmatrix", "draft", "target", "Decode", "decode", "Draft", "Speculative", "decoding", "prefill", "Prefill", "warm",
    "up", "greedy", "seed", "temperature", "matrix", "rerun", "failed", "MTP", "mtp", "EOS", "Student", "Holm", "swap",
    "macOS", "Linux", "normal", "warning", "critical", "PSI", "full", "max", "MLX", "LM", "length", "stop", "eos",
    "error", "id", "ngram", "Engine", "true",
}  # fmt: skip


def english(text: str, known: set[str]) -> list[str]:
    """Runs of two English words or more that are neither terms, units nor names of the run."""
    words = re.findall(r"[A-Za-z][A-Za-z'_.-]*", text)
    return [
        word
        for word in words
        if word.strip(".'-_") not in known and len(word) > 2 and not re.search("[a-z][._][a-z]", word)
    ]


@pytest.fixture(scope="module")
def korean(full: Report) -> str:
    words = Words("ko")
    return render_html(build_view(full.analysis, full.header, full.index, "ko", words, full.path), words)


def test_a_korean_page_has_no_english_sentence(full: Report, korean: str) -> None:
    seen = Visible()
    seen.feed(korean)
    names = {part for cell in full.analysis.cells for part in re.findall(r"[A-Za-z][A-Za-z'_.-]*", cell.id)}
    recorded = " ".join(recorded_texts(full))
    known = UNITS | TERMS | names
    strange = []
    for text in dict.fromkeys(seen.found):
        lone = [word for word in english(text, known) if word not in recorded]
        if len(lone) > 1:
            strange.append((text[:120], lone[:6]))
    assert strange == []
    assert len(seen.found) > 1500


class Quotes(HTMLParser):
    """Text by whether it is marked as English; what is code, drawn or from a log is neither."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.inside: list[tuple[str, bool]] = []
        self.quoted: list[str] = []
        self.own: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "input", "hr"):
            self.inside.append((tag, dict(attrs).get("lang") == "en"))

    def handle_endtag(self, tag: str) -> None:
        while self.inside and self.inside.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        if {tag for tag, _ in self.inside} & {"script", "style", "pre", "code", "svg", "title"} or not data.strip():
            return
        (self.quoted if any(english for _, english in self.inside) else self.own).append(data.strip())


RUN = re.compile(r"[A-Za-z][a-z']*(?: [a-z][a-z']*){3,}")
"""Four English words in a row."""


def korean_pages(report: Report, folder: Path) -> dict[str, str]:
    """The report, the comparison with a later run, and the pages of ``serve``."""
    words = Words("ko")
    later = run_builder.write_run(
        folder / "later", tuple(dataclasses.replace(block, sets=5) for block in run_builder.full_blocks()),
        run_builder.IDENTITIES | {"mlx-lm": dataclasses.replace(run_builder.IDENTITIES["mlx-lm"], version="0.33.0")},
    )  # fmt: skip
    site = make_site(RunDirectory.open(report.path), 4711, None, "ko")
    shot, view, tag = site.look()
    now = Running(7, shot.cells[2].id, 2, 1, 4, 6, "2026-11-29T09:03:00.000Z")
    moving = dataclasses.replace(shot, holder=Holder(7, "2026-11-29T09:00:00.000Z"), running=now, left_s=75.0)
    refusals = "".join(
        page.refused_html(why, site.title, words)
        for why in ("there is no such cell in this run", "the form comes from another site",
                    "the run is in use by process 7 since 2026-11-29; wait for its end")
    )  # fmt: skip
    return {
        "report": render_html(
            build_view(report.analysis, report.header, report.index, "ko", words, report.path), words
        ),
        "compare": compare_html(compare_view(compare_runs(report.path, later), words), words),
        "serve": page.page_html(view, site.title, tag, words),
        "running": page.page_html(page.live_view(moving, None, report.path, words), site.title, tag, words),
        "confirm": page.confirm_html(shot.cells[2].id, "token", site.title, words),
        "refused": refusals,
    }


def test_what_is_english_on_a_korean_page_is_a_quotation_and_marked_as_one(full: Report, tmp_path: Path) -> None:
    recorded = " ".join(recorded_texts(full))
    quotes = 0
    for name, html in korean_pages(full, tmp_path).items():
        found = Quotes()
        found.feed(html)
        ours = [run[0] for text in found.own for run in RUN.finditer(text) if run[0] not in recorded]
        assert ours == [], name
        for text in found.quoted:
            for run in RUN.finditer(text):
                quotes += 1
                assert run[0] in recorded, f"{name}: ours, and not translated: {text}"
    assert quotes > 8


def test_the_guard_would_find_a_sentence_of_ours(full: Report) -> None:
    found = Quotes()
    found.feed(
        '<p>값</p><p>this is one of ours</p><p lang="en">this is said by them</p><code>this is code of them</code>'
    )
    assert [text for text in found.own if RUN.search(text)] == ["this is one of ours"]
    assert found.quoted == ["this is said by them"]
    assert "this is one of ours" not in " ".join(recorded_texts(full))


def recorded_texts(report: Report) -> list[str]:
    """What engines, adapters, files and the machine said, which is quoted and not translated."""
    found = [str(report.header.host), report.header.command, str(report.index.matrix)]
    for cell in report.analysis.cells:
        state = cell.state
        found += [state.reason, state.remedy, str(state.claim), str(state.settings)]
        for session in (*state.sessions, *state.failed_sessions):
            found += [session.reason, session.remedy, *session.log_tail, session.folder, str(session.conditions)]
        found += [str(item.note) for trial in state.trials for item in trial.observations if item.note]
        found += [str(item.source) for session in state.sessions for item in session.observations]
        found += [text for trial in state.trials for text in (trial.text, trial.prompt_id)]
        found += [text for text, _ in cell.problems]
    return found


def test_the_korean_page_says_what_the_english_one_says(full: Report, korean: str) -> None:
    assert '<html lang="ko">' in korean
    assert "2026년 11월 29일" in korean
    assert "실측 예정" in korean
    assert "해당 없음" in korean
    assert not re.search(r"\d[ \u00a0]%", re.sub(r"<(svg|pre|style|script|code).*?</\1>", "", korean, flags=re.DOTALL))
    count = lambda html, tag: len(re.findall(f"<{tag}[ >]", html))  # noqa: E731
    for tag in ("section", "table", "tr", "td", "figure", "details", "article", "h2", "h3", "dt"):
        assert count(korean, tag) == count(full.html, tag), tag
    numbers = lambda html: sorted(re.findall(r"\d\.\d\d+×", re.sub("<svg.*?</svg>", "", html)))  # noqa: E731
    assert numbers(korean) == numbers(full.html)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("±3.1 %", "±3.1%"),
        ("inside the noise floor of ±4.0 %; ±2.1 %", "잡음 하한 ±4.0% 안; ±2.1%"),
        ("lower if it stood alone, not among 3 on one baseline (Holm p 0.061)",
         "혼자였다면 ‘더 작음’이지만, 한 기준에 셀 3개를 비교하면 아니다 (Holm p 0.061)"),
        ("llama.cpp said: this is its own text", "llama.cpp said: this is its own text"),
        ("tokens are drawn towards the draft: z 6.40, two-sided p at most 3e-08 (Bennett's bound, 0.001 decides); the draft "
         "gives the tokens of 1200 judged places 0.5100 in the mean, 0.4400 is expected",
         "토큰이 draft 쪽으로 끌린다: z 6.40, 양측 p 최대 3e-08 (Bennett 상한, 0.001에서 판정); 심사된 자리 1200곳의 토큰에 "
         "draft가 준 확률은 평균 0.5100, 기댓값은 0.4400"),
        ("the engine ended before it was ready (exit 3): error: no such file", "엔진이 준비되기 전에 끝났다 (exit 3): error: no such file"),
    ],
)  # fmt: skip
def test_finished_sentences_are_recognised_and_others_are_left_alone(text: str, expected: str) -> None:
    assert Words("ko").said(text) == expected
    assert Words("en").said(text) == text


def test_dates_percent_and_minutes_follow_the_language() -> None:
    korean, english_ = Words("ko"), Words("en")
    assert (korean.date("2026-11-09T10:00:00Z"), english_.date("2026-11-09T10:00:00Z")) == (
        "2026년 11월 9일",
        "2026-11-09",
    )
    assert (korean.percent(0.714), english_.percent(0.714)) == ("71%", "71\u00a0%")
    assert korean.set("2 min 05 s") == "2분 05초"
    assert english_.set("2 min 05 s") == "2 min 05\u00a0s"

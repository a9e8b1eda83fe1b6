"""The small parts: visible text, words, digits, ids, and what becomes of a drawn figure."""

from __future__ import annotations

import gettext
import re

import pytest

from orchestrator.report import figures, naming, numerals, svg
from orchestrator.report.untrusted import clean, tail
from orchestrator.report.words import Segment, Words, plain
from orchestrator.schema.result import Estimate


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text · 오늘", "plain text · 오늘"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("a\x00b\x07c\x7f", "a␀b␇c␡"),
        ("one\ntwo\tthree\r", "one⏎two→three␍"),
        ("\u202eabc\u2066", "⟨U+202E⟩abc⟨U+2066⟩"),
        ("zero\u200bwidth\ufeff", "zero⟨U+200B⟩width⟨U+FEFF⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("\x85\x9b31m", "⟨U+0085⟩"),
    ],
)
def test_clean_shows_what_is_there(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_clean_and_tail_are_bounded() -> None:
    assert clean("x" * 500, 100) == "x" * 99 + "…"
    assert len(clean("\x1b[0m" * 100_000 + "end", 100)) <= 100
    assert clean("x" * 100, 100) == "x" * 100
    assert tail(tuple(f"line {n}" for n in range(99))) == tuple(f"line {n}" for n in range(85, 99))
    assert tail(("one\ntwo",)) == ("one", "two")


def test_values_are_never_read_as_messages() -> None:
    words = Words()
    assert words.say("{name} failed", name="{count} **x**") == "{count} **x** failed"
    assert words.rich("**{a}** and {b}", a="x**y", b="**") == (Segment("x**y", strong=True), Segment(" and **"))
    assert (
        plain(words.rich("you wait **{ratio}** {interval} as long", ratio="1.00×", interval=""))
        == "you wait 1.00× as long"
    )


def test_a_catalogue_replaces_the_sentence_and_a_missing_one_is_english() -> None:
    class Upper(gettext.NullTranslations):
        def gettext(self, message: str) -> str:
            return message.replace("cells", "셀")

    assert Words("ko", Upper()).say("{n} cells", n=3) == "3 셀"
    assert Words("ko", Upper()).language == "ko"
    assert Words("xx").language == "en"
    assert Words("xx").count("{number} cell", "{number} cells", 1) == "1 cell"


@pytest.mark.parametrize(
    ("low", "high", "point", "expected"),
    [
        (0.71, 0.78, 0.744, "0.74× [0.71,\u00a00.78]"),
        (0.9951, 1.0042, 0.9996, "1.000× [0.995,\u00a01.004]"),
        (None, None, 1.2345, "1.23× "),
    ],
)
def test_digits_follow_the_width_of_the_interval(
    low: float | None, high: float | None, point: float, expected: str
) -> None:
    one = Estimate(point, low, high, 0.95, 4, "t")
    assert f"{numerals.ratio(one)} {numerals.interval(one)}" == expected


def test_a_difference_has_a_sign_and_nothing_has_none() -> None:
    assert numerals.change("peak_unified", 1.9e9) == "+1.90 GB"
    assert numerals.change("peak_unified", -64_200.0) == "−64.2 kB"
    assert numerals.change("peak_unified", 0.0) == "0 B"


def test_slugs_keep_different_names_apart() -> None:
    assert naming.slug("llama.cpp/tiny/draft-k4/greedy/short") == "llama.cpp/tiny/draft-k4/greedy/short"
    names = ["a b", "a-b", "a\tb", "오늘", "내일", 'a"b', "a<b"]
    slugs = [naming.slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(re.fullmatch(r"[A-Za-z0-9._~/-]+", one) for one in slugs)


def rows(label: str) -> list[figures.ForestRow]:
    return [
        figures.ForestRow(label, "0.74×", 0.74, 0.71, 0.78, 0.03, "good", (0.73, 0.75)),
        figures.ForestRow("b", "1.00×", 1.0, None, None, None, "flat", ()),
    ]


def test_a_figure_is_inline_scoped_and_coloured_by_variables() -> None:
    one = svg.inline(figures.forest(rows("a")), "fig-a", "A & <b>")
    assert one.startswith('<svg viewBox="0 0 ')
    assert "A &amp; &lt;b&gt;</title>" in one
    assert "<style" not in one
    assert "<metadata" not in one
    assert "http" not in one
    assert "#a1b2" not in one
    assert "var(--good)" in one
    assert set(re.findall(r' id="([^"]+)"', one)) >= {"fig-a-t"}
    assert all(name.startswith("fig-a-") for name in re.findall(r' id="([^"]+)"', one))
    assert all(name.startswith("fig-a-") for name in re.findall(r'href="#([^"]+)"', one))


def test_two_figures_share_no_id_and_one_figure_is_always_the_same() -> None:
    first, second = (svg.inline(figures.forest(rows("a")), name, "t") for name in ("x", "y"))
    ids = [set(re.findall(r' id="([^"]+)"', one)) for one in (first, second)]
    assert ids[0].isdisjoint(ids[1])
    assert svg.inline(figures.forest(rows("a")), "x", "t") == first


@pytest.mark.parametrize("label", ["$x^2$", "a & b <c>", 'href="#evil" 1.23456', "오늘 날씨"])
def test_labels_stand_as_they_are(label: str) -> None:
    one = svg.inline(figures.forest(rows(label)), "fig", "t")
    texts = [
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        for text in re.findall(r"<text[^>]*>([^<]*)<", one)
    ]
    assert label in texts


def test_a_forest_holds_every_point_inside_its_axes() -> None:
    far = figures.ForestRow("far", "9.00×", 9.0, 0.05, 30.0, None, "bad", (9.0,))
    drawn = svg.inline(figures.forest([far]), "f", "t")
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', drawn).group(1))  # type: ignore[union-attr]
    places = [float(x) for x in re.findall(r'<use [^>]*x="([\d.]+)"', drawn)]
    assert places
    assert all(0 <= x <= width for x in places)

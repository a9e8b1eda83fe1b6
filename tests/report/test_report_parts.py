"""The small parts: visible text, words, digits, ids, and what becomes of a drawn figure."""

from __future__ import annotations

import gettext
import json
import re
from pathlib import Path

import pytest

from orchestrator.report.figures import lines, scatter_plot, svg
from orchestrator.report.language import numerals
from orchestrator.report.language.untrusted import clean, tail
from orchestrator.report.language.words import Segment, Words, plain
from orchestrator.report.page import naming
from orchestrator.report.page.groups import memory_traces
from orchestrator.schema.result import Estimate


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("plain text · 오늘", "plain text · 오늘"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;http://x\x1b\\link", "link"),
        ("\x1b]0;title\x9cafter", "after"),
        ("a \x1b]0;never ends: OSError\nthe cause", "a 0;never ends: OSError⏎the cause"),
        ("a \x1b]0;never ends\nthe cause\x07 b", "a 0;never ends⏎the cause␇ b"),
        ("a \x1bPstill here", "a still here"),
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


def rows(label: str) -> list[lines.ForestRow]:
    return [
        lines.ForestRow(label, "0.74×", 0.74, 0.71, 0.78, 0.03, "good", (0.73, 0.75)),
        lines.ForestRow("b", "1.00×", 1.0, None, None, None, "flat", ()),
    ]


def test_a_figure_is_inline_scoped_and_coloured_by_variables() -> None:
    one = lines.forest(rows("a"), "fig-a", "A & <b>")
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
    first, second = (lines.forest(rows("a"), name, "t") for name in ("x", "y"))
    ids = [set(re.findall(r' id="([^"]+)"', one)) for one in (first, second)]
    assert ids[0].isdisjoint(ids[1])
    assert lines.forest(rows("a"), "x", "t") == first


@pytest.mark.parametrize("label", ["$x^2$", "a & b <c>", 'href="#evil" 1.23456', "오늘 날씨"])
def test_labels_stand_as_they_are(label: str) -> None:
    one = lines.forest(rows(label), "fig", "t")
    texts = [
        text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
        for text in re.findall(r"<text[^>]*>([^<]*)<", one)
    ]
    assert label in texts


def test_a_forest_holds_every_point_inside_its_axes() -> None:
    far = lines.ForestRow("far", "9.00×", 9.0, 0.05, 30.0, None, "bad", (9.0,))
    drawn = lines.forest([far], "f", "t")
    width = float(re.search(r'viewBox="0 0 ([\d.]+)', drawn).group(1))  # type: ignore[union-attr]
    places = [float(x) for x in re.findall(r'[ML"]([\d.]+) [\d.]+', drawn)]
    assert len(places) > 5
    assert all(0 <= x <= width for x in places)


def points(label: str) -> list[scatter_plot.ScatterPoint]:
    return [
        scatter_plot.ScatterPoint(label, 0.6, 0.8, 0.7, 0.9, 0),
        scatter_plot.ScatterPoint("b", 0.2, 1.1, None, None, 1),
    ]


def test_a_drawing_of_matplotlib_is_scoped_coloured_by_variables_and_always_the_same() -> None:
    first, second = (svg.inline(scatter_plot.scatter(points("$x^2$ & <b>"))[0], name, "t & u") for name in ("x", "y"))
    ids = [set(re.findall(r' id="([^"]+)"', one)) for one in (first, second)]
    assert ids[0].isdisjoint(ids[1])
    assert all(name.startswith("x-") for name in re.findall(r'href="#([^"]+)"', first))
    assert re.findall(r'href="#([^"]+)"', first)
    assert svg.inline(scatter_plot.scatter(points("$x^2$ & <b>"))[0], "x", "t & u") == first
    assert "$x^2$ &amp; &lt;b&gt;" in first
    assert "var(--s0)" in first
    for banned in ("<style", "<metadata", "http", "#a1b2", "font-family"):
        assert banned not in first


def test_a_curve_is_one_step_per_burst() -> None:
    curve = lines.Curve("on", (0.1, 0.2, 0.2, 0.2, 0.3), 0)
    drawn = lines.curves([curve, lines.Curve("off", (0.1, 0.2, 0.3, 0.4, 0.5), -1)], "c", "t")
    steps = [path.count("V") for path in re.findall(r'd="(M[^"]*H[^"]*)"', drawn)]
    assert sorted(steps) == [3, 5]


def test_a_price_shows_the_drafters_share_only_where_it_is_known() -> None:
    known, unknown = lines.CostRow("a", 3.0, 2.0, 0.5), lines.CostRow("b", 1.0, 2.0, None)
    assert lines.cost([known], "x", "t").count("<rect") == 2
    assert lines.cost([unknown], "x", "t").count("<rect") == 1
    assert "3.00 ÷ 2.00" in lines.cost([known], "x", "t")
    assert 'stroke="var(--bad)"' in lines.cost([unknown], "x", "t")


def test_samples_of_memory_keep_their_peak_and_forgive_what_is_torn(tmp_path: Path) -> None:
    folder = tmp_path / "cells" / "a"
    folder.mkdir(parents=True)
    sizes = [100 + (900 if n == 77 else 0) for n in range(200)]
    rows = [
        json.dumps({"t_s": 50 + n / 10, "rss_bytes": size, "footprint_bytes": None}) for n, size in enumerate(sizes)
    ]
    (folder / "memory.jsonl").write_text("\n".join([*rows, "[1]", '{"t_s": 71, "rss_']), encoding="utf-8")
    found = memory_traces.samples(tmp_path, "cells/a")
    assert len(found) <= memory_traces.POINTS
    assert found[0] == (0.0, 100.0)
    assert found[-1] == (pytest.approx(19.9), 100.0)
    assert max(found, key=lambda point: point[1]) == (pytest.approx(7.7), 1000.0)
    assert memory_traces.samples(tmp_path, "../elsewhere") == ()
    assert memory_traces.samples(tmp_path / "cells", "..") == ()
    assert memory_traces.samples(tmp_path, "a\0b") == ()

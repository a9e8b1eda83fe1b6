"""What stays English on a page of another language is marked as English."""

from __future__ import annotations

import pytest
from markupsafe import Markup, escape

from orchestrator.report.language.quotes import quoted


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the engine ended at once", '<span lang="en">the engine ended at once</span>'),
        ("엔진이 끝났다: error: no such file", '엔진이 끝났다: <span lang="en">error: no such file</span>'),
        ("AMD EPYC (Linux box)", '<span lang="en">AMD EPYC (Linux box)</span>'),
        ("실패 <b>bold is not bold</b> 실패", '실패 &lt;<span lang="en">b&gt;bold is not bold&lt;/b</span>&gt; 실패'),
        ("greedy 일치, draft 4개", "greedy 일치, draft 4개"),
        ("n = 12", "n = 12"),
        ("", ""),
    ],
)
def test_runs_of_english_are_marked(text: str, expected: str) -> None:
    assert str(escape(quoted(text, "ko"))) == expected


def test_an_english_page_is_not_marked_and_nothing_is_unescaped() -> None:
    assert quoted("the engine ended at once", "en") == "the engine ended at once"
    assert not isinstance(quoted("<script>alert for you</script>", "en"), Markup)
    assert "<script" not in str(escape(quoted("<script>alert for you now</script>", "ko")))

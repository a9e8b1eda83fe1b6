"""Two runs against each other: what must agree is refused by name, what changed is compared, days are not interleaved."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import run_builder as rb
from scipy import stats

from orchestrator.cli.compare import compare
from orchestrator.report.compare.runs import NOT_INTERLEAVED, RunsCompared, compare_runs
from orchestrator.report.compare.view import compare_view
from orchestrator.report.compare.write import compare_data, compare_html, compare_markdown
from orchestrator.report.language.words import Words
from orchestrator.schema.errors import SpecmatrixError
from orchestrator.schema.result import Outcome
from orchestrator.stats.unpaired import holm, session_logs, shift

HOST = {"cpu": "Test CPU", "memory_bytes": 128 * 10**9, "kernel": "6.1", "power": {"source": "mains"}}
SETTINGS = {"environment": "clean", "reserve": []}
FACTS = {
    "engine.version": "b11434",
    "file.0": "aaaa",
    "prompts": "p1",
    "methodology": "1",
    "run": "sessions=4 trials=3 warmup=1 order=abba cache=cold",
}
CELL = "llama.cpp/tiny/draft-k4/greedy/short"


def make(
    path: Path, *, facts: dict[str, str] | None = FACTS, pace: float = 0.02, base: float = 0.02, **changes: Any
) -> Path:
    """A run of one block; ``pace`` is the speculative cell's pass, ``base`` the baseline's."""
    host, settings = HOST | changes.pop("host", {}), SETTINGS | changes.pop("settings", {})
    cells = (rb.Spec(rb.DRAFT4, pace, 0.034, 4, 0.72, memory=79e6, claim=rb.MATCH, **changes.pop("cell", {})),)
    engine = dataclasses.replace(rb.LLAMA, **changes.pop("engine", {}))
    block = rb.BlockSpec(engine, rb.TINY, rb.GREEDY, rb.SHORT, rb.Spec(pass_s=base), cells, **changes)
    rb.write_run(path, (block,), rb.IDENTITIES, run_settings=settings, host=host)
    if facts is not None:
        add_facts(path / "journal.jsonl", facts)
    return path


def add_facts(journal: Path, facts: dict[str, str]) -> None:
    """Put the facts into the matrix record, and let the fingerprints depend on them as they do in a real run."""
    text = journal.read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    matrix = json.loads(first)
    salt = json.dumps(facts, sort_keys=True)
    for row in matrix["cells"]:
        row["facts"] = facts
    text = json.dumps(matrix) + "\n" + rest
    for row in matrix["cells"]:
        old = row["fingerprint"]
        text = text.replace(old, hashlib.sha256((old + salt).encode()).hexdigest()[:16])
    journal.write_text(text, encoding="utf-8")


def only(found: RunsCompared):
    assert len(found.cells) == 1
    return found.cells[0]


def test_the_same_run_compared_with_itself_shows_no_difference(tmp_path):
    run = make(tmp_path / "a")
    found = compare_runs(run, run)
    cell = only(found)
    assert found.same
    assert cell.conditions.refused == ()
    assert cell.conditions.changed == ()
    assert [one.metric for one in cell.changes] == ["e2e_latency", "time_to_32", "ttft", "decode_rate", "peak_unified"]
    for one in cell.changes:
        assert one.outcome is Outcome.NO_DIFFERENCE
        assert one.ratio is not None
        assert one.ratio.point == pytest.approx(1, abs=1e-12)
    assert all(one.ratio.point == pytest.approx(1, abs=1e-12) for one in cell.absolutes)


def test_a_new_engine_version_is_compared_and_named(tmp_path):
    one = make(tmp_path / "a", pace=0.05)
    two = make(tmp_path / "b", pace=0.03, facts=FACTS | {"engine.version": "b11549"})
    cell = only(compare_runs(one, two))
    assert cell.conditions.refused == ()
    assert [str(item) for item in cell.conditions.changed] == ["engine.version: b11434 ≠ b11549"]
    change = cell.change("e2e_latency")
    assert change.outcome is Outcome.LOWER
    assert change.ratio.point == pytest.approx(
        math.exp(math.log(change.after.ratio.point) - math.log(change.before.ratio.point))
    )
    assert change.before.ratio.n == change.after.ratio.n == 4
    assert cell.change("decode_rate").outcome is Outcome.HIGHER


def test_a_faster_baseline_moves_the_ratio_and_the_absolute_waits_say_why_without_a_verdict(tmp_path):
    one, two = make(tmp_path / "a", base=0.04), make(tmp_path / "b", base=0.02)
    cell = only(compare_runs(one, two))
    assert cell.change("e2e_latency").outcome is Outcome.HIGHER
    waits = {item.cell: item for item in cell.absolutes if item.metric == "e2e_latency"}
    off, on = waits["llama.cpp/tiny/none/greedy/short"], waits[CELL]
    assert off.ratio.high < 0.7
    assert on.ratio.low < 1 < on.ratio.high
    assert {item.reason for item in cell.absolutes} == {NOT_INTERLEAVED}
    assert not hasattr(off, "outcome")


@pytest.mark.parametrize(
    ("changes", "refusal"),
    [
        ({"host": {"cpu": "Other CPU"}}, "host.cpu: Test CPU ≠ Other CPU"),
        ({"host": {"power": {"source": "battery"}}}, 'host.power: {"source": "mains"} ≠ {"source": "battery"}'),
        ({"settings": {"environment": "everyday"}}, "run.environment: clean ≠ everyday"),
        ({"engine": {"options": {"threads": 4}}}, "engine.options.threads: not recorded ≠ 4"),
        ({"facts": FACTS | {"file.0": "bbbb"}}, "file.0: aaaa ≠ bbbb"),
        ({"facts": FACTS | {"prompts": "p2"}}, "prompts: p1 ≠ p2"),
        ({"facts": FACTS | {"methodology": "2"}}, "methodology: 1 ≠ 2"),
        ({"facts": FACTS | {"run": FACTS["run"].replace("warmup=1", "warmup=3")}}, "run.warmup: 1 ≠ 3"),
        ({"facts": None, "engine": {}}, "facts: fingerprint "),
    ],
)
def test_what_must_agree_is_refused_by_name_with_both_values(tmp_path, changes, refusal):
    one, two = make(tmp_path / "a"), make(tmp_path / "b", **changes)
    cell = only(compare_runs(one, two))
    told = [str(item) for item in cell.conditions.refused]
    assert any(item.startswith(refusal) for item in told), told
    assert not cell.comparable
    assert cell.changes == ()
    assert cell.absolutes == ()


def test_a_cell_that_failed_in_one_run_is_refused_by_its_status(tmp_path):
    one = make(tmp_path / "a")
    two = make(tmp_path / "b", cell={"fate": rb.Status.FAILED, "reason": "it ended"})
    assert "status: measured ≠ failed" in [str(item) for item in only(compare_runs(one, two)).conditions.refused]


def test_more_sessions_kernel_charge_and_paths_may_differ(tmp_path):
    one = make(tmp_path / "a", host={"power": {"source": "mains", "charge_percent": 90}})
    facts = FACTS | {"run": FACTS["run"].replace("sessions=4", "sessions=6")}
    host = {"kernel": "6.9", "power": {"source": "mains", "charge_percent": 40}}
    two = make(tmp_path / "b", facts=facts, host=host, sets=6, engine={"binary": "/elsewhere/engine"})
    found = compare_runs(one, two)
    assert only(found).conditions.refused == ()
    assert [str(item) for item in found.conditions.changed] == ["host.kernel: 6.1 ≠ 6.9"]
    assert [str(item) for item in only(found).conditions.changed] == ["run.sessions: 4 ≠ 6"]
    assert only(found).change("e2e_latency").after.ratio.n == 6


def test_runs_without_recorded_facts_are_compared_when_their_fingerprints_agree(tmp_path):
    one, two = make(tmp_path / "a", facts=None), make(tmp_path / "b", facts=None)
    assert only(compare_runs(one, two)).comparable


def test_two_sessions_are_a_range_without_a_verdict(tmp_path):
    one, two = make(tmp_path / "a", sets=2, pace=0.05), make(tmp_path / "b", sets=2, pace=0.03)
    change = only(compare_runs(one, two)).change("e2e_latency")
    assert change.outcome is Outcome.RANGE_ONLY
    assert change.ratio.low is None


def test_absolute_waits_of_answers_of_other_lengths_are_not_set_against_each_other(tmp_path):
    one, two = make(tmp_path / "a"), make(tmp_path / "b", cell={"shorter": 0.6})
    cell = only(compare_runs(one, two))
    on = next(item for item in cell.absolutes if item.metric == "e2e_latency" and item.cell == CELL)
    assert on.ratio is None
    assert "as many tokens" in on.reason


def test_a_cell_whose_group_changed_has_tables_of_its_own(tmp_path):
    exact = {"numerics_exact": ["llama.cpp"]}
    one = make(tmp_path / "a", settings=exact)
    two = make(tmp_path / "b", settings=exact, cell={"part_at": 12})
    view = compare_view(compare_runs(one, two), Words())
    assert [section.title for section in view.sections] == ["Exact before, Contradicted now"]


def test_cells_of_one_run_only_are_named(tmp_path):
    one, two = make(tmp_path / "a"), make(tmp_path / "b", engine={"name": "other"})
    found = compare_runs(one, two)
    assert found.cells == ()
    assert found.only_before == (CELL,)
    view = compare_view(found, Words())
    assert view.notes[0] == f"Only in the first run: {CELL}"


def test_page_markdown_and_json_tell_the_same_and_hold_no_markup_of_others(tmp_path):
    hostile = "<script>alert(1)</script>|@all"
    one = make(tmp_path / "a", host={"kernel": hostile})
    two = make(tmp_path / "b", pace=0.03, host={"kernel": "[x](http://evil)"})
    found = compare_runs(one, two)
    words = Words()
    view = compare_view(found, words)
    html, md = compare_html(view, words), compare_markdown(view, words)
    assert "<script" not in html
    assert re.search(r"(?:href|src)=\"(?!#)", html) is None
    assert "default-src 'none'" in html
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', html)) <= set(ids)
    assert "<script" not in md
    assert re.search(r"(?<!\\)\]\(", md) is None
    assert "@all" not in md
    data = compare_data(found)
    assert data["cells"][0]["changes"]["e2e_latency"]["ratio_of_ratios"]["n"] == 4
    assert json.loads(json.dumps(data)) == data
    assert compare_html(view, words) == html


def test_the_command_prints_tables_and_ends_with_one_when_nothing_is_comparable(tmp_path, capsys):
    one, two = make(tmp_path / "a"), make(tmp_path / "b", host={"cpu": "Other CPU"})
    assert compare(one, one, "text", "en", None) == 0
    assert "no detectable change" in capsys.readouterr().out
    assert compare(one, two, "json", "en", tmp_path / "c.json") == 1
    assert json.loads((tmp_path / "c.json").read_text(encoding="utf-8"))["comparable_cells"] == 0
    capsys.readouterr()
    assert compare(one, two, "md", "en", None) == 1
    assert "host.cpu" in capsys.readouterr().out
    with pytest.raises(SpecmatrixError, match="text, json, md, html"):
        compare(one, two, "pdf", "en", None)


def test_the_interval_is_welchs():
    before, after = [0.10, 0.13, 0.11, 0.16], [0.01, 0.04, 0.02, 0.05, 0.09]
    found = shift(before, after)
    known = stats.ttest_ind(after, before, equal_var=False)
    interval = known.confidence_interval(0.95)
    assert found.p_value == pytest.approx(known.pvalue)
    assert (math.log(found.ratio.low), math.log(found.ratio.high)) == pytest.approx((interval.low, interval.high))
    assert found.ratio.n == 4
    turned = shift(after, before)
    assert turned.ratio.low == pytest.approx(1 / found.ratio.high)


def test_no_spread_and_too_few_sessions_have_no_interval():
    assert shift([0.5, 0.5, 0.5], [0.7, 0.7, 0.7]).ratio.low is None
    assert shift([0.5, 0.6], [0.7, 0.7, 0.8]).p_value is None
    assert shift([0.5, 0.5, 0.5], [0.7, 0.71, 0.72]).ratio.low is not None


def test_sessions_are_compared_over_the_prompts_that_all_have():
    def frame(rows):
        return pd.DataFrame(rows, columns=["set_index", "prompt_id", "value"])

    before = frame([(0, "a", 1.0), (0, "b", 100.0), (1, "a", 1.0)])
    after = frame([(0, "a", 2.0), (1, "a", 2.0), (1, "b", 100.0)])
    one, two = session_logs(before, after)
    assert one.prompts == ("a",)
    assert one.logs == pytest.approx((0.0, 0.0))
    assert two.logs == pytest.approx((math.log(2), math.log(2)))
    assert "first run" in session_logs(frame([(0, "a", 0.0)]), after)[0].refusal


def test_holm_stops_at_the_first_that_stands():
    assert holm({"a": 0.001, "b": 0.02, "c": 0.04}) == {"a", "b", "c"}
    assert holm({"a": 0.001, "b": 0.03, "c": 0.04}) == {"a"}
    assert holm({}) == frozenset()

from __future__ import annotations

import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from store_samples import (
    BASE,
    BLOCK,
    PRINTS,
    S1,
    S2,
    attempt,
    build,
    matrix,
    one_set,
    place,
    trial,
    whole_attempt,
    whole_run,
)

import orchestrator
from orchestrator.schema.errors import StoreError
from orchestrator.schema.observation import observed
from orchestrator.schema.record import Phase, TrialRecord
from orchestrator.schema.result import Output
from orchestrator.schema.status import Status
from orchestrator.store.frame import COLUMNS, observations_frame, write_csv, write_parquet
from orchestrator.store.index import Index
from orchestrator.store.outputs import outputs

PER_TRIAL, PER_SESSION = 5, 1


def rerun() -> Index:
    return build(*whole_run(), *whole_attempt(2, {BASE: PRINTS[BASE], S1: PRINTS[S1]}))


def test_one_row_per_observation_with_its_facts() -> None:
    frame = observations_frame(build(*whole_run()))
    assert list(frame.columns) == list(COLUMNS)
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == COLUMNS
    assert len(frame) == 3 * 2 * (3 * PER_TRIAL + PER_SESSION)
    assert list(dict.fromkeys(frame["cell"])) == [BASE, S1, S2]
    row = frame[(frame["cell"] == S1) & (frame["set_index"] == 1) & (frame["trial"] == 2)].iloc[0].to_dict()
    assert {name: value for name, value in row.items() if not pd.isna(value)} == {
        "cell": S1,
        "block": BLOCK,
        "role": "speculative",
        "engine": "eng",
        "model": "tiny",
        "method": "draft-k4",
        "sampling": "greedy",
        "workload": "short",
        "fingerprint": PRINTS[S1],
        "attempt": 1,
        "current": True,
        "set_index": 1,
        "take": 0,
        "session_order": 1,
        "trial": 2,
        "phase": "measured",
        "prompt_id": "p2",
        "category": "prose",
        "language": "en",
        "seed": 42,
        "metric": "e2e_latency",
        "value": 113.5,
        "unit": "s",
        "clock": "ours",
        "definition": "e2e_latency@1",
        "source": "events:request",
        "status": "ok",
    }


def test_a_value_is_a_number_a_text_or_an_absence_and_never_nan() -> None:
    frame = observations_frame(build(*whole_run()))
    given = frame[["value", "text_value", "absent"]].notna().sum(axis=1)
    assert set(given) == {1}
    first = frame[(frame["cell"] == S1) & (frame["trial"] == 1) & (frame["set_index"] == 0)].set_index("metric")
    assert first.loc["finish_reason", "text_value"] == "length"
    assert first.loc["accepted_by_position", "text_value"] == "[2, 1]"
    assert first.loc["accepted_by_position", "note"] == "a lower bound"
    assert first.loc["draft_time", "absent"] == "not_reported"
    assert first.loc["draft_time", "value"] is pd.NA
    assert first.loc["output_tokens", "value"] == 2.0
    numbers = frame[frame["absent"].isna() & frame["text_value"].isna()]["value"]
    assert all(isinstance(value, float) and math.isfinite(value) for value in numbers.tolist())


@pytest.mark.parametrize(("truth", "number"), [(True, 1.0), (False, 0.0)])
def test_a_truth_is_one_or_zero(truth: bool, number: float) -> None:
    records = [
        replace(one, observations=(observed("task_correct", truth, "grader"),)) if isinstance(one, TrialRecord) else one
        for one in whole_run()
    ]
    frame = observations_frame(build(*records))
    assert set(frame[frame["metric"] == "task_correct"]["value"]) == {number}


def test_session_rows_stand_apart() -> None:
    frame = observations_frame(build(*whole_run()))
    rows = frame[frame["trial"] == -1]
    assert len(rows) == 3 * 2 * PER_SESSION
    assert set(rows["phase"]) == {"session"}
    assert set(rows["metric"]) == {"load_time"}
    assert rows[["prompt_id", "category", "language", "seed"]].isna().all(axis=None)
    assert set(frame[frame["trial"] >= 0]["phase"]) == {"warmup", "measured"}


def test_nothing_pooled_is_an_empty_frame_with_its_columns() -> None:
    for index in (build(), build(matrix()), build(matrix(), attempt(1), trial(place(S1, 1, 0), 0))):
        frame = observations_frame(index, partners=True)
        assert len(frame) == 0
        assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == COLUMNS


def test_failed_sessions_and_stale_figures_are_not_in_the_frame() -> None:
    index = build(matrix(), attempt(1), *one_set(1, 0), *one_set(1, 1, bad={S1: Status.NOT_ENGAGED}))
    frame = observations_frame(index)
    assert set(frame[frame["cell"] == S1]["set_index"]) == {0}
    assert set(frame[frame["cell"] == S2]["set_index"]) == {0, 1}
    stale = build(*whole_run(), matrix({**PRINTS, S1: "9" * 16}))
    assert set(observations_frame(stale, partners=True)["cell"]) == {BASE, S2}


def test_partners_come_on_demand_and_are_marked() -> None:
    own = observations_frame(rerun())
    assert {cell: set(own[own["cell"] == cell]["attempt"]) for cell in PRINTS} == {BASE: {2}, S1: {2}, S2: {1}}
    assert own["current"].all()
    both = observations_frame(rerun(), partners=True)
    assert {cell: set(both[both["cell"] == cell]["attempt"]) for cell in PRINTS} == {BASE: {1, 2}, S1: {2}, S2: {1}}
    extra = both[~both["current"]]
    assert set(zip(extra["cell"], extra["attempt"], strict=True)) == {(BASE, 1)}
    pd.testing.assert_frame_equal(both[both["current"]].reset_index(drop=True), own)


def test_csv_and_parquet_hold_the_frame_and_are_the_same_each_time(tmp_path: Path) -> None:
    frame = observations_frame(rerun(), partners=True)
    for write, name in ((write_csv, "metrics.csv"), (write_parquet, "metrics.parquet")):
        write(rerun(), tmp_path / name)
        first = (tmp_path / name).read_bytes()
        write(rerun(), tmp_path / name)
        assert (tmp_path / name).read_bytes() == first
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["metrics.csv", "metrics.parquet"]
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "metrics.parquet"), frame)
    back = pd.read_csv(tmp_path / "metrics.csv", dtype=COLUMNS, keep_default_na=False, na_values=[""])
    pd.testing.assert_frame_equal(back, frame)
    assert b"nan" not in (tmp_path / "metrics.csv").read_bytes().lower()


def test_a_category_that_a_spreadsheet_would_compute_is_text_in_csv_and_itself_in_parquet(tmp_path: Path) -> None:
    evil = "=cmd|' /C calc'!A0"
    records = [
        replace(one, category=evil, prompt_id="p\u202e") if isinstance(one, TrialRecord) else one for one in whole_run()
    ]
    write_csv(build(*records), tmp_path / "metrics.csv")
    write_parquet(build(*records), tmp_path / "metrics.parquet")
    told = pd.read_csv(tmp_path / "metrics.csv", dtype=COLUMNS, keep_default_na=False, na_values=[""])
    kept = pd.read_parquet(tmp_path / "metrics.parquet")
    assert set(told["category"].dropna()) == {f"'{evil}"}
    assert set(told["prompt_id"].dropna()) == {"p⟨U+202E⟩"}
    assert set(kept["category"].dropna()) == {evil}
    assert set(kept["prompt_id"].dropna()) == {"p\u202e"}
    same = [name for name in COLUMNS if name not in ("category", "prompt_id")]
    pd.testing.assert_frame_equal(told[same], kept[same])


def test_a_file_that_cannot_be_written_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        write_csv(rerun(), tmp_path / "nowhere" / "metrics.csv")


def test_settings_without_names_are_refused() -> None:
    records = whole_run()
    bare = replace(matrix(), cells=tuple({**cell, "settings": {"engine": {"name": "eng"}}} for cell in matrix().cells))
    with pytest.raises(StoreError, match=f"settings of {BASE} lack the name of 'model'"):
        observations_frame(build(*records, bare))


def test_outputs_are_the_answers_of_pooled_trials() -> None:
    index = build(matrix(), attempt(1), *one_set(1, 0), *one_set(1, 1, bad={S1: Status.FAILED}))
    found = outputs(index)
    assert len(found) == 3 * (2 + 1 + 2)
    assert found[0] == Output(BASE, 1, 0, 0, Phase.WARMUP, "p0", (5, 0), "text 0 \u2028 ü")
    assert [one.phase for one in found[:3]] == [Phase.WARMUP, Phase.MEASURED, Phase.MEASURED]
    assert {(one.cell, one.attempt) for one in outputs(rerun())} == {(BASE, 1), (BASE, 2), (S1, 2), (S2, 1)}
    assert outputs(build()) == ()


def test_reading_a_run_loads_no_heavy_library() -> None:
    names = "directory", "index", "outcome", "frame", "outputs"
    code = "import sys\n" + "".join(f"import orchestrator.store.{name}\n" for name in names)
    code += "print(sorted({'pandas', 'numpy', 'scipy', 'pyarrow', 'httpx', 'matplotlib'} & set(sys.modules)))"
    root = str(Path(orchestrator.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=root, env={"PYTHONPATH": root}
    )
    assert done.stdout.strip() == "[]"

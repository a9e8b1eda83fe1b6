"""What every adapter owes: golden captures read as expected, no number from a damaged one, pure planning."""

from __future__ import annotations

import dataclasses
import importlib
import json
import random
import string
import subprocess
import sys
from pathlib import Path

import pytest
from golden_cases import case_folders, load_case, read_case
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from orchestrator.registry import BUILT_IN
from orchestrator.schema.adapter import (
    Claim,
    CommandStep,
    EachStep,
    EngineIdentity,
    HttpReady,
    HttpStep,
    LaunchContext,
    LineReady,
    LogStep,
    ProbeOutput,
    Refusal,
    TrialSpec,
    WorkerStep,
)
from orchestrator.schema.capture import TrialCapture
from orchestrator.schema.cell import Cell, EngineConfig, EosPolicy, Method, MethodKind, ModelConfig, Sampling, Workload
from orchestrator.schema.errors import CaptureError
from orchestrator.schema.metrics import VOCABULARY
from orchestrator.schema.record import Phase

ROOT = Path(__file__).resolve().parents[2]
ADAPTERS = {name: importlib.import_module(module).ADAPTER for name, module in BUILT_IN.items()}
GOLDENS = [pytest.param(name, folder, id=f"{name}-{folder.name}") for name in ADAPTERS for folder in case_folders(name)]
HEAVY = (
    "numpy",
    "pandas",
    "scipy",
    "matplotlib",
    "httpx",
    "gguf",
    "safetensors",
    "xllamacpp",
    "llama_cpp",
    "mlx",
    "mlx_lm",
    "mlx_vlm",
    "transformers",
)
every_adapter = pytest.mark.parametrize("name", list(ADAPTERS))
every_golden = pytest.mark.parametrize(("name", "folder"), GOLDENS)


@every_adapter
def test_has_a_golden_capture_with_a_trial(name):
    assert any(load_case(folder).trial is not None for folder in case_folders(name))


@every_golden
def test_golden_is_read_as_expected(name, folder):
    case = load_case(folder)
    assert read_case(ADAPTERS[name], case) == case.expected


@every_golden
def test_golden_speaks_the_vocabulary(name, folder):
    adapter, case = ADAPTERS[name], load_case(folder)
    session = case.capture()
    found = list(adapter.parse_session(case.cell, session))
    if case.trial is not None and "error" not in case.expected["trial"]:
        found += adapter.parse_trial(case.cell, case.trial_of(session)).observations
        assert found
    for item in found:
        assert VOCABULARY[item.metric].unit is item.unit
        assert item.definition == VOCABULARY[item.metric].id or ":" in item.definition
        assert item.source
        assert item.absent is None or item.note


@every_golden
def test_no_metric_is_told_twice(name, folder):
    adapter, case = ADAPTERS[name], load_case(folder)
    if case.trial is None or "error" in case.expected["trial"]:
        return
    metrics = [item.metric for item in adapter.parse_trial(case.cell, case.trial_of(case.capture())).observations]
    assert len(metrics) == len(set(metrics))


def cuts(data: bytes, most: int) -> list[int]:
    """Every place of a small file; of a large one those around line ends, and many more at random."""
    if len(data) <= most:
        return list(range(len(data)))
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    chosen = {min(max(end + shift, 0), len(data) - 1) for end in ends[-20:] for shift in (-1, 0, 1)}
    return sorted(chosen | set(random.Random(0).choices(range(len(data)), k=40)))


@every_golden
@pytest.mark.parametrize("file", ["events", "stderr", "stdout"])
def test_a_capture_cut_anywhere_gives_no_other_number(name, folder, file):
    adapter, case = ADAPTERS[name], load_case(folder)
    if case.trial is None or "error" in case.expected["trial"]:
        return
    full = adapter.parse_trial(case.cell, case.trial_of(case.capture()))
    known = {item.metric: item.value for item in full.observations}
    refused = 0
    for place in cuts(getattr(case, file), 2_000):
        session = case.capture(**{file: getattr(case, file)[:place]})
        capture = case.trial_of(session)
        adapter.parse_session(case.cell, session)
        adapter.check_ready(case.cell, session.ready, session.stdout, session.stderr)
        adapter.conditions(case.cell, capture)
        try:
            parsed = adapter.parse_trial(case.cell, capture)
        except CaptureError:
            refused += 1
            continue
        assert {item.metric: item.value for item in parsed.observations if item.absent is None}.items() <= known.items()
        assert parsed.token_ids == full.token_ids
    assert refused or file != "events"


GARBAGE = [
    "",
    "\n",
    "null\n",
    "[]\n",
    "{}\n",
    '{"trial": 0}\n',
    "\x00\xff\n",
    '{"trial": 0, "kind": "log", "stderr_from": 0, "stderr_to": 0}\n',
    '{"trial": 0, "step": "request", "kind": "sent", "t_s": 1.0, "body": "{}"}\n'
    '{"trial": 0, "step": "request", "kind": "event", "t_s": 1.1, "data": "data: nonsense"}\n'
    '{"trial": 0, "step": "request", "kind": "done", "t_s": 1.2, "http_status": 200, "error": null}\n'
    '{"trial": 0, "kind": "log", "stderr_from": 0, "stderr_to": 0}\n',
]


@every_adapter
@pytest.mark.parametrize("text", GARBAGE)
def test_garbage_gives_no_number(name, text):
    adapter, case = ADAPTERS[name], load_case(case_folders(name)[0])
    session = case.capture(events=text.encode("utf-8", "replace"), stderr=b"\xff garbage \x00\n", stdout=b"\xff{]\n")
    capture = session.trials.get(0, TrialCapture(0))
    with pytest.raises(CaptureError):
        adapter.parse_trial(case.cell, capture)
    found = adapter.arrivals(case.cell, capture)
    assert found is None or found.tokens == ()


@every_golden
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_events_with_damaged_answers_never_crash(name, folder, data):
    adapter, case = ADAPTERS[name], load_case(folder)
    if case.trial is None:
        return
    lines = case.events.decode().splitlines(keepends=True)
    place = data.draw(st.integers(0, len(lines) - 1))
    row = json.loads(lines[place])
    text = data.draw(st.sampled_from(["", "{}", "data: {}", "null", "[1]", 'data: {"stop": true}', "\u0000", "0"]))
    row.update({key: text for key in ("data", "body") if key in row})
    lines[place] = json.dumps(row) + "\n"
    session = case.capture(events="".join(lines).encode())
    adapter.check_ready(case.cell, session.ready, session.stdout, session.stderr)
    adapter.parse_session(case.cell, session)
    adapter.conditions(case.cell, case.trial_of(session))
    try:
        adapter.parse_trial(case.cell, case.trial_of(session))
    except CaptureError:
        pass
    else:
        assert adapter.arrivals(case.cell, case.trial_of(session)) is not None


@every_golden
def test_launch_is_a_plain_command_and_always_the_same(name, folder, tmp_path):
    adapter, cell = ADAPTERS[name], load_case(folder).cell
    context = LaunchContext(4321, tmp_path)
    launch = adapter.launch(cell, context)
    assert launch == adapter.launch(cell, context)
    assert all(isinstance(word, str) and word for word in launch.argv)
    assert Path(launch.argv[0]).name not in {"sh", "bash", "zsh", "env"}
    assert isinstance(launch.ready, HttpReady | LineReady | EachStep)
    assert all(not Path(path).is_absolute() and ".." not in Path(path).parts for path in launch.files)
    assert list(tmp_path.iterdir()) == []


@every_golden
def test_steps_are_always_the_same_and_json(name, folder):
    adapter, case = ADAPTERS[name], load_case(folder)
    trial = case.trial or TrialSpec(0, Phase.MEASURED.value, "p", "text", 7)
    steps = adapter.trial_steps(case.cell, trial)
    assert steps == adapter.trial_steps(case.cell, trial)
    assert steps
    names = [step.name for step in steps]
    assert len(names) == len(set(names))
    for step in (*steps, *adapter.ready_steps(case.cell)):
        assert isinstance(step, HttpStep | WorkerStep | LogStep | CommandStep)
        json.dumps(getattr(step, "body", None) or dict(getattr(step, "message", {})))


@every_adapter
def test_method_none_is_known_and_names_are_whole(name):
    adapter = ADAPTERS[name]
    assert adapter.name == name
    assert MethodKind.NONE in adapter.method_options
    assert adapter.title
    assert adapter.install_hint
    assert adapter.always_drafts <= set(adapter.method_options)
    assert MethodKind.NONE not in adapter.always_drafts


@every_adapter
def test_options_are_strict_and_documented(name):
    adapter = ADAPTERS[name]
    for schema in (adapter.engine_options, *adapter.method_options.values()):
        with pytest.raises(ValidationError):
            schema.model_validate({"no_such_option": 1})
        schema.model_validate({})
        for field, info in schema.model_fields.items():
            assert info.description, f"{schema.__name__}.{field} has no description"


@every_adapter
def test_an_engine_that_is_not_there_is_unavailable(name):
    adapter = ADAPTERS[name]
    config = EngineConfig("x", name)
    outputs = {probe.name: ProbeOutput(None, "", "", "not found") for probe in adapter.probe_commands(config)}
    assert adapter.identify(config, outputs).unavailable
    assert adapter.identify(config, {}).unavailable
    junk = {probe.name: ProbeOutput(3, "\x00{]", "Traceback: \udc80", None) for probe in adapter.probe_commands(config)}
    assert adapter.identify(config, junk).unavailable


WORDS = st.text(string.printable + "가\x00", max_size=12)
ODD = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), WORDS, st.lists(st.integers(), max_size=2))
ODD_CELLS = st.builds(
    Cell,
    st.builds(
        EngineConfig,
        WORDS,
        WORDS,
        st.none() | WORDS,
        st.none() | WORDS,
        options=st.dictionaries(WORDS, ODD, max_size=2),
    ),
    st.builds(ModelConfig, WORDS, WORDS, drafts=st.dictionaries(WORDS, WORDS, max_size=2), mtp=st.none() | WORDS),
    st.builds(
        Method,
        WORDS,
        st.sampled_from(list(MethodKind)),
        st.none() | st.integers(),
        st.none() | WORDS,
        st.dictionaries(st.sampled_from(["acceptance", "p_min", "n_min", "size_n", "x"]), ODD, max_size=3),
    ),
    st.builds(
        Sampling,
        WORDS,
        st.floats(),
        st.integers(),
        st.integers(),
        st.floats(),
        st.floats(),
        st.floats(),
        st.floats(),
        st.floats(),
    ),
    st.builds(Workload, WORDS, WORDS, st.integers(), st.sampled_from(list(EosPolicy))),
)
IDENTITIES = st.sampled_from(
    [EngineIdentity(), EngineIdentity(unavailable="gone"), EngineIdentity(capabilities=frozenset({"--x"}))]
)


@every_adapter
@settings(max_examples=150, deadline=None)
@given(cell=ODD_CELLS, identity=IDENTITIES)
def test_odd_cells_are_answered_not_crashed_on(name, cell, identity):
    adapter = ADAPTERS[name]
    refusal = adapter.supports(cell, identity)
    assert refusal is None or (isinstance(refusal, Refusal) and refusal.reason)
    assert isinstance(adapter.exactness(cell, identity), Claim)


@every_golden
@pytest.mark.parametrize("kind", list(MethodKind))
def test_golden_cells_are_answered_for_every_method(name, folder, kind):
    adapter, case = ADAPTERS[name], load_case(folder)
    cell = dataclasses.replace(case.cell, method=Method("m", kind, 4, case.cell.method.draft))
    refusal = adapter.supports(cell, EngineIdentity())
    assert refusal is None or (refusal.reason and refusal.status)


def test_importing_adapters_loads_nothing_heavy():
    modules = ", ".join(BUILT_IN.values())
    script = f"import sys, {modules}\nprint(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
